/**
 * Keys to bytes and back (docs/format.md §1). The order of keys is the order of their bytes.
 */

import { invalid, tooLarge, coded } from "../model/errors";
import { Buffer } from "node:buffer";
import { types } from "node:util";
import { arrayKind, isDataGone, isResizable, viewBuffer, viewBytes, viewOffset } from "./slots";
import { printGiven, printKey } from "./key-text";
import type { Writer } from "./writer";
import { KvUuidV7, NIL_UUID, markUuid } from "./uuid";
import { ASCII, SHORT_TEXT_BYTES_MAX, shortText } from "./short-text";
import { isWellFormed, latin1, readUtf8, writeUtf8 } from "./text";

export type KeyPart = Uint8Array | string | number | bigint | boolean;

const BYTES = 0x01;
const STRING = 0x02;
const BIGINT_ZERO = 0x14;
const BIGINT_LONG_POSITIVE = 0x1d;
const BIGINT_LONG_NEGATIVE = 0x0b;
const NUMBER = 0x21;
const FALSE = 0x26;
const TRUE = 0x27;

/** Magnitude bytes that fit the tag itself; longer bigints carry their length. */
const SHORT_BIGINT_BYTES = 8;
/** Magnitude of the largest bigint, in bytes. */
export const KEY_BIGINT_BYTES_MAX = 255;
/** Strings up to this many code units are written by a loop. */
const LOOP_TEXT_UNITS_MAX = 32;

const PART_EXPECTED = "expected string, number, bigint, ArrayBufferView, boolean";

/**
 * Appends the bytes of `key`. Returns whether the key is plain: decoding its bytes gives an equal
 * array of the same primitives, so a copy of the array does as well. (Bytes are not plain, nor
 * strings with lone surrogates.)
 *
 * Throws TypeError for anything but an array of string, number, bigint, boolean and ArrayBufferView
 * parts; the writer is then where it was.
 */
export function encodeKey(writer: Writer, key: unknown): boolean {
  if (!Array.isArray(key)) {
    throw invalid(
      `serde_v8 error: invalid type; expected: array, got: ${typeName(key)}: ${noKey(key)}`,
    );
  }
  return encodeKeyParts(writer, key, key.length);
}

/**
 * `encodeKey` of the first `count` parts: a key whose last part is the commit's versionstamp is
 * written this way.
 */
export function encodeKeyParts(writer: Writer, key: ArrayLike<unknown>, count: number): boolean {
  const start = writer.pos;
  let plain = true;
  let i = 0;
  try {
    for (; i < count; i++) {
      const part = key[i];
      if (typeof part === "string") {
        if (!encodeString(writer, part)) plain = false;
      } else if (typeof part === "number") {
        encodeNumber(writer, part);
      } else if (typeof part === "boolean") {
        writer.u8(part ? TRUE : FALSE);
      } else if (typeof part === "bigint") {
        encodeBigint(writer, part);
      } else if (ArrayBuffer.isView(part)) {
        encodeBytes(writer, part);
        plain = false;
      } else {
        if (!encodePlaceholder(writer, part, start)) throw noPart(key, part, i);
        plain = false;
      }
    }
  } catch (error) {
    writer.pos = start;
    writer.marks = null;
    if (error instanceof LongBigint) throw tooLarge(`${error.message}: part ${i} of the key`);
    throw error;
  }
  return plain;
}

/**
 * The room of a UUID that the commit will make; the last thing that a part can be. False: it is none.
 */
function encodePlaceholder(writer: Writer, part: unknown, start: number): boolean {
  const placeholder =
    typeof part === "object" && part !== null ? KvUuidV7.numberOf(part) : undefined;
  if (placeholder === undefined) return false;
  markUuid(writer, placeholder, writer.pos + 1 - start);
  encodeString(writer, NIL_UUID);
  return true;
}

/** The error for a value that is not a key, with an example of one. */
export function noKey(given: unknown): string {
  const isName = typeof given === "string" || typeof given === "number";
  const example = isName ? printKey([given]) : '["users", 1]';
  return `the key is ${printGiven(given)}; a key is an array of parts: write ${example}`;
}

