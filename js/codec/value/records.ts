/**
 * Decodes plain objects. Records with the same keys are frequent, within a value and across values.
 *
 * shape-trie.ts keeps the keys of frequent records; this file follows its paths. Where a path is
 * known, a key costs a comparison of its bytes, and all keys of the object are known to occur once.
 * Paths that stay frequent have a reader, which is generated. Where code generation is forbidden, and
 * for keys that do not repeat, the results are the same.
 */

import type { Buffer } from "node:buffer";
import { type Decoder, SHAPE_KEYS_MAX, malformed, put } from "./decoder";
import {
  SHAPE_KEY_BYTES_MAX,
  type Shape,
  isCounted,
  learn,
  mayLearn,
  met,
  pathTo,
  rootOf,
} from "./shape-trie";

/** Places for key strings: two to this power. */
const KEY_SLOT_BITS = 13;
const KEY_SLOTS = 1 << KEY_SLOT_BITS;
/** The bytes of a key string, with its head. */
const KEY_SLOT_BYTES = SHAPE_KEY_BYTES_MAX + 1;
/** Objects with so many unknown keys are dictionaries: their keys are data, and will not come again. */
const DICTIONARY_KEYS_MIN = 8;

const objectKeys = Object.keys;
const setPrototypeOf = Object.setPrototypeOf as (object: object, prototype: object) => object;

const keyStrings: string[] = new Array(KEY_SLOTS).fill("");
const keyBytes = new Uint8Array(KEY_SLOTS * KEY_SLOT_BYTES);

/** The object of the `count` entries that follow. */
export function readRecord(decoder: Decoder, count: number): object {
  if (count === 0) return {};
  if (count > SHAPE_KEYS_MAX) return readDictionary(decoder, newDictionary(), 0, count, null);
  const root = rootOf(count);
  if (root.read !== null) return root.read(decoder, decoder.top);
  return follow(decoder, count, root, decoder.top, 0);
}

/**
 * Reads on behind `shape`, the node of the key before key number `done`; the values of the keys up to
 * it begin at `base`.
 */
function follow(decoder: Decoder, count: number, shape: Shape, base: number, done: number): object {
  const { buf, view, values } = decoder;
  const end = base + count;
  let pos = decoder.pos;
  let node = shape;
  for (let i = base + done; i < end; i++) {
    const head = buf[pos];
    let child = node.child;
    while (child !== null && (child.head !== head || !isKeyAt(buf, view, pos + 1, child)))
      child = child.next;
    if (child === null) {
      decoder.pos = pos;
      return readUnknown(decoder, count, node, base, i - base);
    }
    node = child;
    pos += head - 0x5f;
    const byte = buf[pos];
    if (byte < 24) {
      values[i] = byte;
      pos++;
    } else if (byte > 0x60 && byte < 0x78) {
      values[i] = decoder.shortText(pos + 1, byte - 0x60);
      pos += byte - 0x5f;
    } else {
      decoder.pos = pos;
      decoder.top = i;
      values[i] = decoder.value();
      pos = decoder.pos;
    }
    if (node.read !== null) {
      decoder.pos = pos;
      if (i >= decoder.used) decoder.used = i + 1;
      return node.read(decoder, base);
    }
  }
  decoder.pos = pos;
  decoder.top = base;
  if (end > decoder.used) decoder.used = end;
  if (isCounted(node)) met(node, count, decoder, resume);
  const keys = node.keys ?? pathTo(node);
  const record: Record<string, unknown> = {};
  for (let i = 0; i < count; i++) record[keys[i]] = values[base + i];
  return record;
}

/** Whether the key of the node is at `at`. By words where there is a view: half of the time that all keys take. */
function isKeyAt(buf: Buffer, view: DataView | null, at: number, shape: Shape): boolean {
  const { bytes, words } = shape;
  if (view === null || words === null) {
    for (let i = 0; i < bytes.length; i++) if (bytes[i] !== buf[at + i]) return false;
    return true;
  }
  const last = words.length - 1;
  for (let i = 0; i < last; i++) if (view.getInt32(at + 4 * i) !== words[i]) return false;
  return view.getInt32(at + bytes.length - 4) === words[last];
}

