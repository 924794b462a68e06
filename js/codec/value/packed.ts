/**
 * Packed arrays, both ways: an array of numbers as the elements of a typed array (docs/format.md
 * §2.1). Only writers whose readers all know the form write it (`Writer.packs`).
 */

import { type Decoder, malformed } from "./decoder";
import type { Encoder } from "./encoder";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

/** Shorter arrays are written number by number: the head of a packed one has some bytes. */
export const PACKED_ITEMS_MIN = 32;
/** By how many bytes the head of a packed array is longer than that of an array, at most. */
const PACKED_HEAD_BYTES = 13;
/** Arrays up to this many items are allocated at once. */
const ARRAY_ITEMS_AT_ONCE = 65536;
/** Room for the numbers of an array; that for longer ones is not kept. */
const SPARE_ITEMS_MAX = 65536;
const SPARE_ITEMS_MIN = 1024;

const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** The numbers that an array begins with, copied: its items are read once. */
class Numbers {
  readonly ints: Int32Array;
  readonly doubles: Float64Array;
  /** How many from the start are integers of 32 bits; they are in `ints`. */
  intCount = 0;
  /** How many were read; if they are not all integers, they are all in `doubles`. */
  count = 0;
  /** The item behind them, if it was read. It is no number. */
  next: unknown = null;
  hasNext = false;
  least = 0;
  most = 0;
  /** Bytes of all, written one by one. */
  bytes = 0;
  hasNaN = false;

  constructor(readonly room: number) {
    this.ints = new Int32Array(room);
    this.doubles = new Float64Array(room);
  }

  /** Takes the items, until one is no number or they cannot be shorter when they are packed. */
  read(array: readonly unknown[], length: number): void {
    const { ints } = this;
    let least = 0;
    let most = 0;
    let bytes = 0;
    let i = 0;
    this.hasNext = this.hasNaN = false;
    for (; i < length; i++) {
      const value = array[i];
      if (typeof value !== "number") {
        this.next = value;
        this.hasNext = true;
        break;
      }
      const int = value | 0;
      if (int !== value || (int === 0 && 1 / value < 0)) {
        this.intCount = i;
        this.bytes = bytes + i;
        return this.#readDoubles(array, length, value);
      }
      ints[i] = int;
      const argument = int ^ (int >> 31);
      // One more above each bound, two above the last.
      bytes +=
        ((23 - argument) >>> 31) + ((255 - argument) >>> 31) + 2 * ((65535 - argument) >>> 31);
      if (int < least) least = int;
      else if (int > most) most = int;
    }
    this.intCount = this.count = i;
    this.least = least;
    this.most = most;
    this.bytes = bytes + i;
  }

  /** The items that were read, for another writer. */
  taken(): unknown[] {
    const { count, intCount, hasNext } = this;
    const items: unknown[] = Array.from(
      (intCount === count ? this.ints : this.doubles).subarray(0, count),
    );
    if (hasNext) items.push(this.next);
    this.next = null;
    return items;
  }

  /** Takes the items from the first that is no integer on; `first` is that one. */
  #readDoubles(array: readonly unknown[], length: number, first: number): void {
    const { ints, doubles, intCount } = this;
    for (let i = 0; i < intCount; i++) doubles[i] = ints[i];
    let { bytes } = this;
    let hasNaN = false;
    let i = intCount;
    for (let value: unknown = first; ; ) {
      if (typeof value !== "number") {
        this.next = value;
        this.hasNext = true;
        break;
      }
      doubles[i] = value;
      if (Math.trunc(value) === value) {
        bytes += wholeBytes(value);
        // Too many short ones, whatever follows.
        if (bytes + 9 * (length - i - 1) < 8 * length) {
          i++;
          break;
        }
      } else {
        bytes += 9;
        if (value !== value) hasNaN = true;
      }
      if (++i === length) break;
      value = array[i];
    }
    this.count = i;
    this.bytes = bytes;
    this.hasNaN = hasNaN;
  }
}

