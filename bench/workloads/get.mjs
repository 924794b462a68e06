// Point reads over 10,000 keys in a fixed scattered order; the file fits every cache.

import { expect, key, order, POPULATION } from "../data.mjs";
import { rate, rateSync } from "../measure.mjs";
import { populate, populateSync } from "../populate.mjs";

const IN_FLIGHT = 500;
const MANY = 10;
/** Operations between two reads of the clock. */
const ROUND = 100;

export const kv = {
  /** One get at a time, each awaited. */
  async get(store, window) {
    await populate(store, POPULATION);
    const next = order(POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const entry = await store.get(key(i));
        expect(entry.value.id === i, "get");
      }
      return ROUND;
    });
  },

  /** 500 gets are called before the first is awaited; the next 500 follow when all have answered. */
  async "get-500"(store, window) {
    await populate(store, POPULATION);
    const next = order(POPULATION);
    const asked = new Array(IN_FLIGHT);
    const pending = new Array(IN_FLIGHT);
    return rate(window, async () => {
      for (let n = 0; n < IN_FLIGHT; n++) {
        asked[n] = next();
        pending[n] = store.get(key(asked[n]));
      }
      const entries = await Promise.all(pending);
      for (let n = 0; n < IN_FLIGHT; n++) expect(entries[n].value.id === asked[n], "get-500");
      return IN_FLIGHT;
    });
  },

  /** One getMany of ten keys at a time; the rate counts keys. */
  async "get-many"(store, window) {
    await populate(store, POPULATION);
    const next = order(POPULATION);
    const asked = new Array(MANY);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n += MANY) {
        const keys = [];
        for (let m = 0; m < MANY; m++) keys.push(key((asked[m] = next())));
        const entries = await store.getMany(keys);
        for (let m = 0; m < MANY; m++) expect(entries[m].value.id === asked[m], "get-many");
      }
      return ROUND;
    });
  },
};

const getSync = (store, window) => {
  populateSync(store, POPULATION);
  const next = order(POPULATION);
  return rateSync(window, () => {
    for (let n = 0; n < ROUND; n++) {
      const i = next();
      expect(store.get(key(i)).id === i, "get");
    }
    return ROUND;
  });
};

/** A synchronous store has nothing in flight: its 500 are a plain loop, as its sequential gets are. */
export const sync = {
  get: getSync,
  "get-500": getSync,

  "get-many"(store, window) {
    populateSync(store, POPULATION);
    const next = order(POPULATION);
    const asked = new Array(MANY);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n += MANY) {
        const keys = [];
        for (let m = 0; m < MANY; m++) keys.push(key((asked[m] = next())));
        const values = store.getMany(keys);
        for (let m = 0; m < MANY; m++) expect(values[m].id === asked[m], "get-many");
      }
      return ROUND;
    });
  },
};
