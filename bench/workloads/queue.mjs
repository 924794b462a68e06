// `queue`: messages from enqueue to a finished handler, one listener on the same handle. All messages are
// enqueued, 500 in flight, while the listener runs; the clock stops when the last handler has ended.

import { expect, value } from "../data.mjs";

const IN_FLIGHT = 500;

/** Messages of a named queue between their enqueue and the end of their ack. */
const NAMED_IN_FLIGHT = 100;

export const kv = {
  /** enqueue + receive + ack; the reference, which has no named queues, runs its listenQueue. */
  async "queue-named"(store, window) {
    if (store.queue === undefined) return await kv.queue(store, window);
    const queue = store.queue("jobs");
    async function burst(messages) {
      let left = messages;
      const start = performance.now();
      await Promise.all(
        Array.from({ length: NAMED_IN_FLIGHT }, async () => {
          while (left-- > 0) {
            await queue.enqueue(value(left));
            const message = await queue.receive({ wait: 10_000 });
            expect(await message.ack(), "ack");
          }
        }),
      );
      return performance.now() - start;
    }
    await burst(Math.ceil(window.messages / 10));
    const elapsedMs = await burst(window.messages);
    expect((await queue.stats()).total === 0, "an empty queue");
    return { value: (window.messages / elapsedMs) * 1000, operations: window.messages, elapsedMs };
  },

  async queue(store, window) {
    const seen = new Set();
    let delivered = 0;
    let expected = 0;
    let finished;
    const listening = store.listenQueue(async (message) => {
      delivered += 1;
      seen.add(message.id);
      if (seen.size === expected) finished();
    });

    let sent = 0;
    async function burst(messages) {
      expected = sent + messages;
      const done = new Promise((resolve) => (finished = resolve));
      const start = performance.now();
      while (sent < expected) {
        const pending = [];
        for (let n = 0; n < IN_FLIGHT && sent < expected; n++) {
          pending.push(store.enqueue(value(sent++)));
        }
        for (const { ok } of await Promise.all(pending)) expect(ok, "enqueue");
      }
      await done;
      return performance.now() - start;
    }

    await burst(Math.ceil(window.messages / 10));
    const elapsedMs = await burst(window.messages);
    await store.close();
    await listening;
    store.close = () => {};
    return {
      value: (window.messages / elapsedMs) * 1000,
      operations: window.messages,
      elapsedMs,
      deliveredTwice: delivered - seen.size,
    };
  },
};
