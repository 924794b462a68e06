// Readers and writers made per shape of object: the same results as without them, and without them
// where code from strings is forbidden.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Writer, decodeValue, encode, encodeValue, fromHex, hexOf, roundTrip } from "./codec.mjs";
import { assertSame } from "./graph.mjs";

/** Often enough for a shape to be learned, and then used. */
const OFTEN = 12;

test("objects of one shape, with values of every kind in every place", () => {
  const values = [
    1,
    -1,
    0,
    -0,
    23,
    24,
    1.5,
    2 ** 40,
    "",
    "short",
    "é",
    "x".repeat(30),
    "\ud800",
    true,
    false,
    null,
    undefined,
    5n,
    [1],
    { z: 1 },
    new Date(0),
  ];
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < values.length; i++) {
      const object = {
        id: values[i],
        name: values[(i + 7) % values.length],
        "a-b": values[(i + 13) % values.length],
        ключ: i,
      };
      assertSame(roundTrip(object), object);
      assertSame(roundTrip([object, object]), [object, object]);
    }
  }
});

test("objects whose keys begin alike and then differ", () => {
  const make = (i) => {
    const object = { id: i, name: "n" };
    object[["email", "phone", "emaim", "e"][i % 4]] = [i];
    object[i % 3 === 0 ? "last" : "lost"] = { i };
    return object;
  };
  const list = Array.from({ length: 200 }, (_, i) => make(i));
  assertSame(roundTrip(list), list);
  for (const object of list) assertSame(roundTrip(object), object);
});

test("one shape in many classes, and with inherited properties", () => {
  class A {
    x = 1;
  }
  class B {
    x = 1;
  }
  const inherits = Object.create({ y: 2 }, { x: { value: 1, enumerable: true } });
  const bare = Object.assign(Object.create(null), { x: 1 });
  for (let i = 0; i < OFTEN; i++) {
    for (const object of [{ x: 1 }, new A(), new B(), inherits, bare])
      assert.equal(hexOf(object), "a1617801");
    assert.equal(hexOf(Object.assign(new Map(), { x: 1 })), "d90103a0");
    assert.equal(hexOf(Object.assign([], { x: 1 })), "d81b8365417272617900a1617801");
    assert.throws(() => hexOf(new Proxy({ x: 1 }, {})), TypeError);
  }
});

test("references into and out of learned shapes", () => {
  for (let i = 0; i < OFTEN; i++) {
    const node = { name: "n", next: null, list: [] };
    node.next = { name: "m", next: node, list: [node] };
    node.list.push(node.next, node.list);
    assertSame(roundTrip(node), node);
  }
});

test("keys in shapes that are code to others", () => {
  const keys = [
    "'\"`${}\\",
    "\n\u2028",
    "*/ }",
    "constructor",
    "hasOwnProperty",
    "__proto__",
    "v0",
    "d",
    "0",
    "-1",
  ];
  for (const key of keys) {
    for (let i = 0; i < OFTEN; i++) {
      const object = { a: i };
      Object.defineProperty(object, key, {
        value: i,
        enumerable: true,
        configurable: true,
        writable: true,
      });
      const back = roundTrip(object);
      assertSame(back, object, key);
      assert.equal(Object.getOwnPropertyDescriptor(back, key).value, i);
    }
  }
});

