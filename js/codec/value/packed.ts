/**
 * Packed arrays, both ways: an array of numbers as the elements of a typed array (docs/format.md
 * §2.1). Only writers whose readers all know the form write it (`Writer.packs`).
 */

import { type Decoder, malformed } from "./decoder";
import { CLASSES, NAN_HIGH } from "./elements";
import type { Encoder } from "./encoder";
import { Numbers } from "./numbers";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

/** Shorter arrays are written number by number: the head of a packed one has some bytes. */
export const PACKED_ITEMS_MIN = 32;
/** By how many bytes the head of a packed array is longer than that of an array, at most. */
const PACKED_HEAD_BYTES = 13;
/** So many integers or more are made narrower by the engine; fewer by a loop, which costs less than the call. */
const CONVERTED_ITEMS_MIN = 512;
/** Room for the numbers of an array; that for longer ones is not kept. */
const SPARE_ITEMS_MAX = 65536;
const SPARE_ITEMS_MIN = 1024;

/** So many doubles or more are copied by the engine. */
const COPIED_DOUBLES_MIN = 128;

const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** For the next array. */
let spare: Numbers | null = null;

/**
 * Writes an array that has only elements if all are numbers, packed where that takes no more bytes; `first` is the first
 * one, which was read. Otherwise writes nothing and returns the elements that were read, from the
 * first on. Returns null if it has written.
 */
export function writeNumbers(
  encoder: Encoder,
  array: readonly unknown[],
  length: number,
  first: number,
): readonly unknown[] | null {
  // A getter of the array can encode too.
  let numbers = spare;
  spare = null;
  if (numbers === null || numbers.room < length)
    numbers = new Numbers(Math.max(SPARE_ITEMS_MIN, Math.ceil(length * 1.25)));
  numbers.read(array, length, first);
  let left: readonly unknown[] | null = null;
  if (numbers.count < length) {
    left = writeDoubles(encoder, array, length, numbers);
    numbers.next = null;
  } else {
    const name = classOf(numbers);
    if (length * VIEW_BYTES[name] + PACKED_HEAD_BYTES <= numbers.bytes)
      writeIntegers(encoder, name, numbers.ints, length);
    else {
      encoder.head(4, length);
      numbers.writeInts(encoder);
    }
  }
  if (numbers.room <= SPARE_ITEMS_MAX) spare = numbers;
  return left;
}

/** The narrowest class of integers. */
function classOf({ bits, hasNegative }: Numbers): string {
  if (!hasNegative && bits <= 0xff) return "Uint8Array";
  if (bits <= 0x7f) return "Int8Array";
  if (!hasNegative && bits <= 0xffff) return "Uint16Array";
  return bits <= 0x7fff ? "Int16Array" : "Int32Array";
}

/** Everything before the elements; makes room for them. */
function writePackedHead(encoder: Encoder, name: string, length: number): void {
  const bytes = length * VIEW_BYTES[name];
  encoder.object("Array", 2);
  if (name !== "Uint8Array") encoder.head(6, VIEW_TAGS[name]);
  encoder.head(2, bytes);
  encoder.room(bytes);
}

function writeIntegers(encoder: Encoder, name: string, ints: Int32Array, length: number): void {
  writePackedHead(encoder, name, length);
  const { buf, view, pos } = encoder;
  const isNative = length >= CONVERTED_ITEMS_MIN && littleEndian;
  switch (name) {
    case "Uint8Array":
    case "Int8Array":
      if (isNative) buf.set(ints.subarray(0, length), pos);
      else for (let i = 0; i < length; i++) buf[pos + i] = ints[i];
      break;
    case "Uint16Array":
    case "Int16Array":
      if (isNative) buf.set(new Uint8Array(new Int16Array(ints.subarray(0, length)).buffer), pos);
      else for (let i = 0; i < length; i++) view.setInt16(pos + 2 * i, ints[i], true);
      break;
    default:
      if (isNative) buf.set(new Uint8Array(ints.buffer, 0, 4 * length), pos);
      else for (let i = 0; i < length; i++) view.setInt32(pos + 4 * i, ints[i], true);
  }
  encoder.pos = pos + length * VIEW_BYTES[name];
}

/** The same for numbers that are not all integers of 32 bits: packed as doubles, or one by one. */
function writeDoubles(
  encoder: Encoder,
  array: readonly unknown[],
  length: number,
  numbers: Numbers,
): readonly unknown[] | null {
  const savedMax = length - PACKED_HEAD_BYTES;
  numbers.readDoubles(array, length, savedMax);
  if (numbers.count < length) return numbers.items();
  if (numbers.saved > savedMax) {
    encoder.head(4, length);
    numbers.writeDoubles(encoder);
    return null;
  }
  writePackedHead(encoder, "Float64Array", length);
  const { doubles } = numbers;
  const { buf, view, pos } = encoder;
  if (length >= COPIED_DOUBLES_MIN && littleEndian)
    buf.set(new Uint8Array(doubles.buffer, 0, 8 * length), pos);
  else for (let k = 0; k < length; k++) view.setFloat64(pos + 8 * k, doubles[k], true);
  if (numbers.hasNaN) writeNaNs(view, pos, doubles, length);
  encoder.pos = pos + 8 * length;
  return null;
}

/** All NaNs have the bits of one. */
function writeNaNs(view: DataView, at: number, doubles: Float64Array, length: number): void {
  for (let i = 0; i < length; i++) {
    if (doubles[i] === doubles[i]) continue;
    view.setUint32(at + 8 * i, 0, true);
    view.setUint32(at + 8 * i + 4, NAN_HIGH, true);
  }
}

/** The array whose elements follow, behind `["Array"`. */
export function readPacked(decoder: Decoder, slot: number): number[] {
  // As deep as any other array.
  decoder.enter();
  let byte = decoder.next();
  let tag = 0;
  if (byte >> 5 === 6) {
    tag = decoder.argument(byte);
    byte = decoder.next();
  }
  if (byte >> 5 !== 2) malformed();
  const bytes = decoder.argument(byte);
  const start = decoder.skip(bytes);
  const elements = CLASSES.get(tag);
  if (elements === undefined || bytes % elements.bytes !== 0) return malformed();
  const count = bytes / elements.bytes;
  if (count < PACKED_ITEMS_MIN) malformed();
  const items = elements.read(decoder, start, count);
  decoder.depth--;
  return decoder.fill(slot, items);
}
