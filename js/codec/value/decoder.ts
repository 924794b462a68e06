/**
 * The bytes of an encoded value, read part by part: heads, numbers, byte strings and text. decode.ts
 * puts values together from them.
 *
 * Bytes are untrusted: a length is checked against the bytes that are left before it is used.
 */

import { Buffer } from "node:buffer";
import { ASCII, SHORT_TEXT_BYTES_MAX, shortText } from "../short-text";
import { latin1, readUtf8 } from "../text";
import { defineProperty } from "../../model/define";
import { VALUE_DEPTH_MAX } from "../../model/limits.js";

/** Bytes up to this many are copied by a loop; above, by the engine. */
const LOOP_COPY_BYTES_MAX = 48;
/**
 * Text up to this many bytes is scanned for bytes that are not ASCII; for longer text the decoder of
 * the engine is faster.
 */
const CHECKED_TEXT_BYTES_MAX = 192;
/**
 * ASCII texts of a longer value are substrings of a string of this many bytes, and keep that string
 * alive.
 */
const WINDOW_BYTES = 4096;
/**
 * A program's first short texts are made by a native call: the engine needs longer to compile the other way
 * than so many of them take.
 */
const NATIVE_TEXTS = 50_000;
/** One of so many, plus one, is made the other way all the same: what was never run is compiled as absent. */
const LOOPED_MASK = 31;
/** How many of them are left. */
let nativeTexts = NATIVE_TEXTS;

/** Below this depth objects are read without their shapes: that takes less stack. */
export const SHAPED_DEPTH_MAX = 64;
/** Keys of a record that can be a shape, at most. */
export const SHAPE_KEYS_MAX = 64;
/** Values of records within records. */
const RECORD_VALUES_MAX = SHAPE_KEYS_MAX * (SHAPED_DEPTH_MAX + 1);
/** The slot of an object that is not shared. */
export const UNSHARED = -1;

/** A fault in the bytes. Never leaves this folder. */
export class Malformed extends Error {}

/** Ends the decoding of a value; every fault ends here. */
export function malformed(): never {
  throw new Malformed();
}

/** A plain array over a buffer of its own, which has exactly its size. */
export function copyBytes(buf: Buffer, start: number, end: number): Uint8Array {
  const length = end - start;
  // The copy of a view is written once: `new Uint8Array(length)` and `ArrayBuffer.slice` clear the memory first.
  if (length > LOOP_COPY_BYTES_MAX)
    return new Uint8Array(new Uint8Array(buf.buffer, buf.byteOffset + start, length));
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = buf[start + i];
  return bytes;
}

/** A view of a buffer is made for a value of so many bytes at least: it costs as much as ten numbers. */
const VIEWED_BYTES_MIN = 512;

const f64 = new Float64Array(1);
const f64Halves = new Int32Array(f64.buffer);
const HIGH_HALF = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;

export abstract class Decoder {
  buf: Buffer = Buffer.alloc(0);
  pos = 0;
  /** Over the memory of `buf`, or null. */
  view: DataView | null = null;
  /** The end of the value. */
  end = 0;
  depth = 0;
  /** The bytes [windowStart, windowEnd) as one string, for text to be cut out of. */
  #window = "";
  #windowStart = 0;
  #windowEnd = 0;
  /** The shared objects, by index. */
  protected slots: unknown[] = [];
  /** The values of unfinished records, the innermost last; the next one begins at `top`. */
  readonly values: unknown[] = new Array(RECORD_VALUES_MAX).fill(undefined);
  top = 0;
  /** All `values` from here on are undefined, unless a record is being read. */
  used = 0;

  /** The next value. */
  abstract value(): unknown;

  /** A value that must be a string. */
  abstract string(): string;

  /** Takes the bytes of another value. */
  protected begin(buf: Buffer, start: number, end: number): void {
    if (buf !== this.buf) {
      this.buf = buf;
      this.view = null;
    }
    if (this.view === null && end - start >= VIEWED_BYTES_MIN) this.viewOfBuf();
    this.pos = start;
    this.end = end;
    this.depth = 0;
    this.#windowEnd = 0;
    this.top = 0;
    if (end > buf.length) malformed();
  }

  /** Over the memory of `buf`. */
  viewOfBuf(): DataView {
    const { buf } = this;
    return (this.view ??= new DataView(buf.buffer, buf.byteOffset, buf.byteLength));
  }

