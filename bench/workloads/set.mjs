// Point writes over 10,000 existing keys, a fresh value each time. Every one is synced to the disk
// before it is acknowledged.

import { expect, key, order, POPULATION, value } from "../data.mjs";
import { rate, rateSync } from "../measure.mjs";
import { populate, populateSync } from "../populate.mjs";

const IN_FLIGHT = 500;
/** Operations between two reads of the clock. */
const ROUND = 20;

export const kv = {
  /** One set at a time, each awaited. */
  async set(store, window) {
    await populate(store, POPULATION);
    const next = order(POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const result = await store.set(key(i), value(i));
        expect(result.ok, "set");
      }
      return ROUND;
    });
  },

  /** 500 sets are called before the first is awaited; the next 500 follow when all have answered. */
  async "set-500"(store, window) {
    await populate(store, POPULATION);
    const next = order(POPULATION);
    const pending = new Array(IN_FLIGHT);
    return rate(window, async () => {
      for (let n = 0; n < IN_FLIGHT; n++) {
        const i = next();
        pending[n] = store.set(key(i), value(i));
      }
      for (const result of await Promise.all(pending)) expect(result.ok, "set-500");
      return IN_FLIGHT;
    });
  },
};

/** The same, of a store whose commits run on its writer thread. */
kv["set-thread"] = kv.set;

export const sync = {
  set(store, window) {
    populateSync(store, POPULATION);
    const next = order(POPULATION);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        store.set(key(i), value(i));
      }
      return ROUND;
    });
  },

  /** The equivalent of concurrent sets for a synchronous store: 500 in one transaction. */
  "set-500"(store, window) {
    populateSync(store, POPULATION);
    const next = order(POPULATION);
    return rateSync(window, () => {
      const pairs = [];
      for (let n = 0; n < IN_FLIGHT; n++) {
        const i = next();
        pairs.push([key(i), value(i)]);
      }
      store.setMany(pairs);
      return IN_FLIGHT;
    });
  },
};

sync["set-thread"] = sync.set;