/** The advice for a wrong part, by its type. */
const PART_REMEDIES: Readonly<Record<string, string>> = {
  Array: "spread its items into the key",
  Date: "use its toISOString() or getTime()",
  Symbol: "commitVersionstamp() goes only to the end of a key that is set",
  Undefined: "give it a value, or leave it out",
  Null: "give it a value, or leave it out",
};

function noPart(key: ArrayLike<unknown>, part: unknown, index: number): TypeError {
  const kind = Object.prototype.toString.call(part).slice(8, -1);
  const remedy = Object.hasOwn(PART_REMEDIES, kind)
    ? PART_REMEDIES[kind]
    : "write one of these in its place";
  return invalid(
    `${PART_EXPECTED}: part ${index} of the key ${printKey(key)} is ${kind}; ${remedy}`,
  );
}

/** The error for a bigint that is too large; {@link encodeKeyParts} adds the position of the part. */
class LongBigint extends TypeError {}

/** Returns whether decoding gives the same text. */
function encodeString(writer: Writer, text: string): boolean {
  const length = text.length;
  // Every code unit is at most 3 bytes of UTF-8; a NUL is 2 with its escape; tag and terminator.
  const room = length * 3 + 2;
  if (writer.pos + room > writer.buf.length) writer.grow(writer.pos, room);
  const buf = writer.buf;
  let at = writer.pos;
  buf[at++] = STRING;
  if (length <= LOOP_TEXT_UNITS_MAX) {
    let i = 0;
    for (; i < length; i++) {
      const unit = text.charCodeAt(i);
      if ((unit - 1) >>> 0 >= 0x7f) break; // NUL, or not ASCII
      buf[at++] = unit;
    }
    if (i === length) {
      buf[at++] = 0;
      writer.pos = at;
      return true;
    }
    at = writer.pos + 1;
  }
  const written = writeUtf8(buf, text, at);
  const ascii = written === length;
  at = text.includes("\0") ? escapeZeros(writer, at, written) : at + written;
  writer.buf[at++] = 0;
  writer.pos = at;
  return ascii || isWellFormed(text);
}

/**
 * Doubles every 00 of [at, at + length) into 00 FF, from the back. Leaves room for one byte.
 * Returns the new end.
 */
function escapeZeros(writer: Writer, at: number, length: number): number {
  let zeros = 0;
  for (let i = at; i < at + length; i++) if (writer.buf[i] === 0) zeros++;
  const end = at + length + zeros;
  if (end + 1 > writer.buf.length) writer.grow(at + length, zeros + 1);
  const buf = writer.buf;
  let from = at + length - 1;
  let to = end - 1;
  while (from < to) {
    const byte = buf[from--];
    if (byte === 0) buf[to--] = 0xff;
    buf[to--] = byte;
  }
  return end;
}

function encodeBytes(writer: Writer, part: ArrayBufferView): void {
  const bytes = bytesOf(part);
  const length = bytes.length;
  if (writer.pos + length + 2 > writer.buf.length) writer.grow(writer.pos, length + 2);
  let at = writer.pos;
  writer.buf[at++] = BYTES;
  writer.buf.set(bytes, at);
  at = escapeZeros(writer, at, length);
  writer.buf[at++] = 0;
  writer.pos = at;
}

/** The bytes under a view, by its internal slots: a subclass may have redefined the properties. */
function bytesOf(view: ArrayBufferView): Uint8Array {
  const isData = arrayKind(view) === undefined;
  const buffer = viewBuffer(view, isData);
  if (types.isSharedArrayBuffer(buffer)) {
    throw invalid(
      `serde_v8 error: invalid type; expected: buffer, got: ${arrayKind(view) ?? "DataView"}`,
    );
  }
  if (isResizable(buffer)) {
    throw invalid("serde_v8 error: can't create slice from resizable ArrayBuffer");
  }
  // As in Deno, a view of a detached buffer has no bytes.
  if (isData ? isDataGone(view) : viewBytes(view, isData) === 0) return NO_BYTES;
  return new Uint8Array(buffer, viewOffset(view, isData), viewBytes(view, isData));
}

