/**
 * The keys of frequent records, for reading: a trie for each number of keys, whose nodes are keys. A
 * node may have a generated reader, which reads the rest of the record.
 *
 * What is kept is bounded: nodes, readers, and the keys of each. Nodes of keys that do not come again
 * make room for others, and the more of them there are, the more rarely one is learned.
 */

import { type Decoder, SHAPE_KEYS_MAX } from "./decoder";
import { SIGHTINGS_OF_KIND, sightingsNeeded } from "./patience";

/** Keys of a shape are ASCII and at most this long, in bytes: their head is one byte. */
export const SHAPE_KEY_BYTES_MAX = 23;
/** Readers that are kept; when there are more, the whole trie is forgotten. */
const READERS_MAX = 512;
/** Nodes of all tries; when there are more, rare ones are forgotten. */
const NODES_MAX = 4096;
/** Nodes that follow one node: they are compared in turns. */
const CHILDREN_MAX = 16;
/** Most records with unknown keys that are not learned after one that was. */
const UNLEARNED_MAX = 1023;

/** Reads the rest of a record; the values of the keys before it begin at `base`. */
type Reader = (decoder: Decoder, base: number) => object;

/** Goes on where a reader does not know the key: behind `shape`, with the values it has read. */
type Resume = (
  decoder: Decoder,
  count: number,
  shape: Shape,
  base: number,
  before: number,
  own: readonly unknown[],
) => object;

/** A key of a record, after the keys of the nodes above it. */
export interface Shape {
  readonly key: string;
  readonly parent: Shape | null;
  /** The head and the bytes of the key. */
  readonly head: number;
  readonly bytes: Uint8Array;
  /** The bytes four at a time, as `DataView` reads them; the last four overlap. Null for a shorter key. */
  readonly words: Int32Array | null;
  /** The first of the nodes that follow, and how many there are. */
  child: Shape | null;
  children: number;
  /** The next node of the same parent. */
  next: Shape | null;
  /** Of the last key of a record that was complete: all keys, each of which occurs once. */
  keys: readonly string[] | null;
  /** How often such a record was read, until it is frequent: then it has a reader. */
  sightings: number;
  frequent: boolean;
  /** Reads what follows the key. */
  read: Reader | null;
  /** The last key of what `read` reads. */
  last: Shape | null;
}

function newShape(key: string, parent: Shape | null): Shape {
  const bytes = new Uint8Array(key.length);
  for (let i = 0; i < key.length; i++) bytes[i] = key.charCodeAt(i);
  return {
    key,
    parent,
    head: 0x60 + key.length,
    bytes,
    words: bytes.length < 4 ? null : wordsOf(bytes),
    child: null,
    children: 0,
    next: null,
    keys: null,
    sightings: 0,
    frequent: false,
    read: null,
    last: null,
  };
}

function wordsOf(bytes: Uint8Array): Int32Array {
  const view = new DataView(bytes.buffer);
  const last = bytes.length - 4;
  return Int32Array.from({ length: (bytes.length + 3) >> 2 }, (_, i) =>
    view.getInt32(Math.min(4 * i, last)),
  );
}

const roots: Shape[] = Array.from({ length: SHAPE_KEYS_MAX + 1 }, () => newShape("", null));
let nodes = 0;
/** Paths that were seen often enough to stay when room is made for others. */
let paths = 0;
let readers = 0;
/** A factor of the sightings before a reader; doubled whenever all is forgotten. */
let patience = 1;
/** Records with unknown keys that are still to be left out, and how many after the next one. */
let unlearned = 0;
let unlearnedNext = 0;
let mayGenerate = true;

/** Above the first keys of records with `count` keys. */
export function rootOf(count: number): Shape {
  return roots[count];
}

/** The keys of the node and of those above it. */
export function pathTo(shape: Shape): string[] {
  const keys: string[] = [];
  for (let at = shape; at.parent !== null; at = at.parent) keys.push(at.key);
  return keys.reverse();
}

/** Whether the keys of a record that is not known are to be learned. */
export function mayLearn(): boolean {
  if (unlearned > 0) {
    unlearned--;
    return false;
  }
  unlearned = unlearnedNext;
  return true;
}

/** Puts a path of keys, of which none occurs twice, into a trie. */
export function learn(root: Shape, keys: readonly string[]): void {
  let node = root;
  for (const key of keys) {
    let child = node.child;
    let last: Shape | null = null;
    for (; child !== null && child.key !== key; child = child.next) last = child;
    if (child === null) {
      if (!fitsShape(key)) return;
      if (node.children === CHILDREN_MAX || nodes === NODES_MAX) return forgetUnused();
      child = newShape(key, node);
      if (last === null) node.child = child;
      else last.next = child;
      node.children++;
      nodes++;
    }
    node = child;
  }
  node.keys = keys;
}

/** Whether a key can be a node, and be in an object literal that means the same. */
function fitsShape(key: string): boolean {
  if (key.length === 0 || key.length > SHAPE_KEY_BYTES_MAX || key in Object.prototype) return false;
  for (let i = 0; i < key.length; i++) if (key.charCodeAt(i) >= 0x80) return false;
  return true;
}

/** Forgets rare paths; the next ones are learned more rarely. */
function forgetUnused(): void {
  unlearned = unlearnedNext = Math.min(unlearnedNext * 2 + 1, UNLEARNED_MAX);
  nodes = 0;
  for (const root of roots) dropUnused(root);
  if (nodes >= NODES_MAX >> 1) forgetAll();
}

