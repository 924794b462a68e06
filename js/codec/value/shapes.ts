/**
 * Encodes plain objects. Objects with the same keys are frequent, within a value and across
 * values.
 *
 * A frequent set of keys gets a writer of its own. It checks whether an object has these keys, and
 * then writes their bytes as constants. Where code generation is forbidden, and for keys
 * that do not repeat, the encoder writes entry by entry; the bytes are the same.
 */

import { Buffer } from "node:buffer";
import { isWellFormed } from "../text";
import type { Encoder } from "./encoder";
import { SIGHTINGS_OF_KIND, sightingsNeeded } from "./patience";
import { writeHead } from "./splice";

/** Objects of more keys than this are dictionaries, not shapes. */
const SHAPE_KEYS_MAX = 32;
/** UTF-8 bytes of a shape's longest key. */
const SHAPE_KEY_BYTES_MAX = 64;
/** Writers kept; when there are more, all are forgotten, and the next ones need more sightings. */
const WRITERS_MAX = 512;
/** Places for shapes; a power of two. */
const SHAPE_SLOTS = 1024;
/** Shapes of one place. */
const SHAPES_OF_SLOT_MAX = 4;

/**
 * Writes an object and returns true; returns false if its keys or its class differ. `isKnown`: they are those, and are not
 * compared.
 */
export type ShapeWriter = (encoder: Encoder, value: object, isKnown: boolean) => boolean;

interface Shape {
  keys: readonly string[];
  constructor: unknown;
  sightings: number;
  write: ShapeWriter | null;
  /** The next shape of the same place. */
  readonly next: Shape | null;
}

let shapes: (Shape | null)[] = new Array(SHAPE_SLOTS).fill(null);
let writers = 0;
/** Shapes that were seen often. */
let frequent = 0;
/** A factor of the sightings before a writer; doubled whenever all are forgotten. */
let patience = 1;
let mayGenerate = true;

/** The writer for objects with these own keys, as `value` has; null if there is none yet. `isPart`: of another value. */
export function shapeWriter(
  value: object,
  keys: readonly string[],
  isPart: boolean,
): ShapeWriter | null {
  const count = keys.length;
  if (count > SHAPE_KEYS_MAX || !mayGenerate) return null;
  const shape = shapeOf(value, keys, slotOf(keys));
  if (shape === null) return null;
  if (shape.write !== null) return shape.constructor === constructorOf(value) ? shape.write : null;
  if (++shape.sightings === SIGHTINGS_OF_KIND) frequent++;
  if (shape.sightings < sightingsNeeded(count, frequent, isPart) * patience) return null;
  if (!keys.every(fitsShape)) {
    shape.sightings = 0;
    return null;
  }
  if (writers === WRITERS_MAX) {
    shapes = new Array(SHAPE_SLOTS).fill(null);
    writers = frequent = 0;
    patience *= 2;
    return null;
  }
  shape.constructor = constructorOf(value);
  shape.write = makeWriter(keys, shape.constructor);
  if (shape.write !== null) writers++;
  return shape.write;
}

function slotOf(keys: readonly string[]): number {
  const count = keys.length;
  const first = keys[0];
  const last = keys[count - 1];
  return (
    (Math.imul(count * 64 + first.length, 0x9e35) +
      first.charCodeAt(0) * 0x1f3 +
      first.charCodeAt(first.length - 1) * 0x3d +
      last.length * 0x11 +
      last.charCodeAt(last.length - 1)) &
    (SHAPE_SLOTS - 1)
  );
}

/** The shape with these keys; null, and a step towards one, if it is not among those of its place. */
function shapeOf(value: object, keys: readonly string[], slot: number): Shape | null {
  let count = 0;
  let rarest: Shape | null = null;
  for (let shape = shapes[slot]; shape !== null; shape = shape.next) {
    if (sameKeys(shape.keys, keys)) return shape;
    if (rarest === null || shape.sightings < rarest.sightings) rarest = shape;
    count++;
  }
  if (rarest === null || count < SHAPES_OF_SLOT_MAX) {
    const constructor = constructorOf(value);
    shapes[slot] = { keys, constructor, sightings: 1, write: null, next: shapes[slot] };
  } else if (--rarest.sightings < 0) {
    // A shape in use is replaced only by a more frequent one.
    if (rarest.write !== null) writers--;
    rarest.keys = keys;
    rarest.sightings = 1;
    rarest.write = null;
  }
  return null;
}

function constructorOf(value: object): unknown {
  return value.constructor;
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Whether a key may be a constant: not one that decides what the object is, nor an index, whose
 * order differs.
 */
function fitsShape(key: string): boolean {
  if (key === "constructor" || key === "__proto__" || /^[0-9]/.test(key) || !isWellFormed(key))
    return false;
  return Buffer.byteLength(key) <= SHAPE_KEY_BYTES_MAX;
}

/**
 * The writer for these keys. Its code holds nothing but numbers, and the keys as JSON strings.
 *
 * Enumeration shows inherited properties too; an object that has any is left to the encoder. Values
 * are read in the keys' order, after all keys have been compared, so a getter changes nothing that
 * was decided.
 */
function makeWriter(keys: readonly string[], constructor: unknown): ShapeWriter | null {
  const count = keys.length;
  const head: number[] = headBytes(5, count);
  const lines = [
    "if (!isKnown) {",
    "let n = 0;",
    "for (const k in o) { if (k !== keys[n]) return false; n++; }",
    `if (n !== ${count} || o.constructor !== constructor) return false;`,
    "}",
    "e.enter();",
    `let left = ${count}; const at = e.pos;`,
    `if (at + ${head.length} > e.end) e.grow(${head.length});`,
    `let buf = e.buf, p = at, v;`,
    ...head.map((byte) => `buf[p++] = ${byte};`),
  ];
  for (const key of keys) {
    const text = Buffer.from(key);
    const bytes = [...headBytes(3, text.length), ...text];
    const name = JSON.stringify(key);
    const room = bytes.length + 9;
    lines.push(
      `v = o[${name}];`,
      `if (v === undefined && !hasOwn.call(o, ${name})) left--;`,
      "else {",
      `if (p + ${room} > e.end) { e.pos = p; e.grow(${room}); buf = e.buf; }`,
      ...bytes.map((byte, i) => `buf[p${i === 0 ? "" : ` + ${i}`}] = ${byte};`),
      `p += ${bytes.length};`,
      "if (typeof v === 'number' && v > 0 && v < 24 && (v | 0) === v) buf[p++] = v;",
      "else if (typeof v === 'boolean') buf[p++] = v ? 0xf5 : 0xf4;",
      "else { e.pos = p; if (typeof v === 'string') e.text(v); else e.value(v);",
      "p = e.pos; buf = e.buf; }",
      "}",
    );
  }
  lines.push(
    "e.pos = p; e.leave();",
    `if (left !== ${count}) e.edit({ kind: "head", at, drop: ${head.length}, count: left });`,
    "return true;",
  );
  try {
    const make = new Function(
      "keys",
      "constructor",
      "hasOwn",
      `"use strict"; return function writeShape(e, o, isKnown) {\n${lines.join("\n")}\n};`,
    );
    return (make as (...parts: unknown[]) => ShapeWriter)(
      keys,
      constructor,
      Object.prototype.hasOwnProperty,
    );
  } catch {
    // A policy forbids code from strings.
    mayGenerate = false;
    return null;
  }
}

function headBytes(major: number, argument: number): number[] {
  const bytes = Buffer.alloc(9);
  return [...bytes.subarray(0, writeHead(bytes, 0, major, argument))];
}
