// Duty: entries of a database to lines of NDJSON, in chunks of bytes that a stream takes.
// Invariant: constant memory: one page of the list and one chunk. Each page is one state of the
// database, the whole is not.

import type { Kv } from "../kv.js";
import type { KvKey, KvListSelector } from "../types.js";
import { encodeLine } from "./encode.js";
import { listWithEnds } from "./ends.js";

/** Characters that are gathered before they are written. */
const CHUNK_CHARS = 256 * 1024;
/** Entries of one read. */
const PAGE_ENTRIES = 500;

export interface ExportOptions {
  /** Only keys that extend this one. Default: all. */
  prefix?: KvKey | undefined;
  /** Go on behind this key. */
  after?: KvKey | undefined;
  signal?: AbortSignal;
  /** Called when the database does not tell when its entries end. */
  untold?: () => void;
}

/** A chunk, how many entries are in it, and the key of the last of them. */
export interface ExportChunk {
  readonly text: string;
  readonly entries: number;
  readonly lastKey: KvKey;
}

export async function* exportChunks(kv: Kv, options: ExportOptions = {}): AsyncGenerator<ExportChunk> {
  const { prefix = [], after, signal, untold } = options;
  let text = "";
  let entries = 0;
  let lastKey: KvKey = [];
  const list = await listWithEnds(kv, selectorAfter(prefix, after), PAGE_ENTRIES, untold);
  for await (const entry of list) {
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
