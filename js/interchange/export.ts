// Duty: entries of a database to lines of NDJSON, in chunks of bytes that a stream takes.
// Invariant: constant memory: one page of the list and one chunk. Each page is one state of the
// database, the whole is not.

import type { Kv } from "../kv.js";
import type { KvKey, KvListSelector } from "../types.js";
import { type ExportedEntry, encodeLine } from "./encode.js";

/** Characters that are gathered before they are written. */
const CHUNK_CHARS = 256 * 1024;

export interface ExportOptions {
  /** Only keys that extend this one. Default: all. */
  prefix?: KvKey | undefined;
  /** Go on behind this key. */
  after?: KvKey | undefined;
  signal?: AbortSignal;
}

/** A chunk, how many entries are in it, and the key of the last of them. */
export interface ExportChunk {
  readonly text: string;
  readonly entries: number;
  readonly lastKey: KvKey;
}

export async function* exportChunks(kv: Kv, options: ExportOptions = {}): AsyncGenerator<ExportChunk> {
  const { prefix = [], after, signal } = options;
  let text = "";
  let entries = 0;
  let lastKey: KvKey = [];
  const list = kv.list(selectorAfter(prefix, after), { batchSize: 500, withExpiry: true } as object);
  for await (const entry of list as AsyncIterable<ExportedEntry>) {
    // The bound of a range that goes on is the last key itself.
    if (after !== undefined && entries === 0 && text === "" && sameKey(entry.key, after)) continue;
    text += `${encodeLine(entry)}\n`;
    entries++;
    lastKey = entry.key;
    if (text.length < CHUNK_CHARS) continue;
    yield { text, entries, lastKey };
    text = "";
    entries = 0;
    if (signal?.aborted) return;
  }
  if (entries > 0) yield { text, entries, lastKey };
}

function selectorAfter(prefix: KvKey, after: KvKey | undefined): KvListSelector {
  return after === undefined ? { prefix } : { prefix, start: after };
}

function sameKey(a: KvKey, b: KvKey): boolean {
  return a.length === b.length && a.every((part, i) => samePart(part, b[i]));
}

function samePart(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return Object.is(a, b);
}
