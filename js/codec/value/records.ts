/**
 * Decodes plain objects. Records with the same keys are frequent, within a value and across values.
 *
 * A frequent set of keys gets a reader of its own, which compares the bytes of the keys with the
 * expected ones and creates the object at once. Where code generation is forbidden, and for keys that do
 * not repeat, entries are read one by one; the results are the same.
 */

import type { Buffer } from "node:buffer";
import { type Decoder, put } from "./decoder";

/** Records of more keys than this are dictionaries, not shapes. */
const SHAPE_KEYS_MAX = 32;
/** Keys of a shape are ASCII and at most this long, in bytes: their head is one byte. */
const SHAPE_KEY_BYTES_MAX = 23;
/** How often the same keys must be seen before a reader is made for them. */
const SIGHTINGS_BEFORE_READER = 4;
/** Readers kept; when there are more, all are forgotten, and the next ones need more sightings. */
const READERS_MAX = 512;
/** Places for shapes and for key strings; powers of two. */
const SHAPE_SLOTS = 1024;
const KEY_SLOTS = 1024;

/** Reads the entries at the decoder's position, or, when the first key is not its own, nothing. */
type Reader = (decoder: Decoder) => object | undefined;

interface Shape {
  keys: string[];
  sightings: number;
  read: Reader | null;
}

let shapes: (Shape | undefined)[] = new Array(SHAPE_SLOTS).fill(undefined);
const keyStrings: string[] = new Array(KEY_SLOTS).fill("");
let readers = 0;
let sightingsNeeded = SIGHTINGS_BEFORE_READER;
let mayGenerate = true;

/** The object of the `count` entries that follow. */
export function readRecord(decoder: Decoder, count: number): object {
  if (count === 0) return {};
  const { buf, pos } = decoder;
  const head = buf[pos];
  if (count > SHAPE_KEYS_MAX || (head & 0xe0) !== 0x60 || head > 0x60 + SHAPE_KEY_BYTES_MAX) {
    return readEntries(decoder, {}, count, null);
  }
  // The number of keys, and the first key's length, first and last byte.
  const slot =
    (Math.imul(count * 32 + head - 0x60, 0x9e35) + buf[pos + 1] * 0x1f3 + buf[pos + head - 0x60]) &
    (SHAPE_SLOTS - 1);
  const shape = shapes[slot];
  if (shape !== undefined && shape.read !== null && shape.keys.length === count) {
    const record = shape.read(decoder);
    if (record !== undefined) return record;
  }
  return readAndLearn(decoder, count, slot);
}

/** Reads entry by entry, and remembers the keys. */
function readAndLearn(decoder: Decoder, count: number, slot: number): object {
  const keys: string[] = [];
  const record = readEntries(decoder, {}, count, keys);
  if (mayGenerate) learn(keys, slot);
  return record;
}

function readEntries(
  decoder: Decoder,
  record: Record<string, unknown>,
  count: number,
  keys: string[] | null,
): object {
  for (let i = 0; i < count; i++) {
    const key = readKey(decoder);
    put(record, key, decoder.value());
    if (keys !== null) keys.push(key);
  }
  return record;
}

/**
 * Called by a reader when key number `done` is not the expected one; `values` are those of the keys before.
 */
function readRest(decoder: Decoder, keys: string[], values: unknown[]): object {
  const record: Record<string, unknown> = {};
  for (let i = 0; i < values.length; i++) put(record, keys[i], values[i]);
  return readEntries(decoder, record, keys.length - values.length, null);
}

function learn(keys: string[], slot: number): void {
  const shape = shapes[slot];
  if (shape === undefined || !sameKeys(shape.keys, keys)) {
    // A shape in use is replaced only by a more frequent one.
    if (shape === undefined || --shape.sightings < 0)
      shapes[slot] = { keys, sightings: 1, read: null };
    return;
  }
  if (shape.read !== null || ++shape.sightings < sightingsNeeded) return;
  if (!keys.every(fitsShape)) {
    shape.sightings = 0;
    return;
  }
  if (readers === READERS_MAX) {
    shapes = new Array(SHAPE_SLOTS).fill(undefined);
    readers = 0;
    sightingsNeeded *= 2;
  }
  shape.read = makeReader(keys);
  if (shape.read !== null) {
    readers++;
    shapes[slot] = shape;
  }
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Whether a key can be in an object literal that means the same. */
function fitsShape(key: string): boolean {
  if (key.length === 0 || key.length > SHAPE_KEY_BYTES_MAX || key in Object.prototype) return false;
  for (let i = 0; i < key.length; i++) if (key.charCodeAt(i) >= 0x80) return false;
  return true;
}

/**
 * The reader for these keys. Its code holds nothing but numbers, and the keys as JSON strings:
 * never bytes of a value as they are.
 */
function makeReader(keys: string[]): Reader | null {
  const lines: string[] = ["const buf = d.buf; let p = d.pos, b = 0;"];
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k];
    const tests = [`buf[p] === ${0x60 + key.length}`];
    for (let i = 0; i < key.length; i++) tests.push(`buf[p + ${i + 1}] === ${key.charCodeAt(i)}`);
    const before = keys.slice(0, k).map((_, i) => `v${i}`);
    const miss =
      k === 0
        ? "return undefined;"
        : `{ d.pos = p; return rest(d, keys, [${before.join(", ")}]); }`;
    lines.push(`if (!(${tests.join(" && ")})) ${miss}`);
    lines.push(`p += ${key.length + 1}; b = buf[p]; let v${k};`);
    lines.push(`if (b < 24) { v${k} = b; p++; }`);
    lines.push(
      `else if (b > 0x60 && b < 0x78) { v${k} = d.shortText(p + 1, b - 0x60); p += b - 0x5f; }`,
    );
    lines.push(`else { d.pos = p; v${k} = d.value(); p = d.pos; }`);
  }
  lines.push("d.pos = p;");
  lines.push(`return { ${keys.map((key, i) => `${JSON.stringify(key)}: v${i}`).join(", ")} };`);
  try {
    const make = new Function(
      "keys",
      "rest",
      `"use strict"; return function readRecord(d) {\n${lines.join("\n")}\n};`,
    );
    return (make as (keys: string[], rest: typeof readRest) => Reader)(keys, readRest);
  } catch {
    // A policy forbids code from strings.
    mayGenerate = false;
    return null;
  }
}

/** A key; the same string again for the same short ASCII bytes. */
function readKey(decoder: Decoder): string {
  const { buf, pos } = decoder;
  const head = buf[pos];
  const length = head - 0x60;
  if (length <= 0 || length > SHAPE_KEY_BYTES_MAX || pos + length >= decoder.end)
    return decoder.string();
  const slot =
    (Math.imul(length * 256 + buf[pos + 1], 0x9e35) +
      buf[pos + length] * 0x1f3 +
      buf[pos + ((length + 1) >> 1)] * 7) &
    (KEY_SLOTS - 1);
  const known = keyStrings[slot];
  if (isAt(buf, pos + 1, length, known)) {
    decoder.pos = pos + length + 1;
    return known;
  }
  const key = decoder.string();
  if (key.length === length) keyStrings[slot] = key;
  return key;
}

/** Whether the bytes are the ASCII of `text`. */
function isAt(buf: Buffer, at: number, length: number, text: string): boolean {
  if (text.length !== length) return false;
  for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== buf[at + i]) return false;
  return true;
}