test("dictionaries of every size, with keys that are code to others", () => {
  const names = ["__proto__", "constructor", "toString", "0", "ключ", "", "x".repeat(30), "\ud800"];
  for (const count of [1, 7, 8, 9, 32, 33, 63, 64, 65, 100, 1500]) {
    for (let round = 0; round < 30; round++) {
      const dictionary = { begins: round };
      for (let k = 1; k < count; k++) {
        const key =
          k % 9 === 4 ? `${names[(k + round) % names.length]}${k > 60 ? k : ""}` : `k${k}-${round}`;
        Object.defineProperty(dictionary, key, {
          value: k % 5 === 0 ? { [key]: k } : k,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
      const back = roundTrip(dictionary);
      assertSame(back, dictionary);
      assert.deepEqual(Object.keys(back), Object.keys(dictionary));
      assert.equal(Object.getPrototypeOf(back), Object.prototype);
    }
    const twice = encode(
      Object.fromEntries(Array.from({ length: count + 1 }, (_, k) => [`a${1000 + k}`, k])),
    );
    const hex = twice.bytes.toString("hex");
    const last = Buffer.from(`a${1000 + count}`).toString("hex");
    const first = Buffer.from("a1000").toString("hex");
    for (let i = 0; i < 3; i++) assert.throws(() => fromHex(hex.replace(last, first)), RangeError);
  }
});

/** Often enough for readers and writers of up to five keys, whatever else the program reads: js/codec/value/patience.ts. */
const FREQUENTLY = (8000 + 5 * 800) * 2.5;

test("frequent records that begin with the same keys", () => {
  const types = [
    (i) => ({ kind: "a", id: i, name: `n${i}`, at: new Date(i) }),
    (i) => ({ kind: "a", id: i, tags: [{ kind: "a", id: i, name: "in", at: null }], at: 1 }),
    (i) => ({ kind: "b", id: { kind: i, id: { z: i }, tags: [], at: 2 }, tags: 0, at: "" }),
    (i) => ({ kind: "c", url: `u${i}`, id: i, at: undefined }),
    (i) => ({ other: i, id: [i], name: "x", at: 2.5 }),
  ];
  // One by one, so that each reader begins as high as it can, and then all in turns.
  for (const make of types) {
    const { bytes } = encode(make(1));
    const writer = new Writer(1024);
    for (let i = 0; i < FREQUENTLY; i++) {
      decodeValue(67, bytes, 0, bytes.length);
      writer.pos = 0;
      encodeValue(writer, make(i));
    }
    assertSame(roundTrip(make(2)), make(2));
    for (const other of types) assertSame(roundTrip(other(3)), other(3));
  }
  const list = Array.from({ length: 1000 }, (_, i) => types[i % types.length](i));
  assertSame(roundTrip(list), list);
  // Keys that the readers do not know, at every place.
  for (const make of types) {
    for (let skipped = 0; skipped < 4; skipped++) {
      const entries = Object.entries(make(7));
      entries.splice(skipped, 1, ["unknown", [make(8)]]);
      const object = Object.fromEntries(entries);
      assertSame(roundTrip(object), object);
    }
  }
});

test("frequent records whose bytes are wrong, at every byte", () => {
  const good = { kind: "w", id: 1, name: "text", list: [{ kind: "w", id: 2 }] };
  const { bytes } = encode(good);
  for (let i = 0; i < FREQUENTLY; i++) decodeValue(67, bytes, 0, bytes.length);
  for (let at = 0; at < bytes.length; at++) {
    assert.throws(() => decodeValue(67, Buffer.from(bytes.subarray(0, at)), 0, at), RangeError);
    for (const byte of [0, 0x17, 0x18, 0x61, 0x7f, 0xa1, 0xff]) {
      const wrong = Buffer.from(bytes);
      wrong[at] = byte;
      let value;
      try {
        value = decodeValue(67, wrong, 0, wrong.length);
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
        continue;
      }
      assert.equal(hexOf(value), wrong.toString("hex"));
    }
  }
  assert.deepEqual(decodeValue(67, bytes, 0, bytes.length), good);
});

test("records among dictionaries of as many keys", () => {
  const record = { id: 1, name: "n", note: null };
  for (let i = 0; i < 20_000; i++) {
    const dictionary = { [`a${i}`]: i, [`b${i}`]: record, c: [record] };
    if (i % 100 === 0) assertSame(roundTrip([dictionary, record]), [dictionary, record]);
    else roundTrip(dictionary);
  }
  assertSame(roundTrip(record), record);
});

test("more shapes than are kept", () => {
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 2500; i++) {
      const object = { [`k${i}`]: i, other: { [`n${i}`]: "x" } };
      for (let j = 0; j < 3; j++) assert.deepEqual(roundTrip(object), object);
    }
  }
});

test("an entry met twice is refused by learned readers too", () => {
  for (let i = 0; i < OFTEN; i++) {
    assert.deepEqual(fromHex("a2616101616202"), { a: 1, b: 2 });
    assert.throws(() => fromHex("a2616101616102"), RangeError);
  }
});

test("the last of a shape's values being cut short is noticed", () => {
  const { bytes } = encode({ a: 1, b: "text" });
  for (let i = 0; i < OFTEN; i++) decodeValue(67, bytes, 0, bytes.length);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => decodeValue(67, Buffer.from(bytes.subarray(0, end)), 0, end), RangeError);
  }
});

/** Runtimes have a flag that forbids code from strings, or none. */
const forbid = process.versions.bun === undefined && process.versions.deno === undefined;

test("where code from strings is forbidden, everything is the same", {
  skip: !forbid && "no such flag",
}, () => {
  const script = fileURLToPath(new URL("without-code-generation.mjs", import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disallow-code-generation-from-strings", script],
    { encoding: "utf8" },
  );
  assert.equal(stderr, "");
  assert.equal(status, 0);
  const list = Array.from({ length: 50 }, (_, i) => ({
    id: i,
    name: `n${i}`,
    nested: { a: [i], b: null },
  }));
  assert.equal(stdout, hexOf(list));
});
