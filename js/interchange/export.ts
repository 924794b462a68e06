// Duty: encodes the entries of a database as lines of NDJSON, in chunks of bytes for a stream.
// Invariant: constant memory: one page of the list and one chunk. Each page is from one snapshot, the
// whole export is not.

import type { Kv } from "../api/kv.js";
import type { KvKey, KvListSelector } from "../model/types.js";
import { encodeLine } from "./encode.js";
import { listWithExpiry } from "./list-with-expiry.js";

/** Bytes that are collected before they are written. */
const CHUNK_BYTES = 256 * 1024;
/** Most UTF-8 bytes of a code unit. */
const BYTES_PER_UNIT = 3;
/** Entries of one read. */
const PAGE_ENTRIES = 500;

export interface ExportOptions {
  /** Only keys that extend this one. Default: all. */
  prefix?: KvKey | undefined;
  /** Continue after this key. */
  after?: KvKey | undefined;
  signal?: AbortSignal | undefined;
  /** Called if the database does not send the expiry of its entries. */
  onWithoutExpiry?: () => void;
}

/** A chunk, how many entries are in it, and the key of the last of them. */
export interface ExportChunk {
  readonly bytes: Buffer;
  readonly entries: number;
  readonly lastKey: KvKey;
}

export async function* exportChunks(
  kv: Kv,
  options: ExportOptions = {},
): AsyncGenerator<ExportChunk> {
  const { prefix = [], after, signal, onWithoutExpiry } = options;
  let lines = new Lines();
  let lastKey: KvKey = [];
  let isFirst = true;
  const list = await listWithExpiry(
    kv,
    selectorAfter(prefix, after),
    PAGE_ENTRIES,
    onWithoutExpiry,
  );
  for await (const entry of list) {
    // A continued range starts at the last key itself.
    const isBound = isFirst && after !== undefined && sameKey(entry.key, after);
    isFirst = false;
    if (isBound) continue;
    const line = encodeLine(entry);
    lines.add(typeof line === "string" ? line : await line);
    lastKey = entry.key;
    if (lines.end < CHUNK_BYTES) continue;
    yield { bytes: lines.bytes, entries: lines.count, lastKey };
    lines = new Lines();
    if (signal?.aborted) return;
  }
  if (lines.count > 0) yield { bytes: lines.bytes, entries: lines.count, lastKey };
}

/**
 * Lines as bytes. Each line is encoded at once: collecting many strings first costs more in garbage
 * collection than it saves.
 */
class Lines {
  count = 0;
  end = 0;
  #buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES + CHUNK_BYTES / 4);

  add(line: string): void {
    const most = this.end + line.length * BYTES_PER_UNIT + 1;
    if (most > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(most);
      this.#buffer.copy(larger, 0, 0, this.end);
      this.#buffer = larger;
    }
    this.end += this.#buffer.write(line, this.end);
    this.#buffer[this.end++] = LINE_END;
    this.count++;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.end);
  }
}

const LINE_END = 0x0a;

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