  /** Keeps none of the first `count` values of records alive. */
  protected forgetValues(count: number): void {
    for (let i = 0; i < count; i++) this.values[i] = undefined;
    this.used = 0;
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
    if (isWrittenAsInteger(value)) malformed();
    return value;
  }

  float64(): number {
    const { buf, pos } = this;
    if (pos + 8 > this.end) malformed();
    this.pos = pos + 8;
    const { view } = this;
    if (view !== null) {
      const value = view.getFloat64(pos);
      if (value !== value && !isCanonicalNaN(buf, pos)) malformed();
      return value;
    }
    f64Halves[HIGH_HALF] =
      (buf[pos] << 24) | (buf[pos + 1] << 16) | (buf[pos + 2] << 8) | buf[pos + 3];
    f64Halves[1 - HIGH_HALF] =
      (buf[pos + 4] << 24) | (buf[pos + 5] << 16) | (buf[pos + 6] << 8) | buf[pos + 7];
    const value = f64[0];
    if (value !== value && !isCanonicalNaN(buf, pos)) malformed();
    return value;
  }

  /**
   * Reads the numbers of an array from index `from` on, until an item is none of the common kinds.
   * Returns the index of that item, or `count`.
   */
  numbers(array: unknown[], from: number, count: number): number {
    const { buf, end } = this;
    const { view } = this;
    let { pos } = this;
    let i = from;
    for (; i < count; i++) {
      const byte = buf[pos];
      if (byte < 24) {
        array[i] = byte;
        pos++;
      } else if (byte === 0xfb) {
        if (view === null || pos + 9 > end) break;
        const value = view.getFloat64(pos + 1);
        if (value !== value || isWrittenAsInteger(value)) break;
        array[i] = value;
        pos += 9;
      } else if (byte === 0x18) {
        const value = buf[pos + 1];
        if (!(value >= 24)) break;
        array[i] = value;
        pos += 2;
      } else if (byte === 0x19) {
        const value = (buf[pos + 1] << 8) | buf[pos + 2];
        if (value < 0x100) break;
        array[i] = value;
        pos += 3;
      } else if (byte === 0x1a) {
        const value =
          buf[pos + 1] * 0x100_0000 + ((buf[pos + 2] << 16) | (buf[pos + 3] << 8) | buf[pos + 4]);
        if (!(value >= 0x1_0000)) break;
        array[i] = value;
        pos += 5;
      } else break;
    }
    this.pos = pos;
    return i;
  }

  /** Skips `length` bytes, which must exist. Returns their start. */
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

  /** A value that must be a byte string. */
  bytes(): Uint8Array {
    const byte = this.next();
    return byte >> 5 === 2 ? this.take(byte) : malformed();
  }

  /** Reads the next byte. */
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

  /** The text of these bytes; does not move the position. */
  shortText(at: number, length: number): string {
    const { buf } = this;
    const end = at + length;
    if (end > this.end) malformed();
    const isShort = length <= SHORT_TEXT_BYTES_MAX;
    if (isShort && (nativeTexts === 0 || (--nativeTexts & LOOPED_MASK) === 0))
      return shortText(buf, at, length, ASCII) ?? readUtf8(buf, at, end) ?? malformed();
    let high = 0;
    for (let i = at; i < end; i++) high |= buf[i];
    if (high >= 0x80) return readUtf8(buf, at, end) ?? malformed();
    if (!isShort) return this.ascii(at, end);
    return length === 0 ? "" : latin1(buf, at, end);
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

  /** A value that must be an integer from 0. */
  index(): number {
    const byte = this.next();
    return byte >> 5 === 0 ? this.argument(byte) : malformed();
  }

  enter(): void {
    if (++this.depth > VALUE_DEPTH_MAX) malformed();
  }

  /** Sets the value of references to this slot. Returns it. */
  fill<T>(slot: number, value: T): T {
    if (slot !== UNSHARED) this.slots[slot] = value;
    return value;
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
  defineProperty(record, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

/** Whether the encoder writes a number as an integer, not as a float. */
function isWrittenAsInteger(value: number): boolean {
  return (
    Math.trunc(value) === value &&
    value <= Number.MAX_SAFE_INTEGER &&
    value >= -Number.MAX_SAFE_INTEGER &&
    (value !== 0 || 1 / value > 0)
  );
}

function isCanonicalNaN(buf: Buffer, at: number): boolean {
  return buf[at] === 0x7f && buf[at + 1] === 0xf8 && isZero(buf, at + 2, at + 8);
}

function isZero(buf: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (buf[i] !== 0) return false;
  return true;
}
