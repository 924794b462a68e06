// Duty: streams that fetch nothing ahead, so that a read gets the newest state.

import type { UnderlyingSource } from "node:stream/web";

/** A stream that fetches nothing ahead. It inherits no `type` or `size` that a program gave Object.prototype. */
export function readable<Item>(source: UnderlyingSource<Item>): ReadableStream<Item> {
  return new ReadableStream<Item>(
    {
      __proto__: null,
      start: (stream: ReadableStreamDefaultController<Item>) => source.start?.(stream),
      pull: (stream: ReadableStreamDefaultController<Item>) => source.pull?.(stream),
      cancel: (reason: unknown) => source.cancel?.(reason),
    } as UnderlyingSource<Item>,
    { __proto__: null, highWaterMark: 0 } as QueuingStrategy<Item>,
  );
}
