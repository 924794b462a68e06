// Random values against V8's own clone of them, and random keys against the order of their parts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeKey, encode, encodeKey, hexOf, roundTrip, Writer } from "./codec.mjs";
import { assertSame } from "./graph.mjs";
import { randomFrom, randomKey, randomValue } from "./random.mjs";

const VALUES = 1200;
const KEYS = 1500;

/**
 * The engine's own clone. JavaScriptCore's leaves out causes and properties of arrays; V8's is what
 * Deno KV stores.
 */
const isV8 = process.versions.bun === undefined;

test("random values come back as V8 clones them", { skip: !isV8 && "not V8" }, () => {
  for (let seed = 1; seed <= VALUES; seed++) {
    const value = randomValue(randomFrom(seed));
    const ours = roundTrip(value);
    let theirs;
    try {
      theirs = structuredClone(value);
    } catch {
      // Some versions of V8 cannot read what they wrote of an error that has a cause and is met
      // again.
      theirs = value;
    }
    assertSame(ours, theirs, `seed ${seed}`);
    // What was read is written with the same bytes.
    assert.equal(hexOf(ours), hexOf(value), `seed ${seed}`);
  }
});

test("random values have the same bytes when read and written again", () => {
  for (let seed = VALUES + 1; seed <= VALUES + 600; seed++) {
    const value = randomValue(randomFrom(seed));
    const back = roundTrip(value);
    assertSame(roundTrip(back), back, `seed ${seed}`);
    assert.equal(hexOf(back), hexOf(value), `seed ${seed}`);
  }
});

test("every date comes back to the millisecond", () => {
  const random = randomFrom(3);
  // Where seconds have the fewest digits left, and where their product with 1000 has more than they
  // have.
  const ranges = [
    [0, 2 ** 41],
    [2 ** 42 * 1000, 2 ** 52],
    [2 ** 52, 8.64e15],
  ];
  for (const [from, to] of ranges) {
    for (let i = 0; i < 3000; i++) {
      const time = Math.trunc(from + random.next() * (to - from)) * (i & 1 ? -1 : 1);
      assert.equal(roundTrip(new Date(time)).getTime(), time);
    }
  }
});

test("bytes inside values own their whole buffer", () => {
  const pooled = Buffer.from("pooled");
  const part = new Uint8Array(100).fill(7).subarray(10, 90);
  const { a, b } = roundTrip({ a: pooled, b: part });
  for (const [bytes, expected] of [
    [a, pooled],
    [b, part],
  ]) {
    assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
    assert.equal(bytes.byteOffset, 0);
    assert.equal(bytes.buffer.byteLength, bytes.length);
    assert.deepEqual([...bytes], [...expected]);
  }
  const top = roundTrip(Buffer.from("top"));
  assert.equal(Object.getPrototypeOf(top), Uint8Array.prototype);
  assert.equal(top.buffer.byteLength, 3);
});

/** The reference: kind by kind, then within the kind. */
function compareKeys(a, b) {
  const rank = (part) => ["object", "string", "bigint", "number", "boolean"].indexOf(typeof part);
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a[i], b[i]];
    if (rank(x) !== rank(y)) return rank(x) - rank(y);
    let order = 0;
    if (typeof x === "object") order = Buffer.compare(x, y);
    else if (typeof x === "string")
      order = Buffer.compare(
        Buffer.from(x.toWellFormed?.() ?? x),
        Buffer.from(y.toWellFormed?.() ?? y),
      );
    else if (typeof x === "number") order = compareNumbers(x, y);
    else order = x < y ? -1 : x > y ? 1 : 0;
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareNumbers(x, y) {
  if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
  if (x !== y) return x < y ? -1 : 1;
  return x === 0 ? Number(Object.is(y, -0)) - Number(Object.is(x, -0)) : 0;
}

/** Whether a part of a key decodes to itself. */
const isPlainPart = (part) =>
  typeof part === "string" ? part.isWellFormed() : typeof part !== "object";

test("the order of random keys is the order of their bytes", () => {
  const random = randomFrom(42);
  const writer = new Writer(16);
  const entries = Array.from({ length: KEYS }, () => {
    const key = randomKey(random);
    writer.pos = 0;
    const plain = encodeKey(writer, key);
    assert.equal(plain, key.every(isPlainPart));
    const bytes = writer.copy();
    const back = decodeKey(bytes, 0, bytes.length);
    if (plain) assert.deepEqual(back, key);
    writer.pos = 0;
    encodeKey(writer, back);
    assert.ok(writer.copy().equals(bytes));
    return { key, bytes };
  });
  for (let i = 0; i < KEYS; i++) {
    for (let j = i; j < Math.min(KEYS, i + 40); j++) {
      const [a, b] = [entries[i], entries[j]];
      assert.equal(
        Math.sign(Buffer.compare(a.bytes, b.bytes)),
        Math.sign(compareKeys(a.key, b.key)),
      );
    }
  }
});

test("a decoded prefix can be put in front of rows", () => {
  const writer = new Writer();
  const prefix = ["users", 7, 1n, true];
  encodeKey(writer, prefix);
  const from = writer.pos;
  encodeKey(writer, ["a\0b", new Uint8Array([0, 1])]);
  assert.deepEqual(decodeKey(writer.buf, from, writer.pos, prefix), [
    ...prefix,
    "a\0b",
    new Uint8Array([0, 1]),
  ]);
  assert.deepEqual(decodeKey(writer.buf, 0, writer.pos), [
    ...prefix,
    "a\0b",
    new Uint8Array([0, 1]),
  ]);
});

test("encodings by kind of value", () => {
  assert.equal(encode(new Uint8Array([1])).encoding, 3);
  assert.equal(encode(Buffer.from([1])).encoding, 3);
  assert.equal(encode(new (class Sub extends Uint8Array {})([1])).encoding, 3);
  assert.equal(encode(new Uint16Array([1])).encoding, 67);
  assert.equal(encode([new Uint8Array([1])]).encoding, 67);
});
