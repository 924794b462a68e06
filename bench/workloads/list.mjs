// A list of all 20,000 entries under a prefix, with the default options; the rate counts entries.

import { expect, LIST_ENTRIES, PREFIX } from "../data.mjs";
import { rate, rateSync } from "../measure.mjs";
import { populate, populateSync } from "../populate.mjs";

export const kv = {
  async list(store, window) {
    await populate(store, LIST_ENTRIES);
    return rate(window, async () => {
      let count = 0;
      for await (const entry of store.list({ prefix: PREFIX })) {
        expect(entry.value.id === count, "list");
        count += 1;
      }
      expect(count === LIST_ENTRIES, "list ends early");
      return count;
    });
  },
};

export const sync = {
  list(store, window) {
    populateSync(store, LIST_ENTRIES);
    return rateSync(window, () => {
      let count = 0;
      for (const entry of store.list(PREFIX)) {
        expect(entry.value.id === count, "list");
        count += 1;
      }
      expect(count === LIST_ENTRIES, "list ends early");
      return count;
    });
  },
};
