/**
 * CBOR to values (docs/format.md §2): the hot path of every read.
 *
 * Bytes are not trusted. Whatever they are, the answer is a value or RangeError "could not
 * deserialize value": no length is believed before the bytes behind it are seen to be there,
 * nesting is bounded, and no code of the user's is run. Nothing that is returned refers to the
 * bytes that were read.
 */

import { Buffer } from "node:buffer";
import { latin1, readAscii, readUtf8 } from "../text";
import { KvU64 } from "../u64";
import { readBigint } from "./bigint";
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
  VALUE_DEPTH_MAX,
} from "./tags";

/** Bytes up to this many are copied by a loop; above, by the engine. */
const LOOP_COPY_BYTES_MAX = 48;
/**
 * Text up to this many bytes is looked through for what is not ASCII; beyond, the engine's own
 * decoder is faster.
 */
const CHECKED_TEXT_BYTES_MAX = 192;
/** ASCII text up to this many bytes is made from its character codes. */
const SHORT_TEXT_BYTES_MAX = 8;
/**
 * ASCII text of a longer value is cut out of a string made of this many bytes at once. A string
 * that lives on keeps at most that much alive.
 */
const WINDOW_BYTES = 4096;
/**
 * Arrays up to this many items are allocated at once; the count has been held against the bytes
 * left.
 */
const ARRAY_ITEMS_AT_ONCE = 65536;

/** The encoding id of CBOR, for those who read nothing else. */
export const CBOR = ENCODING_CBOR;

/** Below this depth objects are read without their shapes: that takes less stack. */
const SHAPED_DEPTH_MAX = 64;

/** What a shareable object is until it exists. */
const UNFINISHED = Symbol("unfinished");

/** No slot: the object is not shared. */
export const UNSHARED = -1;

/** A fault in the bytes. Never leaves this room. */
class Malformed extends Error {}

/** Ends the decoding of a value; every fault ends here. */
export function malformed(): never {
  throw new Malformed();
}

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
      throw new TypeError(`The value encoding ${encoding} is unknown.`);
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
    throw unreadable(error);
  }
}

function unreadable(cause?: unknown): RangeError {
  return cause === undefined || cause instanceof Malformed
    ? new RangeError("could not deserialize value")
    : new RangeError("could not deserialize value", { cause });
}

/** A plain array over a buffer of its own. */
export function copyBytes(buf: Buffer, start: number, end: number): Uint8Array {
  const length = end - start;
  if (length > LOOP_COPY_BYTES_MAX) {
    const from = buf.byteOffset + start;
    return new Uint8Array((buf.buffer as ArrayBuffer).slice(from, from + length));
  }
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = buf[start + i];
  return bytes;
}

const f64 = new Float64Array(1);
const f64Bytes = new Uint8Array(f64.buffer);
const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

export class Decoder {
  buf: Buffer = Buffer.alloc(0);
  pos = 0;
  /** Behind the value; nothing at or after it belongs to it. */
  end = 0;
  depth = 0;
  /** The bytes [windowStart, windowEnd) as one string, for text to be cut out of. */
  #window = "";
  #windowStart = 0;
  #windowEnd = 0;
  #slots: unknown[] = [];

