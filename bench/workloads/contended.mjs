// Many writers on one key. Both workloads count only commits that succeeded, and compare the key's
// final value with that count.

import { expect, value } from "../data.mjs";
import { rate } from "../measure.mjs";

const SUMS_IN_FLIGHT = 500;
const LOOPS = 16;
const COUNTER = ["counter"];

export const kv = {
  /** 500 `sum(key, 1n)` on one key are called before the first is awaited. */
  async "sum-500"(store, window) {
    let committed = 0n;
    const pending = new Array(SUMS_IN_FLIGHT);
    const result = await rate(window, async () => {
      for (let n = 0; n < SUMS_IN_FLIGHT; n++) {
        pending[n] = store.atomic().sum(COUNTER, 1n).commit();
      }
      for (const { ok } of await Promise.all(pending)) expect(ok, "sum-500");
      committed += BigInt(SUMS_IN_FLIGHT);
      return SUMS_IN_FLIGHT;
    });
    expect((await store.get(COUNTER)).value.value === committed, "sum-500 lost a sum");
    return result;
  },

  /** 16 loops, each: get, then commit check + set of a value with the next number, again until it is accepted. */
  async "check-set"(store, window) {
    await store.set(COUNTER, value(0));
    let committed = 0;
    let refused = 0;
    let failed = 0;
    let last;

    /** One loop's next success. An error is counted and retried, as a user would have to. */
    async function increment() {
      for (;;) {
        const entry = await store.get(COUNTER);
        const { ok } = await store
          .atomic()
          .check(entry)
          .set(COUNTER, value(entry.value.id + 1))
          .commit()
          .catch((error) => {
            failed += 1;
            last = error;
            return { ok: false };
          });
        if (ok) return;
        refused += 1;
        if (failed > 10_000) throw last;
      }
    }
    async function phase(ms) {
      const start = performance.now();
      let operations = 0;
      const loop = async () => {
        while (performance.now() - start < ms) {
          await increment();
          operations += 1;
        }
      };
      await Promise.all(Array.from({ length: LOOPS }, loop));
      committed += operations;
      return { operations, elapsedMs: performance.now() - start };
    }

    await phase(window.warmMs);
    const { operations, elapsedMs } = await phase(window.ms);
    expect((await store.get(COUNTER)).value.id === committed, "check-set lost a commit");
    return { value: (operations / elapsedMs) * 1000, operations, elapsedMs, refused, failed };
  },
};
