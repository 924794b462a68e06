// Sequential reads and writes of 64 objects of about 24 KB (300 rows of five fields).

import { expect, key, LARGE_POPULATION, largeValue, order } from "../data.mjs";
import { rate, rateSync } from "../measure.mjs";
import { populate, populateSync } from "../populate.mjs";

/** Operations between two reads of the clock. */
const ROUND = 10;
/** Writes per commit while filling: 16 × 24 KB stays under the 800 KiB of one commit. */
const FILL = { value: largeValue, batch: 16 };

export const kv = {
  async "get-large"(store, window) {
    await populate(store, LARGE_POPULATION, FILL);
    const next = order(LARGE_POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const entry = await store.get(key(i));
        expect(entry.value.id === i && entry.value.rows[299].stock === 299, "get-large");
      }
      return ROUND;
    });
  },

  async "set-large"(store, window) {
    await populate(store, LARGE_POPULATION, FILL);
    const next = order(LARGE_POPULATION);
    return rate(window, async () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const result = await store.set(key(i), largeValue(i));
        expect(result.ok, "set-large");
      }
      return ROUND;
    });
  },
};

export const sync = {
  "get-large"(store, window) {
    populateSync(store, LARGE_POPULATION, FILL);
    const next = order(LARGE_POPULATION);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        const value = store.get(key(i));
        expect(value.id === i && value.rows[299].stock === 299, "get-large");
      }
      return ROUND;
    });
  },

  "set-large"(store, window) {
    populateSync(store, LARGE_POPULATION, FILL);
    const next = order(LARGE_POPULATION);
    return rateSync(window, () => {
      for (let n = 0; n < ROUND; n++) {
        const i = next();
        store.set(key(i), largeValue(i));
      }
      return ROUND;
    });
  },
};
