/**
 * Packed arrays, both ways: an array of numbers as the elements of a typed array (docs/format.md
 * §2.1). Only writers whose readers all know the form write it (`Writer.packs`).
 */

import { type Decoder, malformed } from "./decoder";
import type { Encoder } from "./encoder";
import { Numbers } from "./numbers";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

/** Shorter arrays are written number by number: the head of a packed one has some bytes. */
export const PACKED_ITEMS_MIN = 32;
/** By how many bytes the head of a packed array is longer than that of an array, at most. */
const PACKED_HEAD_BYTES = 13;
/** So many integers or more are made narrower by the engine; fewer by a loop, which costs less than the call. */
const CONVERTED_ITEMS_MIN = 512;
/** Arrays up to this many items are allocated at once. */
const ARRAY_ITEMS_AT_ONCE = 65_536;
/** Room for the numbers of an array; that for longer ones is not kept. */
const SPARE_ITEMS_MAX = 65536;
const SPARE_ITEMS_MIN = 1024;

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
  if (numbers.count < length) left = numbers.items(length);
  else {
    const name = classOf(numbers);
    if (length * VIEW_BYTES[name] + PACKED_HEAD_BYTES <= numbers.bytes)
      writePacked(encoder, name, numbers, length);
    else {
      encoder.head(4, length);
      numbers.write(encoder);
    }
  }
  if (numbers.room <= SPARE_ITEMS_MAX) spare = numbers;
  return left;
}

/** The narrowest class of the elements. */
function classOf({ areInts, bits, hasNegative }: Numbers): string {
  if (!areInts) return "Float64Array";
  if (!hasNegative && bits <= 0xff) return "Uint8Array";
  if (bits <= 0x7f) return "Int8Array";
  if (!hasNegative && bits <= 0xffff) return "Uint16Array";
  return bits <= 0x7fff ? "Int16Array" : "Int32Array";
}

function writePacked(encoder: Encoder, name: string, numbers: Numbers, length: number): void {
  const bytes = length * VIEW_BYTES[name];
  encoder.object("Array", 2);
  if (name !== "Uint8Array") encoder.head(6, VIEW_TAGS[name]);
  encoder.head(2, bytes);
  encoder.room(bytes);
  writeElements(encoder, name, numbers, length);
  encoder.pos += bytes;
}

/** The room is there. */
function writeElements(encoder: Encoder, name: string, numbers: Numbers, length: number): void {
  const { buf, view, pos } = encoder;
  const { ints, doubles } = numbers;
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
    case "Int32Array":
      if (littleEndian) buf.set(new Uint8Array(ints.buffer, 0, 4 * length), pos);
      else for (let i = 0; i < length; i++) view.setInt32(pos + 4 * i, ints[i], true);
      break;
    default:
      if (littleEndian) buf.set(new Uint8Array(doubles.buffer, 0, 8 * length), pos);
      else for (let i = 0; i < length; i++) view.setFloat64(pos + 8 * i, doubles[i], true);
      if (!numbers.hasNaN) return;
      for (let i = 0, at = pos; i < length; i++, at += 8) {
        if (doubles[i] === doubles[i]) continue;
        view.setUint32(at, 0, true);
        view.setUint32(at + 4, NAN_HIGH, true);
      }
  }
}

/** The upper half of the one NaN that is written. */
const NAN_HIGH = 0x7ff80000;

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
  const items = readElements(decoder, tag, start, start + bytes);
  decoder.depth--;
  return decoder.fill(slot, items);
}

/** The elements of the typed array with this tag; 0: of bytes. */
function readElements(decoder: Decoder, tag: number, start: number, end: number): number[] {
  const { buf } = decoder;
  const count = countOf(end - start, tag);
  if (tag === VIEW_TAGS.Float64Array) return readDoubles(decoder, start, count);
  const items = newItems(0, count);
  let at = start;
  let i = 0;
  switch (tag) {
    case 0:
      for (; i < count; i++) items[i] = buf[at++];
      break;
    case VIEW_TAGS.Int8Array:
      for (; i < count; i++) items[i] = (buf[at++] << 24) >> 24;
      break;
    case VIEW_TAGS.Uint16Array:
      for (; i < count; i++, at += 2) items[i] = buf[at] | (buf[at + 1] << 8);
      break;
    case VIEW_TAGS.Int16Array:
      for (; i < count; i++, at += 2) items[i] = ((buf[at] << 16) | (buf[at + 1] << 24)) >> 16;
      break;
    default: {
      const view = decoder.viewOfBuf();
      // Four at a time: half of the time of a loop over single ones is the loop.
      for (; i + 3 < count; i += 4, at += 16) {
        items[i] = view.getInt32(at, true);
        items[i + 1] = view.getInt32(at + 4, true);
        items[i + 2] = view.getInt32(at + 8, true);
        items[i + 3] = view.getInt32(at + 12, true);
      }
      for (; i < count; i++, at += 4) items[i] = view.getInt32(at, true);
    }
  }
  return items;
}

function readDoubles(decoder: Decoder, start: number, count: number): number[] {
  const view = decoder.viewOfBuf();
  // An array that begins as one of doubles is not converted when the first is put in.
  const items = newItems(0.5, count);
  for (let i = 0, at = start; i < count; i++, at += 8) {
    const item = view.getFloat64(at, true);
    if (item !== item && !isCanonicalNaN(view, at)) malformed();
    items[i] = item;
  }
  return items;
}

/** An array of `count` items to be filled from the first on, which begins with `first`; long ones are short at first. */
function newItems(first: number, count: number): number[] {
  const items = [first];
  if (count <= ARRAY_ITEMS_AT_ONCE) items.length = count;
  return items;
}

/** Bytes of an element by its tag. */
const ELEMENT_BYTES = new Map([[0, 1]]);
for (const name of ["Int8Array", "Uint16Array", "Int16Array", "Int32Array", "Float64Array"])
  ELEMENT_BYTES.set(VIEW_TAGS[name], VIEW_BYTES[name]);

/** How many elements so many bytes are. */
function countOf(bytes: number, tag: number): number {
  const size = ELEMENT_BYTES.get(tag);
  if (size === undefined || bytes % size !== 0) return malformed();
  const count = bytes / size;
  return count >= PACKED_ITEMS_MIN ? count : malformed();
}

function isCanonicalNaN(view: DataView, at: number): boolean {
  return view.getUint32(at, true) === 0 && view.getUint32(at + 4, true) === NAN_HIGH;
}
