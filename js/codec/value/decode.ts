/**
 * CBOR to values (docs/format.md §2): the hot path of every read.
 *
 * Bytes are untrusted. The result is a value or RangeError "could not deserialize value": a length is
 * checked against the bytes that are left, nesting is bounded, and no code of the user runs. The
 * result does not refer to the bytes.
 */

import { coded } from "../../model/errors";
import type { Buffer } from "node:buffer";
import { KvU64 } from "../u64";
import { readBigint } from "./bigint";
import {
  Decoder,
  Malformed,
  SHAPED_DEPTH_MAX,
  UNSHARED,
  copyBytes,
  malformed,
  put,
} from "./decoder";
import { readObject, readTypedArray } from "./objects";
import { readRecord } from "./records";
import { readWtf8 } from "./strings";
import {
  ENCODING_BYTES,
  ENCODING_CBOR,
  ENCODING_LE64,
  ENCODING_V8,
  TAG_BIGINT_NEGATIVE,
  TAG_BIGINT_POSITIVE,
  TAG_DATE,
  TAG_MAP,
  TAG_OBJECT,
  TAG_SET,
  TAG_SHAREABLE,
  TAG_SHARED,
  TAG_WTF8,
} from "./tags";

/**
 * Arrays up to this many items are allocated at once; their count has been checked against the bytes
 * that are left.
 */
const ARRAY_ITEMS_AT_ONCE = 65536;

/** The encoding id of CBOR, for files that read only CBOR. */
export const CBOR = ENCODING_CBOR;

/** The head of an array of eight items: whether they are integers is not looked at first. */
const SMALL_ARRAY_HEAD_MAX = 0x88;
/** The head of tag 1. */
const DATE_HEAD = 0xc0 | TAG_DATE;

/** The slot of a shareable object that is not complete. */
const UNFINISHED = Symbol("unfinished");

/**
 * The value of `buf` from `start` to `end`, which has the encoding that `encodeValue` returned.
 *
 * Throws RangeError "could not deserialize value" for bytes that no encoder wrote, TypeError for an
 * unknown encoding.
 */
export function decodeValue(encoding: number, buf: Buffer, start: number, end: number): unknown {
  switch (encoding) {
    case ENCODING_CBOR:
      return decodeCbor(buf, start, end);
    case ENCODING_BYTES:
      return copyBytes(buf, start, end);
    case ENCODING_LE64:
      if (end - start !== 8) throw unreadable();
      return new KvU64(buf.readBigUInt64LE(start));
    case ENCODING_V8:
      throw unreadable();
    default:
      throw coded("CORRUPT", new TypeError(`The value encoding ${encoding} is unknown.`));
  }
}

/** `decodeValue` of a value that is known to be CBOR (queue messages). */
export function decodeCbor(buf: Buffer, start: number, end: number): unknown {
  const first = buf[start];
  // Most values that are not containers are one byte or a short text; all else sets up the decoder.
  if (end - start === 1) {
    if (first < 24) return first;
    if (first === 0xf5) return true;
    if (first === 0xf4) return false;
    if (first === 0xf6) return null;
    if (first === 0xf7) return undefined;
  }
  try {
    return decoder.run(buf, start, end);
  } catch (error) {
    decoder.forget();
    throw unreadable(error);
  }
}

function unreadable(cause?: unknown): RangeError {
  return cause === undefined || cause instanceof Malformed
    ? coded("CORRUPT", new RangeError("could not deserialize value"))
    : coded("CORRUPT", new RangeError("could not deserialize value", { cause }));
}

class ValueDecoder extends Decoder {
  /** After a fault the caller calls {@link forget}. */
  run(buf: Buffer, start: number, end: number): unknown {
    this.begin(buf, start, end);
    const value = this.value();
    if (this.pos !== end) malformed();
    if (this.slots.length > 0) this.slots = [];
    if (this.used > 0) this.forgetValues(this.used);
    return value;
  }

  /** Keeps nothing of a value alive that was not read to its end. */
  forget(): void {
    this.slots = [];
    this.forgetValues(this.values.length);
  }

  /**
   * Large on purpose: engines copy a small function into each caller, and compile it again there. Most of what a
   * program's first values cost is compiling.
   */
  value(): unknown {
    const { buf, end } = this;
    const at = this.pos;
    if (at >= end) malformed();
    const byte = buf[at];
    this.pos = at + 1;
    if (byte < 24) return byte;
    switch (byte >> 5) {
      case 0:
        if (byte === 0x18) {
          this.pos = at + 2;
          const value = buf[at + 1];
          return value >= 24 ? value : malformed();
        }
        if (byte === 0x19) {
          this.pos = at + 3;
          const value = (buf[at + 1] << 8) | buf[at + 2];
          return value >= 0x100 ? value : malformed();
        }
        if (byte === 0x1a) {
          this.pos = at + 5;
          const value =
            buf[at + 1] * 0x100_0000 + ((buf[at + 2] << 16) | (buf[at + 3] << 8) | buf[at + 4]);
          return value >= 0x1_0000 ? value : malformed();
        }
        return this.argument(byte);
      case 1: {
        const magnitude = this.argument(byte) + 1;
        return magnitude > Number.MAX_SAFE_INTEGER ? malformed() : -magnitude;
      }
      case 2:
        return this.take(byte);
      case 3:
        if (byte < 0x78) {
          this.pos = at + byte - 0x5f;
          return this.shortText(at + 1, byte - 0x60);
        }
        return this.text(byte);
      case 4: {
        if (byte > SMALL_ARRAY_HEAD_MAX) return this.array(this.argument(byte), UNSHARED);
        const count = byte - 0x80;
        if (count >= end - at) malformed();
        this.enter();
        const array: unknown[] = count > 0 ? new Array(count) : [];
        for (let i = 0; i < count; ) {
          if (buf[this.pos] === 0xfb) i = this.numbers(array, i, count);
          if (i < count) array[i++] = this.value();
        }
        this.depth--;
        return array;
      }
      case 5:
        return this.map(this.argument(byte), UNSHARED);
      case 6:
        return byte === DATE_HEAD ? this.#date() : this.tagged(this.argument(byte), UNSHARED);
      default:
        switch (byte) {
          case 0xfb:
            return this.float();
          case 0xf4:
            return false;
          case 0xf5:
            return true;
          case 0xf6:
            return null;
          case 0xf7:
            return undefined;
          default:
            return malformed();
        }
    }
  }