/** Returns whether the node stays. */
function dropUnused(shape: Shape): boolean {
  let kept: Shape | null = null;
  let last: Shape | null = null;
  shape.children = 0;
  for (let child = shape.child; child !== null; child = child.next) {
    if (!dropUnused(child)) continue;
    if (last === null) kept = child;
    else last.next = child;
    last = child;
    shape.children++;
  }
  if (last !== null) last.next = null;
  shape.child = kept;
  nodes += shape.children;
  return kept !== null || shape.sightings >= SIGHTINGS_OF_KIND;
}

function forgetAll(): void {
  for (const root of roots) {
    root.child = null;
    root.children = 0;
    root.read = root.last = null;
  }
  nodes = readers = paths = 0;
  patience *= 2;
}

/** Whether records that end at the node are still to be counted by {@link met}. */
export function isCounted(shape: Shape): boolean {
  return !shape.frequent && mayGenerate;
}

/** Counts a record that the decoder has read to its end, at the node; generates its reader when it is frequent. */
export function met(shape: Shape, count: number, decoder: Decoder, resume: Resume): void {
  shape.sightings++;
  if (shape.sightings === SIGHTINGS_OF_KIND) paths++;
  if (shape.sightings < sightingsNeeded(count, paths, decoder.depth > 1) * patience) return;
  shape.frequent = true;
  // The next ones will have a view too, probably.
  generateReader(shape, count, decoder.view !== null, resume);
}

/** Makes the reader that ends at the node, as far above it as no other frequent path goes. */
function generateReader(last: Shape, count: number, hasView: boolean, resume: Resume): void {
  let start = last;
  let own = 0;
  while (start.parent !== null && !hasOther(start.parent, start)) {
    start = start.parent;
    own++;
  }
  // A reader that begins above begins too high for both now.
  for (let at = start.parent; at !== null; at = at.parent) {
    const other = at.last;
    at.read = at.last = null;
    if (other !== null) generateReader(other, count, hasView, resume);
  }
  if (own === 0) return;
  if (readers === READERS_MAX) return forgetAll();
  const path: Shape[] = [];
  for (let at = last; at !== start; at = at.parent!) path.push(at);
  path.reverse();
  try {
    start.read = readerOf(start, path, count, hasView, resume);
    start.last = last;
    readers++;
  } catch {
    // A policy forbids code from strings.
    mayGenerate = false;
  }
}

/** Whether a frequent path goes through another child than this one. */
function hasOther(parent: Shape, than: Shape): boolean {
  for (let child = parent.child; child !== null; child = child.next)
    if (child !== than && isOnFrequent(child)) return true;
  return false;
}

function isOnFrequent(shape: Shape): boolean {
  if (shape.frequent) return true;
  for (let child = shape.child; child !== null; child = child.next)
    if (isOnFrequent(child)) return true;
  return false;
}

/**
 * The reader of the keys of `path`, behind the keys up to `start`. Its code holds nothing but numbers,
 * and the keys as JSON strings: never bytes of a value as they are. One for bytes with a view leaves those without
 * to `resume`.
 */
function readerOf(
  start: Shape,
  path: readonly Shape[],
  count: number,
  hasView: boolean,
  resume: Resume,
): Reader {
  const before = count - path.length;
  const lines = ["const { buf, view } = d; let p = d.pos, b = 0;"];
  if (hasView)
    lines.push(`if (view === null) return resume(d, ${count}, nodes[0], base, ${before}, []);`);
  if (before > 0) lines.push(`d.top = base + ${before};`);
  path.forEach((shape, k) => {
    const { key } = shape;
    const own = path.slice(0, k).map((_, i) => `v${i}`);
    lines.push(
      `if (!(${testOf(shape, hasView)})) { d.pos = p; return resume(d, ${count}, nodes[${k}], base, ${before}, [${own.join(", ")}]); }`,
      `p += ${key.length + 1}; b = buf[p]; let v${k};`,
      `if (b < 24) { v${k} = b; p++; }`,
      `else if (b > 0x60 && b < 0x78) { v${k} = d.shortText(p + 1, b - 0x60); p += b - 0x5f; }`,
      `else { d.pos = p; v${k} = d.value(); p = d.pos; }`,
    );
  });
  const keys = [...pathTo(start), ...path.map(({ key }) => key)];
  const entries = keys.map(
    (key, i) =>
      `${JSON.stringify(key)}: ${i < before ? `d.values[base + ${i}]` : `v${i - before}`}`,
  );
  lines.push("d.pos = p;");
  if (before > 0) lines.push("d.top = base;");
  lines.push(`return { ${entries.join(", ")} };`);
  const code = `"use strict"; return function readRecord(d, base) {\n${lines.join("\n")}\n};`;
  const make = new Function("nodes", "resume", code);
  return (make as (nodes: readonly Shape[], resume: Resume) => Reader)([start, ...path], resume);
}

/** Whether the key is at `p`, its head included. */
function testOf({ head, bytes, words }: Shape, hasView: boolean): string {
  const tests = [`buf[p] === ${head}`];
  if (hasView && words !== null) {
    const last = words.length - 1;
    for (const [i, word] of words.entries()) {
      const at = i < last ? 4 * i : bytes.length - 4;
      tests.push(`view.getInt32(p + ${at + 1}) === ${word}`);
    }
  } else for (const [i, byte] of bytes.entries()) tests.push(`buf[p + ${i + 1}] === ${byte}`);
  return tests.join(" && ");
}