  run(buf: Buffer, start: number, end: number): unknown {
    this.buf = buf;
    this.pos = start;
    this.end = end;
    this.depth = 0;
    this.#windowEnd = 0;
    if (end > buf.length) malformed();
    try {
      const value = this.value();
      if (this.pos !== end) malformed();
      return value;
    } finally {
      if (this.#slots.length > 0) this.#slots = [];
    }
  }

  value(): unknown {
    const at = this.pos;
    if (at >= this.end) malformed();
    const byte = this.buf[at];
    this.pos = at + 1;
    if (byte < 24) return byte;
    switch (byte >> 5) {
      case 0:
        return this.argument(byte);
      case 1: {
        const magnitude = this.argument(byte) + 1;
        return magnitude > Number.MAX_SAFE_INTEGER ? malformed() : -magnitude;
      }
      case 2:
        return this.take(byte);
      case 3:
        return this.text(byte);
      case 4:
        return this.array(this.argument(byte), UNSHARED);
      case 5:
        return this.map(this.argument(byte), UNSHARED);
      case 6:
        return this.tagged(this.argument(byte), UNSHARED);
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

  /** The argument of the head whose first byte was just read: below 2^53, in its shortest form. */
  argument(byte: number): number {
    const { buf, pos } = this;
    const info = byte & 31;
    if (info < 24) return info;
    if (info === 24) {
      this.pos = pos + 1;
      const value = buf[pos];
      return value >= 24 ? value : malformed();
    }
    if (info === 25) {
      this.pos = pos + 2;
      const value = (buf[pos] << 8) | buf[pos + 1];
      return value >= 0x100 ? value : malformed();
    }
    if (info === 26) {
      this.pos = pos + 4;
      const value =
        buf[pos] * 0x100_0000 + ((buf[pos + 1] << 16) | (buf[pos + 2] << 8) | buf[pos + 3]);
      return value >= 0x1_0000 ? value : malformed();
    }
    if (info !== 27) return malformed();
    this.pos = pos + 8;
    const high =
      buf[pos] * 0x100_0000 + ((buf[pos + 1] << 16) | (buf[pos + 2] << 8) | buf[pos + 3]);
    const low =
      buf[pos + 4] * 0x100_0000 + ((buf[pos + 5] << 16) | (buf[pos + 6] << 8) | buf[pos + 7]);
    if (!(high > 0 && high < 0x20_0000)) return malformed();
    return high * 0x1_0000_0000 + low;
  }

  /** The float64 behind `fb`: one that the encoder does not write as an integer. */
  float(): number {
    const value = this.float64();
    if (Number.isSafeInteger(value) && (value !== 0 || 1 / value > 0)) malformed();
    return value;
  }

  float64(): number {
    const { buf, pos } = this;
    if (pos + 8 > this.end) malformed();
    this.pos = pos + 8;
    if (littleEndian) {
      f64Bytes[7] = buf[pos];
      f64Bytes[6] = buf[pos + 1];
      f64Bytes[5] = buf[pos + 2];
      f64Bytes[4] = buf[pos + 3];
      f64Bytes[3] = buf[pos + 4];
      f64Bytes[2] = buf[pos + 5];
      f64Bytes[1] = buf[pos + 6];
      f64Bytes[0] = buf[pos + 7];
    } else {
      for (let i = 0; i < 8; i++) f64Bytes[i] = buf[pos + i];
    }
    const value = f64[0];
    if (
      value !== value &&
      !(buf[pos] === 0x7f && buf[pos + 1] === 0xf8 && isZero(buf, pos + 2, pos + 8))
    )
      malformed();
    return value;
  }

  /** Moves over `length` bytes, which must be there. Returns where they start. */
  skip(length: number): number {
    const at = this.pos;
    if (length > this.end - at) malformed();
    this.pos = at + length;
    return at;
  }

  /** A byte string's bytes, copied. */
  take(byte: number): Uint8Array {
    const length = this.argument(byte);
    const at = this.skip(length);
    return copyBytes(this.buf, at, at + length);
  }

  /** A byte string where nothing else may stand. */
  bytes(): Uint8Array {
    const byte = this.next();
    return byte >> 5 === 2 ? this.take(byte) : malformed();
  }

  /** The next byte, moved over. */
  next(): number {
    if (this.pos >= this.end) malformed();
    return this.buf[this.pos++];
  }

  /** The text whose first byte was just read. */
  text(byte: number): string {
    const length = byte < 0x78 ? byte - 0x60 : this.argument(byte);
    const at = this.skip(length);
    return length <= CHECKED_TEXT_BYTES_MAX
      ? this.shortText(at, length)
      : (readUtf8(this.buf, at, at + length) ?? malformed());
  }

  /** The text of these bytes; reads them, but does not move. */
  shortText(at: number, length: number): string {
    const { buf } = this;
    const end = at + length;
    if (end > this.end) malformed();
    let high = 0;
    for (let i = at; i < end; i++) high |= buf[i];
    if (high >= 0x80) return readUtf8(buf, at, end) ?? malformed();
    if (length <= SHORT_TEXT_BYTES_MAX) return readAscii(buf, at, end);
    return this.ascii(at, end);
  }

  /** ASCII text that is not short. */
  ascii(at: number, end: number): string {
    if (end <= this.#windowEnd && at >= this.#windowStart) {
      return this.#window.substring(at - this.#windowStart, end - this.#windowStart);
    }
    if (end - at > WINDOW_BYTES >> 2 || this.end - at < end - at + 64)
      return latin1(this.buf, at, end);
    this.#windowStart = at;
    this.#windowEnd = Math.min(at + WINDOW_BYTES, this.end);
    this.#window = latin1(this.buf, at, this.#windowEnd);
    return this.#window.substring(0, end - at);
  }

  /** A string where nothing else may stand: text, or tag 273. */
  string(): string {
    const byte = this.next();
    if (byte >> 5 === 3) return this.text(byte);
    return byte >> 5 === 6 && this.argument(byte) === TAG_WTF8 ? readWtf8(this) : malformed();
  }

  /** An integer from 0 where nothing else may stand. */
  index(): number {
    const byte = this.next();
    return byte >> 5 === 0 ? this.argument(byte) : malformed();
  }

  enter(): void {
    if (++this.depth > VALUE_DEPTH_MAX) malformed();
  }

  array(count: number, slot: number): unknown[] {
    if (count > this.end - this.pos) malformed();
    this.enter();
    const array: unknown[] = count > 0 && count <= ARRAY_ITEMS_AT_ONCE ? new Array(count) : [];
    this.fill(slot, array);
    if (count <= ARRAY_ITEMS_AT_ONCE) for (let i = 0; i < count; i++) array[i] = this.value();
    else for (let i = 0; i < count; i++) array.push(this.value());
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

  /** Makes `value` what references to this slot mean. Returns it. */
  fill<T>(slot: number, value: T): T {
    if (slot !== UNSHARED) this.#slots[slot] = value;
    return value;
  }

  /**
   * Tag 28: an object that is referred to. It has its slot before its parts are read: they may
   * refer to it.
   */
  #shareable(): unknown {
    const slot = this.#slots.push(UNFINISHED) - 1;
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
    if (index >= this.#slots.length) malformed();
    const value = this.#slots[index];
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

/** Makes `key` an own property, whatever its name. */
export function put(record: Record<string, unknown>, key: string, value: unknown): void {
  // In the prototype's chain, or there already: an assignment might run a setter, or hide a fault.
  if (key in record) define(record, key, value);
  else record[key] = value;
}

/** Makes `key` an own property, which it must not be yet. */
export function define(record: object, key: string, value: unknown): void {
  if (Object.prototype.hasOwnProperty.call(record, key)) malformed();
  Object.defineProperty(record, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

function isZero(buf: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (buf[i] !== 0) return false;
  return true;
}

/** Decoding runs no code of the user's, so one decoder is never entered twice. */
const decoder = new Decoder();