  /** A value that must be a string: text, or tag 273. */
  string(): string {
    const byte = this.next();
    if (byte >> 5 === 3) return this.text(byte);
    return byte >> 5 === 6 && this.argument(byte) === TAG_WTF8 ? readWtf8(this) : malformed();
  }

  array(count: number, slot: number): unknown[] {
    if (count > this.end - this.pos) malformed();
    this.enter();
    const array: unknown[] = count > 0 && count <= ARRAY_ITEMS_AT_ONCE ? new Array(count) : [];
    this.fill(slot, array);
    if (count <= ARRAY_ITEMS_AT_ONCE) {
      for (let i = 0; i < count; ) {
        const byte = this.buf[this.pos];
        if (byte <= 0x1a || byte === 0xfb) i = this.numbers(array, i, count);
        if (i < count) array[i++] = this.value();
      }
    } else for (let i = 0; i < count; i++) array.push(this.value());
    this.depth--;
    return array;
  }

  map(count: number, slot: number): object {
    if (count * 2 > this.end - this.pos) malformed();
    this.enter();
    if (slot === UNSHARED && this.depth <= SHAPED_DEPTH_MAX) {
      const record = readRecord(this, count);
      this.depth--;
      return record;
    }
    const record: Record<string, unknown> = this.fill(slot, {});
    for (let i = 0; i < count; i++) {
      const key = this.string();
      put(record, key, this.value());
    }
    this.depth--;
    return record;
  }

  tagged(tag: number, slot: number): unknown {
    switch (tag) {
      case TAG_DATE:
        return this.fill(slot, this.#date());
      case TAG_BIGINT_POSITIVE:
      case TAG_BIGINT_NEGATIVE:
        return slot === UNSHARED ? readBigint(this, tag) : malformed();
      case TAG_OBJECT:
        return readObject(this, slot);
      case TAG_SHAREABLE:
        return slot === UNSHARED ? this.#shareable() : malformed();
      case TAG_SHARED:
        return slot === UNSHARED ? this.#shared() : malformed();
      case TAG_SET:
        return this.#set(slot);
      case TAG_MAP:
        return this.#mapObject(slot);
      case TAG_WTF8:
        return slot === UNSHARED ? readWtf8(this) : malformed();
      default:
        return this.fill(slot, readTypedArray(this, tag));
    }
  }

  /**
   * Tag 28: an object that others refer to. It gets its slot before its parts are read, because they
   * may refer to it.
   */
  #shareable(): unknown {
    const slot = this.slots.push(UNFINISHED) - 1;
    const byte = this.next();
    switch (byte >> 5) {
      case 2:
        return this.fill(slot, this.take(byte));
      case 4:
        return this.array(this.argument(byte), slot);
      case 5:
        return this.map(this.argument(byte), slot);
      case 6:
        return this.tagged(this.argument(byte), slot);
      default:
        return malformed();
    }
  }

  #shared(): unknown {
    const byte = this.next();
    if (byte >> 5 !== 0) malformed();
    const index = this.argument(byte);
    if (index >= this.slots.length) malformed();
    const value = this.slots[index];
    return value === UNFINISHED ? malformed() : value;
  }

  #date(): Date {
    if (this.next() !== 0xfb) malformed();
    const seconds = this.float64();
    let ms = Math.round(seconds * 1000);
    // Beyond 2^42 seconds the product can be closer to half a millisecond than to the whole one
    // that was meant.
    if (ms / 1000 !== seconds) ms += ms / 1000 < seconds ? 1 : -1;
    const date = new Date(ms);
    // Only seconds that some Date has.
    return Object.is(date.getTime() / 1000, seconds) ? date : malformed();
  }

  #set(slot: number): Set<unknown> {
    const byte = this.next();
    if (byte >> 5 !== 4) malformed();
    const count = this.argument(byte);
    if (count > this.end - this.pos) malformed();
    this.enter();
    const set = this.fill(slot, new Set<unknown>());
    for (let i = 0; i < count; i++) set.add(this.value());
    this.depth--;
    return set.size === count ? set : malformed();
  }

  #mapObject(slot: number): Map<unknown, unknown> {
    const byte = this.next();
    if (byte >> 5 !== 5) malformed();
    const count = this.argument(byte);
    if (count * 2 > this.end - this.pos) malformed();
    this.enter();
    const map = this.fill(slot, new Map<unknown, unknown>());
    for (let i = 0; i < count; i++) {
      const key = this.value();
      map.set(key, this.value());
    }
    this.depth--;
    return map.size === count ? map : malformed();
  }
}

/** Decoding runs no code of the user, so one decoder is never in use twice. */
const decoder = new ValueDecoder();
