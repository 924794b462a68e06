// Duty: what a transaction has written so far, key by key, and what an entry comes to with it: the
// addon is asked, by the rules of the commit itself.

import { call } from "./call.js";
import { decodeKey } from "./codec/key.js";
import { decodeValue } from "./codec/value/decode.js";
import { Writer } from "./codec/writer.js";
import { CALL_PREVIEW, OP_END, STAMP_BYTES } from "./native.js";
import type { ReadSet } from "./read-set.js";
import { type Segment, fill, putSegments } from "./segment.js";
import type { Session } from "./session.js";
import type { KvKey } from "./types.js";

/** An entry that the transaction has written. It has no versionstamp before the commit. */
export interface OwnEntry {
  /** False: the transaction leaves nothing under the key. */
  readonly exists: boolean;
  readonly key: KvKey;
  readonly value: unknown;
}

/** What was written under one key. */
interface Writes {
  /** In order, from the last one that did not depend on what was there. */
  segments: Segment[];
  /** The first of them does not depend on what was there. */
  blind: boolean;
  /** What they come to, once it was asked for. */
  entry: Promise<OwnEntry> | null;
}

export class Pending {
  readonly #session: Session;
  readonly #reads: ReadSet;
  readonly #keys = new Map<string, Writes>();
  /** The keys in order; null when they have to be sorted again. */
  #sorted: string[] | null = null;

  constructor(session: Session, reads: ReadSet) {
    this.#session = session;
    this.#reads = reads;
  }

  /** A record was written; `blind`: what it leaves does not depend on what was there. */
  add(key: string, blind: boolean, segment: Segment): void {
    const writes = this.#keys.get(key);
    if (writes === undefined) {
      this.#keys.set(key, { segments: [segment], blind, entry: null });
      this.#sorted = null;
      return;
    }
    writes.segments = blind ? [segment] : [...writes.segments, segment];
    writes.blind ||= blind;
    writes.entry = null;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** The entry under a key that {@link has}. */
  entry(key: string): Promise<OwnEntry> {
    const writes = this.#keys.get(key)!;
    return (writes.entry ??= this.#preview(key, writes));
  }

  /**
   * The first key with `start <= key < end` that comes after `last` (null: the first of all), in
   * reverse the last one before it.
   */
  next(start: string, end: string, last: string | null, reverse: boolean): string | undefined {
    const keys = (this.#sorted ??= [...this.#keys.keys()].sort());
    const at = reverse
      ? firstNotBelow(keys, last ?? end) - 1
      : last === null
        ? firstNotBelow(keys, start)
        : firstNotBelow(keys, last + "\0");
    const key: string | undefined = keys[at];
    return key !== undefined && key >= start && key < end ? key : undefined;
  }

  async #preview(key: string, { segments, blind }: Writes): Promise<OwnEntry> {
    await fill(segments);
    const frame = new Writer();
    putSegments(frame, segments);
    frame.u8(OP_END);
    const answer = await call(this.#session, CALL_PREVIEW, frame);
    const present = answer[0] === 1;
    const after = present ? 1 + STAMP_BYTES : 1;
    if (!blind) this.#reads.read(key, present ? answer.toString("latin1", 1, after) : null);
    const bytes = Buffer.from(key, "latin1");
    const exists = answer[after] === 1;
    const start = after + 2;
    const value = exists ? decodeValue(answer[after + 1], answer, start, answer.length) : null;
    return { exists, key: decodeKey(bytes, 0, bytes.length), value };
  }
}

/** The place of the first of sorted keys that is not below `bound`. */
function firstNotBelow(keys: readonly string[], bound: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle] < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
