// Duty: all entries of a range with their ends, where the database tells them.
// Invariant: what is not told is said, once, before the first entry: nothing is lost in silence.

import { KvError } from "../errors.js";
import type { Kv } from "../kv.js";
import type { KvListSelector } from "../types.js";
import type { ExportedEntry } from "./encode.js";

/** `untold`: called when the entries come without their ends. */
export async function* listWithEnds(
  kv: Kv,
  selector: KvListSelector,
  batchSize: number,
  untold?: () => void,
): AsyncGenerator<ExportedEntry> {
  const ended = kv.list(selector, { batchSize, withExpiry: true });
  let first: IteratorResult<ExportedEntry, unknown>;
  try {
    first = await ended.next();
  } catch (error) {
    // A plain server of KV Connect has no word for them.
    if (!(error instanceof KvError) || error.code !== "UNSUPPORTED") throw error;
    untold?.();
    yield* kv.list(selector, { batchSize }) as AsyncIterable<ExportedEntry>;
    return;
  }
  if (first.done) return;
  yield first.value;
  yield* ended as AsyncIterable<ExportedEntry>;
}
