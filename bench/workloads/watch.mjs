// From the call of set to its event at a watcher on the same handle, one at a time; the p50, in µs.

import { expect, value } from "../data.mjs";
import { quantile } from "../measure.mjs";

const WATCHED = ["watched"];

export const kv = {
  async watch(store, window) {
    const reader = store.watch([WATCHED]).getReader();
    await reader.read();
    let written = 0;

    async function once() {
      written += 1;
      const start = performance.now();
      const [result, event] = await Promise.all([
        store.set(WATCHED, value(written)),
        reader.read(),
      ]);
      const elapsedMs = performance.now() - start;
      expect(result.ok && event.value[0].value.id === written, "watch");
      return elapsedMs * 1000;
    }
    async function during(ms) {
      const samples = [];
      const end = performance.now() + ms;
      while (performance.now() < end) samples.push(await once());
      return samples;
    }

    await during(window.warmMs);
    const samples = await during(window.ms);
    await reader.cancel();
    return {
      value: quantile(samples, 0.5),
      p99: quantile(samples, 0.99),
      operations: samples.length,
    };
  },
};