/**
 * Called by a reader when the key behind `shape` is not the expected one; `own` are the values that the
 * reader has read, behind the `before` ones of the path to it.
 */
function resume(
  decoder: Decoder,
  count: number,
  shape: Shape,
  base: number,
  before: number,
  own: readonly unknown[],
): object {
  const { values } = decoder;
  for (let i = 0; i < own.length; i++) values[base + before + i] = own[i];
  return follow(decoder, count, shape, base, before + own.length);
}

/** Reads on where key number `done` is unknown behind the node, and learns the keys. */
function readUnknown(
  decoder: Decoder,
  count: number,
  node: Shape,
  base: number,
  done: number,
): object {
  const { values } = decoder;
  const isLearned = mayLearn();
  decoder.top = base;
  if (base + done > decoder.used) decoder.used = base + done;
  const keys = pathTo(node);
  const left = count - done;
  let record: object;
  if (left >= DICTIONARY_KEYS_MIN) {
    const entries = newDictionary();
    for (let i = 0; i < done; i++) entries[keys[i]] = values[base + i];
    record = readDictionary(decoder, entries, done, count, isLearned ? keys : null);
  } else {
    const entries: Record<string, unknown> = {};
    for (let i = 0; i < done; i++) entries[keys[i]] = values[base + i];
    record = readEntries(decoder, entries, left, isLearned ? keys : null);
  }
  if (isLearned) learn(rootOf(count), keys);
  return record;
}

/**
 * An object whose keys are data. Without a prototype an engine keeps it as a table from the start;
 * otherwise it would make a hidden class for each key.
 */
function newDictionary(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}

/** Reads entries into a dictionary, which has those before them, and makes it an ordinary object. */
function readDictionary(
  decoder: Decoder,
  record: Record<string, unknown>,
  done: number,
  count: number,
  keys: string[] | null,
): object {
  for (let i = done; i < count; i++) {
    const key = readKey(decoder);
    record[key] = decoder.value();
    if (keys !== null) keys.push(key);
  }
  // Nothing is inherited: fewer keys than entries are keys that occur twice.
  if (objectKeys(record).length !== count) malformed();
  return setPrototypeOf(record, Object.prototype);
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

/** A key; often the same string again for the same short ASCII bytes: an engine has it as a key already. */
function readKey(decoder: Decoder): string {
  const { buf, pos } = decoder;
  const head = buf[pos];
  const length = head - 0x60;
  if (length <= 0 || length > SHAPE_KEY_BYTES_MAX || pos + length >= decoder.end)
    return decoder.string();
  const slot = slotOf(buf, pos, length);
  const at = slot * KEY_SLOT_BYTES;
  let same = 0;
  while (same <= length && keyBytes[at + same] === buf[pos + same]) same++;
  if (same > length) {
    decoder.pos = pos + length + 1;
    return keyStrings[slot];
  }
  const key = decoder.string();
  if (key.length === length) {
    for (let i = 0; i <= length; i++) keyBytes[at + i] = buf[pos + i];
    keyStrings[slot] = key;
  }
  return key;
}

/** The place of a key: by its length, its ends and its middle, where keys of one kind differ. */
function slotOf(buf: Buffer, pos: number, length: number): number {
  const end = pos + length;
  let hash = length ^ (buf[pos + 1] << 8) ^ (buf[pos + ((length + 1) >> 1)] << 16);
  if (length > 3)
    hash =
      Math.imul(hash ^ (buf[pos + 1 + (length >> 2)] << 24), 0x9e3779b1) ^
      (buf[end - 3] | (buf[end - 2] << 8) | (buf[end - 1] << 16));
  return Math.imul(hash ^ (buf[end] << 24), 0x85ebca6b) >>> (32 - KEY_SLOT_BITS);
}
