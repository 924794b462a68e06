// Sequential reads and writes of 64 objects of about 24 KB, rows of five or six fields; and of 64
// documents of eight kinds, 1 to 60 KB.

import {
  documentValue,
  expect,
  isLarge,
  key,
  LARGE_POPULATION,
  largeValue,
  order,
} from "../data.mjs";
import { rate, rateSync } from "../measure.mjs";
import { populate, populateSync } from "../populate.mjs";

/** Operations between two reads of the clock. */
const ROUND = 10;

/** 16 × 24 KB stays under the 800 KiB of one commit. */
const LARGE = { name: "large", make: largeValue, isRight: isLarge, batch: 16 };
/** One of each kind to a commit. */
const DOCUMENTS = {
  name: "documents",
  make: documentValue,
  isRight: (value, i) => value.id === i && value.body !== undefined,
  batch: 8,
};

function readsOf({ name, make, isRight, batch }) {
  return async (store, window) => {
    await populate(store, LARGE_POPULATION, { value: make, batch });
    const next = order(LARGE_POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const entry = await store.get(key(i));
        expect(isRight(entry.value, i), `get-${name}`);
      }
      return ROUND;
    });
  };
}

function writesOf({ name, make, batch }) {
  return async (store, window) => {
    await populate(store, LARGE_POPULATION, { value: make, batch });
    const next = order(LARGE_POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const result = await store.set(key(i), make(i));
        expect(result.ok, `set-${name}`);
      }
      return ROUND;
    });
  };
}

function readsOfSync({ name, make, isRight, batch }) {
  return (store, window) => {
    populateSync(store, LARGE_POPULATION, { value: make, batch });
    const next = order(LARGE_POPULATION);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        expect(isRight(store.get(key(i)), i), `get-${name}`);
      }
      return ROUND;
    });
  };
}

function writesOfSync({ make, batch }) {
  return (store, window) => {
    populateSync(store, LARGE_POPULATION, { value: make, batch });
    const next = order(LARGE_POPULATION);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        store.set(key(i), make(i));
      }
      return ROUND;
    });
  };
}

export const kv = {
  "get-large": readsOf(LARGE),
  "set-large": writesOf(LARGE),
  "get-documents": readsOf(DOCUMENTS),
  "set-documents": writesOf(DOCUMENTS),
};

export const sync = {
  "get-large": readsOfSync(LARGE),
  "set-large": writesOfSync(LARGE),
  "get-documents": readsOfSync(DOCUMENTS),
  "set-documents": writesOfSync(DOCUMENTS),
};
