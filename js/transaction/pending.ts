// Duty: the pending writes of a transaction, key by key, and the entries that they result in. The
// addon computes those by the rules of the commit.

import { call } from "../session/call.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer } from "../codec/writer.js";
import { keyOf } from "../codec/key-bytes.js";
import { CALL_PREVIEW, OP_END, PREVIEW_LIST, SCAN_WHERE, STAMP_BYTES } from "../native/contract.js";
import { putSized, readU32 } from "../native/frame.js";
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
  /** Its place in the requested list. */
  readonly place: Place | null;
}

/** Where an entry is in a list in an order. */
export interface Place {
  /** The flags of the steps of the list (STEP_). */
  readonly flags: number;
  /** Empty: it is not in the list. */
  readonly position: string;
}

/** What a preview of an entry reports: whether it matches a filter in CBOR, or its place in a list, by the request of that. */
type PreviewRequest =
  | { readonly where: Buffer; readonly now: number; readonly list?: undefined }
  | { readonly list: Buffer };

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
  /** The keys of all writes, in the order of these. */
  readonly #log: string[] = [];
  /** The keys in order; null when they have to be sorted again. */
  #sorted: string[] | null = null;

  constructor(session: Session, reads: ReadSet) {
    this.#session = session;
    this.#reads = reads;
  }

  /** A record was written; `blind`: its result does not depend on the stored entry. */
  add(key: string, blind: boolean, segment: Segment): void {
    this.#log.push(key);
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
    return (writes.entry ??= this.#preview(key, writes, null));
  }

  /** As {@link entry}, compared with a filter in CBOR in which `$now` is `now`. */
  compared(key: string, where: Buffer, now: number): Promise<OwnEntry> {
    return this.#preview(key, this.#keys.get(key)!, { where, now });
  }

  /** As {@link entry}, with its place in the list of a request. */
  placed(key: string, list: Buffer): Promise<OwnEntry> {
    return this.#preview(key, this.#keys.get(key)!, { list });
  }

  /** The number of writes so far. */
  get writes(): number {
    return this.#log.length;
  }

  /** The keys of the writes from a number on, each once. */
  since(write: number): Set<string> {
    return new Set(this.#log.slice(write));
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
    request: PreviewRequest | null,
  ): Promise<OwnEntry> {
    await fill(segments);
    const frame = new Writer();
    if (request === null) frame.u8(0);
    else if (request.list !== undefined) {
      frame.u8(PREVIEW_LIST);
      putSized(frame, request.list);
    } else {
      frame.u8(SCAN_WHERE);
      frame.f64(request.now);
      putSized(frame, request.where);
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
    const own = { key: keyOf(key), value: null, expireAt: null, place: null };
    if (answer[after] !== 1) return { ...own, exists: false, meets: false };
    const meets = answer[after + 1] === 1;
    let at = after + 2;
    let place: Place | null = null;
    if (request?.list !== undefined) {
      const end = at + 5 + readU32(answer, at + 1);
      place = { flags: answer[at], position: answer.toString("latin1", at + 5, end) };
      at = end;
    }
    const expireAt = readEnd(answer, at);
    const encodingAt = at + END_BYTES;
    const value = decodeValue(answer[encodingAt], answer, encodingAt + 1, answer.length);
    return { ...own, exists: true, meets, value, expireAt, place };
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
