/**
 * The elements of a packed array as an array of numbers.
 *
 * Each class has its own loop, and takes four elements in a turn: half of the time of a loop over single ones is the
 * loop. Each loop is a function of its own, so that the first array of a class leaves those of other classes compiled.
 */

import { type Decoder, malformed } from "./decoder";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

/** Arrays up to this many items are allocated at once. */
const ITEMS_AT_ONCE = 65_536;

/** The upper half of the one NaN that is written. */
export const NAN_HIGH = 0x7ff80000;

/** Reads `count` elements from `at` on. Those of one or two bytes need no view: to make one takes as long as 50 of them. */
type Read = (decoder: Decoder, at: number, count: number) => number[];

/** How the elements of a class are read, by its tag; 0: bytes. */
export const CLASSES = new Map<number, { bytes: number; read: Read }>();
for (const [name, read] of Object.entries({
  Uint8Array: readUint8,
  Int8Array: readInt8,
  Uint16Array: readUint16,
  Int16Array: readInt16,
  Int32Array: readInt32,
  Float64Array: readFloat64,
}))
  CLASSES.set(VIEW_TAGS[name] ?? 0, { bytes: VIEW_BYTES[name], read });

/** An array for `count` integers; a long one grows as it is filled. */
function integers(count: number): number[] {
  return count <= ITEMS_AT_ONCE ? new Array<number>(count) : [];
}

/** The same for doubles: an array that begins as one of them is not converted when the first is put in. */
function doubles(count: number): number[] {
  const items = [0.5];
  if (count <= ITEMS_AT_ONCE) items.length = count;
  return items;
}

function readUint8({ buf }: Decoder, start: number, count: number): number[] {
  const items = integers(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 4) {
    items[i] = buf[at];
    items[i + 1] = buf[at + 1];
    items[i + 2] = buf[at + 2];
    items[i + 3] = buf[at + 3];
  }
  for (; i < count; i++, at++) items[i] = buf[at];
  return items;
}

function readInt8({ buf }: Decoder, start: number, count: number): number[] {
  const items = integers(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 4) {
    items[i] = (buf[at] << 24) >> 24;
    items[i + 1] = (buf[at + 1] << 24) >> 24;
    items[i + 2] = (buf[at + 2] << 24) >> 24;
    items[i + 3] = (buf[at + 3] << 24) >> 24;
  }
  for (; i < count; i++, at++) items[i] = (buf[at] << 24) >> 24;
  return items;
}

function readUint16({ buf }: Decoder, start: number, count: number): number[] {
  const items = integers(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 8) {
    items[i] = buf[at] | (buf[at + 1] << 8);
    items[i + 1] = buf[at + 2] | (buf[at + 3] << 8);
    items[i + 2] = buf[at + 4] | (buf[at + 5] << 8);
    items[i + 3] = buf[at + 6] | (buf[at + 7] << 8);
  }
  for (; i < count; i++, at += 2) items[i] = buf[at] | (buf[at + 1] << 8);
  return items;
}

function readInt16({ buf }: Decoder, start: number, count: number): number[] {
  const items = integers(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 8) {
    items[i] = ((buf[at] << 16) | (buf[at + 1] << 24)) >> 16;
    items[i + 1] = ((buf[at + 2] << 16) | (buf[at + 3] << 24)) >> 16;
    items[i + 2] = ((buf[at + 4] << 16) | (buf[at + 5] << 24)) >> 16;
    items[i + 3] = ((buf[at + 6] << 16) | (buf[at + 7] << 24)) >> 16;
  }
  for (; i < count; i++, at += 2) items[i] = ((buf[at] << 16) | (buf[at + 1] << 24)) >> 16;
  return items;
}

function readInt32(decoder: Decoder, start: number, count: number): number[] {
  const view = decoder.viewOfBuf();
  const items = integers(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 16) {
    items[i] = view.getInt32(at, true);
    items[i + 1] = view.getInt32(at + 4, true);
    items[i + 2] = view.getInt32(at + 8, true);
    items[i + 3] = view.getInt32(at + 12, true);
  }
  for (; i < count; i++, at += 4) items[i] = view.getInt32(at, true);
  return items;
}

function readFloat64(decoder: Decoder, start: number, count: number): number[] {
  const view = decoder.viewOfBuf();
  const items = doubles(count);
  let at = start;
  let i = 0;
  for (; i + 3 < count; i += 4, at += 32) {
    const a = view.getFloat64(at, true);
    const b = view.getFloat64(at + 8, true);
    const c = view.getFloat64(at + 16, true);
    const d = view.getFloat64(at + 24, true);
    // One of them is no number.
    if (a !== a || b !== b || c !== c || d !== d) checkNaNs(view, at, 4);
    items[i] = a;
    items[i + 1] = b;
    items[i + 2] = c;
    items[i + 3] = d;
  }
  for (; i < count; i++, at += 8) {
    const item = view.getFloat64(at, true);
    if (item !== item) checkNaNs(view, at, 1);
    items[i] = item;
  }
  return items;
}

/** Refuses another NaN than the one that is written. */
function checkNaNs(view: DataView, start: number, count: number): void {
  for (let at = start; at < start + 8 * count; at += 8) {
    const item = view.getFloat64(at, true);
    if (item === item) continue;
    if (view.getUint32(at, true) !== 0 || view.getUint32(at + 4, true) !== NAN_HIGH) malformed();
  }
}