const NO_BYTES = new Uint8Array(0);

function encodeNumber(writer: Writer, value: number): void {
  if (writer.pos + 9 > writer.buf.length) writer.grow(writer.pos, 9);
  const { buf, view, pos } = writer;
  buf[pos] = NUMBER;
  const at = pos + 1;
  view.setFloat64(at, value);
  if (value !== value) {
    // Of a NaN only the sign is kept, if the engine shows it.
    const sign = buf[at] & 0x80;
    view.setFloat64(at, 0);
    buf[at] = 0x7f | sign;
    buf[at + 1] = 0xf8;
  }
  if (buf[at] & 0x80) {
    for (let i = at; i < at + 8; i++) buf[i] ^= 0xff;
  } else {
    buf[at] ^= 0x80;
  }
  writer.pos = at + 8;
}

function encodeBigint(writer: Writer, value: bigint): void {
  const negative = value < 0n;
  const magnitude = negative ? -value : value;
  if (magnitude <= 0xffff_ffff_ffff_ffffn) {
    writer.ensure(9);
    const { buf, view, pos } = writer;
    view.setBigUint64(pos + 1, magnitude);
    let skip = 0;
    while (skip < 8 && buf[pos + 1 + skip] === 0) skip++;
    const n = 8 - skip;
    buf[pos] = negative ? BIGINT_ZERO - n : BIGINT_ZERO + n;
    if (skip > 0) buf.copyWithin(pos + 1, pos + 1 + skip, pos + 9);
    if (negative) for (let i = pos + 1; i <= pos + n; i++) buf[i] ^= 0xff;
    writer.pos = pos + 1 + n;
    return;
  }
  const hex = magnitude.toString(16);
  const n = (hex.length + 1) >>> 1;
  if (n > KEY_BIGINT_BYTES_MAX) {
    throw new LongBigint("BigUint requires more than 255 bytes to be represented");
  }
  writer.ensure(n + 2);
  const { buf } = writer;
  let at = writer.pos;
  buf[at++] = negative ? BIGINT_LONG_NEGATIVE : BIGINT_LONG_POSITIVE;
  buf[at++] = negative ? n ^ 0xff : n;
  const padded = hex.length & 1 ? `0${hex}` : hex;
  for (let i = 0; i < n; i++) {
    const byte = Number.parseInt(padded.slice(i * 2, i * 2 + 2), 16);
    buf[at++] = negative ? byte ^ 0xff : byte;
  }
  writer.pos = at;
}

/**
 * The key whose bytes are [start, end) of `buf`: a fresh array of fresh parts. With `prefix`,
 * decoding starts after the prefix: its parts are put in front as they are, so it must be plain
 * (see `encodeKey`), and `start` must be behind its bytes.
 *
 * Throws RangeError for bytes that `encodeKey` cannot have written.
 */