/** Bytes of a whole number. */
function wholeBytes(value: number): number {
  const argument = value < 0 ? -1 - value : value;
  if (argument >= 0x1_0000_0000 || (value === 0 && 1 / value < 0)) return 9;
  return argument < 24 ? 1 : argument < 0x100 ? 2 : argument < 0x1_0000 ? 3 : 5;
}

/** For the next array. */
let spare: Numbers | null = null;

/**
 * Writes an array that has only elements, packed, if all are numbers and that takes no more bytes. Otherwise writes
 * nothing and returns the elements that it has read, from the first on. Returns null if it has written.
 */
export function writeNumbers(
  encoder: Encoder,
  array: readonly unknown[],
  length: number,
): readonly unknown[] | null {
  // A getter of the array can encode too.
  let numbers = spare;
  spare = null;
  if (numbers === null || numbers.room < length)
    numbers = new Numbers(Math.max(SPARE_ITEMS_MIN, Math.ceil(length * 1.25)));
  numbers.read(array, length);
  const name = numbers.count === length ? classOf(numbers, length) : null;
  let left: readonly unknown[] | null = null;
  if (name !== null) {
    const bytes = length * VIEW_BYTES[name];
    encoder.object("Array", 2);
    if (name !== "Uint8Array") encoder.head(6, VIEW_TAGS[name]);
    encoder.head(2, bytes);
    encoder.room(bytes);
    writeElements(encoder, name, numbers, length);
    encoder.pos += bytes;
  } else left = numbers.taken();
  if (numbers.room <= SPARE_ITEMS_MAX) spare = numbers;
  return left;
}

/** The class of the elements: the narrowest one; null if that takes more bytes. */
function classOf({ intCount, least, most, bytes }: Numbers, length: number): string | null {
  let name = "Float64Array";
  if (intCount === length) {
    if (least >= 0 && most <= 0xff) name = "Uint8Array";
    else if (least >= -0x80 && most <= 0x7f) name = "Int8Array";
    else if (least >= 0 && most <= 0xffff) name = "Uint16Array";
    else if (least >= -0x8000 && most <= 0x7fff) name = "Int16Array";
    else name = "Int32Array";
  }
  return length * VIEW_BYTES[name] + PACKED_HEAD_BYTES <= bytes ? name : null;
}

/** The room is there. */
function writeElements(encoder: Encoder, name: string, numbers: Numbers, length: number): void {
  const { buf, view, pos } = encoder;
  const { ints, doubles } = numbers;
  switch (name) {
    case "Uint8Array":
    case "Int8Array":
      for (let i = 0; i < length; i++) buf[pos + i] = ints[i];
      break;
    case "Uint16Array":
    case "Int16Array":
      for (let i = 0; i < length; i++) view.setInt16(pos + 2 * i, ints[i], true);
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
  const items: number[] = tag === VIEW_TAGS.Float64Array ? [0.5] : [];
  // An array that begins as one of doubles is not converted when the first is put in.
  if (count <= ARRAY_ITEMS_AT_ONCE) items.length = count;
  let at = start;
  let i = 0;
  switch (tag) {
    case 0:
      for (; at < end; at++) items[i++] = buf[at];
      break;
    case VIEW_TAGS.Int8Array:
      for (; at < end; at++) items[i++] = (buf[at] << 24) >> 24;
      break;
    case VIEW_TAGS.Uint16Array:
      for (; at < end; at += 2) items[i++] = buf[at] | (buf[at + 1] << 8);
      break;
    case VIEW_TAGS.Int16Array:
      for (; at < end; at += 2) items[i++] = ((buf[at] << 16) | (buf[at + 1] << 24)) >> 16;
      break;
    case VIEW_TAGS.Int32Array: {
      const view = decoder.viewOfBuf();
      for (; at < end; at += 4) items[i++] = view.getInt32(at, true);
      break;
    }
    default: {
      const view = decoder.viewOfBuf();
      for (; at < end; at += 8) {
        const item = view.getFloat64(at, true);
        if (item !== item && !isCanonicalNaN(view, at)) malformed();
        items[i++] = item;
      }
    }
  }
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
