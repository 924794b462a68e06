// Duty: the pending writes of a transaction, key by key, and the entries that they result in. The
// addon computes those by the rules of the commit.

import { call } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer } from "../codec/writer.js";
import { keyOf } from "../codec/key-bytes.js";
import { CALL_PREVIEW, OP_END, SCAN_WHERE, STAMP_BYTES } from "../native/contract.js";
import { putSized } from "../native/frame.js";
import type { ReadSet } from "./read-set.js";
import { END_BYTES, readEnd } from "../read/scan.js";
import { type Segment, fill, putSegments } from "../write/segment.js";
import type { Session } from "../session/session.js";
import type { KvEntryKey } from "../model/types.js";

/** An entry that the transaction has written. It has no versionstamp before the commit. */
export interface OwnEntry {
  /** False: the transaction leaves no entry under the key. */
  readonly exists: boolean;
  /** Whether it matches the filter, if there is one. */
  readonly meets: boolean;
  readonly key: KvEntryKey;
  readonly value: unknown;
  /** Its expiry if it were committed now. */
  readonly expireAt: Date | null;
}

/** The pending writes of one key. */
interface Writes {
  /** In order, from the last one that does not depend on the stored entry. */
  segments: Segment[];
  /** The first of them does not depend on the stored entry. */
  blind: boolean;
  /** The resulting entry, once it was read. */
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

  /** A record was written; `blind`: its result does not depend on the stored entry. */
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
    return (writes.entry ??= this.#preview(key, writes, null, Number.NaN));
  }

  /** As {@link entry}, compared with a filter in CBOR in which `$now` is `now`. */
  compared(key: string, where: Buffer, now: number): Promise<OwnEntry> {
    return this.#preview(key, this.#keys.get(key)!, where, now);
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

  async #preview(
    key: string,
    { segments, blind }: Writes,
    where: Buffer | null,
    now: number,
  ): Promise<OwnEntry> {
    await fill(segments);
    const frame = new Writer();
    frame.u8(where === null ? 0 : SCAN_WHERE);
    if (where !== null) {
      frame.f64(now);
      putSized(frame, where);
    }
    putSegments(frame, segments, this.#session.remote);
    frame.u8(OP_END);
    const bytes = Buffer.from(key, "latin1");
    const before = this.#session.order.beforeKey(bytes, 0, bytes.length);
    if (before !== null) await before;
    const answer = await call(this.#session, CALL_PREVIEW, frame);
    const present = answer[0] === 1;
    const after = present ? 1 + STAMP_BYTES : 1;
    if (!blind) this.#reads.read(key, present ? answer.toString("latin1", 1, after) : null);
    const own = { key: keyOf(key), value: null, expireAt: null };
    if (answer[after] !== 1) return { ...own, exists: false, meets: false };
    const meets = answer[after + 1] === 1;
    const expireAt = readEnd(answer, after + 2);
    const encodingAt = after + 2 + END_BYTES;
    const value = decodeValue(answer[encodingAt], answer, encodingAt + 1, answer.length);
    return { ...own, exists: true, meets, value, expireAt };
  }
}

/** The index of the first key that is not below `bound`, in a sorted list. */
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