export function decodeKey(
  buf: Buffer,
  start: number,
  end: number,
  prefix: readonly KeyPart[] | null = null,
): KeyPart[] {
  const key: KeyPart[] = [];
  if (prefix !== null) for (let i = 0; i < prefix.length; i++) key.push(prefix[i]);
  let at = start;
  while (at < end) {
    const tag = buf[at++];
    if (tag === STRING || tag === BYTES) {
      let stop = at;
      let high = 0;
      let escaped = false;
      for (; ; stop++) {
        if (stop >= end) throw corrupt("unexpected end");
        const byte = buf[stop];
        high |= byte;
        if (byte === 0) {
          if (stop + 1 < end && buf[stop + 1] === 0xff) {
            escaped = true;
            stop++;
          } else break;
        }
      }
      if (tag === BYTES) key.push(unescape(buf, at, stop));
      else if (high < 0x80 && !escaped) {
        key.push(
          (stop - at <= SHORT_TEXT_BYTES_MAX ? shortText(buf, at, stop - at, ASCII) : null) ??
            latin1(buf, at, stop),
        );
      } else key.push(decodeString(buf, at, stop, escaped));
      at = stop + 1;
    } else if (tag === NUMBER) {
      if (at + 8 > end) throw corrupt("unexpected end");
      key.push(decodeNumber(buf, at));
      at += 8;
    } else if (tag === FALSE || tag === TRUE) {
      key.push(tag === TRUE);
    } else if (tag >= BIGINT_ZERO - SHORT_BIGINT_BYTES && tag <= BIGINT_ZERO + SHORT_BIGINT_BYTES) {
      const n = Math.abs(tag - BIGINT_ZERO);
      if (at + n > end) throw corrupt("unexpected end");
      key.push(n === 0 ? 0n : decodeBigint(buf, at, n, tag < BIGINT_ZERO));
      at += n;
    } else if (tag === BIGINT_LONG_POSITIVE || tag === BIGINT_LONG_NEGATIVE) {
      if (at >= end) throw corrupt("unexpected end");
      const negative = tag === BIGINT_LONG_NEGATIVE;
      const n = negative ? buf[at] ^ 0xff : buf[at];
      at++;
      if (n <= SHORT_BIGINT_BYTES) throw corrupt("bigint is not minimal");
      if (at + n > end) throw corrupt("unexpected end");
      key.push(decodeBigint(buf, at, n, negative));
      at += n;
    } else {
      throw corrupt("invalid tag");
    }
  }
  return key;
}

/** The bytes of [start, stop) with every 00 FF back to 00, in memory of their own. */
function unescape(buf: Buffer, start: number, stop: number): Uint8Array {
  let escapes = 0;
  for (let i = start; i < stop; i++) if (buf[i] === 0) escapes++;
  const bytes = new Uint8Array(stop - start - escapes);
  for (let from = start, to = 0; from < stop; from++) {
    const byte = buf[from];
    bytes[to++] = byte;
    if (byte === 0) from++;
  }
  return bytes;
}

function decodeString(buf: Buffer, start: number, stop: number, escaped: boolean): string {
  let text: string | null;
  if (escaped) {
    const bytes = unescape(buf, start, stop);
    text = readUtf8(Buffer.from(bytes.buffer), 0, bytes.length);
  } else text = readUtf8(buf, start, stop);
  if (text === null) throw corrupt("invalid utf8");
  return text;
}

const scratch = new DataView(new ArrayBuffer(8));

function decodeNumber(buf: Buffer, at: number): number {
  const flip = buf[at] & 0x80 ? 0 : 0xff;
  for (let i = 0; i < 8; i++) scratch.setUint8(i, buf[at + i] ^ flip);
  if (flip === 0) scratch.setUint8(0, buf[at] ^ 0x80);
  const value = scratch.getFloat64(0);
  if (
    value !== value &&
    ((scratch.getUint32(0) & 0x7fffffff) !== 0x7ff80000 || scratch.getUint32(4) !== 0)
  ) {
    throw corrupt("NaN is not canonical");
  }
  return value;
}

function decodeBigint(buf: Buffer, at: number, n: number, negative: boolean): bigint {
  const flip = negative ? 0xff : 0;
  if ((buf[at] ^ flip) === 0) throw corrupt("bigint is not minimal");
  if (n <= 6) {
    let small = 0;
    for (let i = at; i < at + n; i++) small = small * 256 + (buf[i] ^ flip);
    return BigInt(negative ? -small : small);
  }
  let hex = "0x";
  for (let i = at; i < at + n; i++) hex += (buf[i] ^ flip).toString(16).padStart(2, "0");
  const magnitude = BigInt(hex);
  return negative ? -magnitude : magnitude;
}

function corrupt(what: string): RangeError {
  return coded("CORRUPT", new RangeError(`could not deserialize key: ${what}`));
}

/** The name that Deno's argument checks give a value of the wrong type. */
export function typeName(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number") return "Number";
  if (typeof value === "boolean") return "Boolean";
  if (typeof value !== "object") return typeof value;
  if (types.isProxy(value)) return "Proxy";
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return tag === "Object" ? "unknown" : tag;
}
