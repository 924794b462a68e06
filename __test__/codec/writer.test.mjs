// Writers: growth, what a failure leaves behind, user code that encodes while a value is encoded,
// limits, blobs.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import {
  decodeValue,
  encode,
  encodeKey,
  encodeValue,
  fillBlobs,
  fromHex,
  hexOf,
  roundTrip,
  vectors,
  Writer,
} from "./codec.mjs";

test("values and keys are appended, whatever the capacity", () => {
  const big = {
    text: "x".repeat(5000),
    list: Array.from({ length: 2000 }, (_, i) => ({ i, s: `é${i}` })),
    bytes: new Uint8Array(3000),
  };
  const expected = hexOf(big);
  for (let capacity = 1; capacity < 40; capacity++) {
    const writer = new Writer(capacity);
    writer.ascii("head");
    const keyAt = writer.pos;
    encodeKey(writer, [
      "a".repeat(capacity),
      "\0".repeat(capacity),
      2n ** 100n,
      1.5,
      new Uint8Array(capacity),
    ]);
    const at = writer.pos;
    encodeValue(writer, big);
    assert.equal(writer.buf.latin1Slice(0, 4), "head");
    assert.ok(at > keyAt);
    assert.equal(writer.copy(at).toString("hex"), expected);
  }
});

test("small values at every distance from the end of the buffer", () => {
  const values = [
    null,
    undefined,
    true,
    1,
    300,
    -1,
    1.5,
    5n,
    2n ** 70n,
    "",
    "a",
    "é",
    "x".repeat(30),
    "ü".repeat(60),
    "\ud800",
    [],
    {},
    [null],
    { a: undefined },
    new Date(0),
    new Uint8Array(3),
    [new Uint8Array(3)],
  ];
  for (const value of values) {
    const { bytes } = encode(value);
    for (let free = 0; free <= bytes.length; free++) {
      const writer = new Writer(16);
      writer.pos = 16 - Math.min(free, 16);
      const at = writer.pos;
      encodeValue(writer, value);
      assert.ok(writer.copy(at).equals(bytes));
    }
  }
});

test("an encoding that fails leaves the writer where it was, and ready", () => {
  const writer = new Writer(8);
  writer.ascii("kept");
  const shared = { x: 1 };
  const failures = [
    () => {},
    { a: 1, b: { c: Symbol("s") } },
    [
      shared,
      shared,
      new Blob(["x"]),
      {
        get bad() {
          throw new Error("from the getter");
        },
      },
    ],
    Array.from({ length: 50 }, (_, i) => (i < 49 ? { i } : new WeakMap())),
  ];
  for (const value of failures) {
    assert.throws(() => encodeValue(writer, value));
    assert.equal(writer.copy().toString(), "kept");
    assert.equal(writer.busy, false);
    assert.equal(writer.fills, null);
  }
  assert.throws(() => encodeValue(writer, failures[2]), { message: "from the getter" });
  encodeValue(writer, [shared, shared]);
  assert.equal(writer.copy(4).toString("hex"), "82d81ca1617801d81d00");
});

// A large object that a value held in thousands of places had its keys listed in each: seconds.
test("the keys of an object that is met again are not listed again", () => {
  const require = createRequire(import.meta.url);
  const path = require.resolve("../../build/codec/value/encode.js");
  const cached = require.cache[path];
  const { keys } = Object;
  let listed = 0;
  Object.keys = (object) => {
    if (object === large) listed++;
    return keys(object);
  };
  const large = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i]));
  try {
    delete require.cache[path];
    const fresh = require(path);
    const value = { all: Array(50).fill(large), once: { again: large } };
    const [once, often] = [new Writer(), new Writer()];
    fresh.encodeValue(once, large);
    listed = 0;
    fresh.encodeValue(often, value);
    assert.equal(listed, 1);
    assert.ok(often.pos - once.pos < 52 * 5 + 50);
  } finally {
    Object.keys = keys;
    require.cache[path] = cached;
  }
});

test("user code may encode into another writer while a value is encoded", () => {
  const outer = new Writer(4);
  const inner = new Writer(4);
  const rounds = [];
  const make = (depth) => ({
    before: [1, 2],
    get nested() {
      if (depth === 0) return "bottom";
      inner.pos = 0;
      encodeKey(inner, ["key", depth]);
      const own = new Writer();
      encodeValue(own, make(depth - 1));
      rounds.push(own.copy().toString("hex"));
      return depth;
    },
    after: { deep: true },
  });
  for (let i = 0; i < 10; i++) {
    rounds.length = 0;
    outer.pos = 0;
    encodeValue(outer, make(3));
    assert.deepEqual(decodeValue(67, outer.buf, 0, outer.pos), {
      before: [1, 2],
      nested: 3,
      after: { deep: true },
    });
    assert.deepEqual(
      rounds.map(fromHex),
      [0, 1, 2].map((n) => ({
        before: [1, 2],
        nested: n === 0 ? "bottom" : n,
        after: { deep: true },
      })),
    );
  }
});

test("user code must not encode into the same writer; the value fails, the writer is well", () => {
  const writer = new Writer();
  encodeValue(writer, "kept");
  const at = writer.pos;
  const value = {
    a: 1,
    get b() {
      return encodeValue(writer, { c: 1 });
    },
  };
  assert.throws(() => encodeValue(writer, value), { message: /while a value was being encoded/ });
  assert.equal(writer.pos, at);
  encodeValue(writer, 1);
  assert.equal(writer.copy().toString("hex"), "646b65707401");
});

test("a getter that throws in a nested encoding touches neither writer", () => {
  const outer = new Writer();
  const inner = new Writer();
  encodeValue(outer, {
    get a() {
      assert.throws(
        () =>
          encodeValue(inner, {
            get x() {
              throw new RangeError("inner");
            },
          }),
        { message: "inner" },
      );
      return inner.pos;
    },
  });
  assert.deepEqual(decodeValue(67, outer.buf, 0, outer.pos), { a: 0 });
});

test("values above the limit are refused, and early", () => {
  const writer = new Writer(64);
  const message = /^Value too large \(max 1000 bytes\): (more than )?\d+ bytes given$/;
  const tooLarge = { name: "TypeError", message };
  const fits = "x".repeat(997);
  encodeValue(writer, fits, 1000);
  assert.equal(writer.pos, 1000);
  for (const value of [
    "x".repeat(998),
    new Uint8Array(1001),
    [fits],
    Array.from({ length: 1e6 }, () => "y"),
    2n ** 9000n,
    new Map([[1, "é".repeat(500)]]),
  ]) {
    const before = writer.pos;
    assert.throws(() => encodeValue(writer, value, 1000), tooLarge);
    assert.equal(writer.pos, before);
  }
  assert.ok(writer.buf.length < 64 * 1024, "memory stayed bounded");
  // References take less than the objects they stand for: the limit is for the outcome.
  const shared = { text: "z".repeat(800) };
  encodeValue(writer, [shared, ...Array.from({ length: 40 }, () => shared)], 1000);
});

test("blobs and files are stored with their contents", async () => {
  const shared = { s: 1 };
  const blob = new Blob(["hello ", new Uint8Array([0, 255])], { type: "text/plain" });
  const file = new File(["contents"], "näme.txt", { type: "text/x", lastModified: 1700000000123 });
  const value = {
    shared,
    again: [shared, shared],
    blob,
    same: blob,
    list: [file, new Blob([])],
    last: shared,
  };
  const writer = new Writer(16);
  writer.ascii("before");
  const start = writer.pos;
  encodeValue(writer, value);
  const { fills } = writer;
  writer.fills = null;
  assert.equal(fills.length, 3);
  const bytes = writer.copy(start);
  await fillBlobs(bytes, fills);
  const back = decodeValue(67, bytes, 0, bytes.length);
  assert.ok(back.blob instanceof Blob);
  assert.equal(back.blob, back.same);
  assert.equal(back.blob.type, blob.type);
  assert.deepEqual(
    new Uint8Array(await back.blob.arrayBuffer()),
    new Uint8Array(await blob.arrayBuffer()),
  );
  const [readFile, empty] = back.list;
  assert.ok(readFile instanceof File);
  assert.deepEqual(
    [readFile.name, readFile.type, readFile.lastModified, await readFile.text()],
    ["näme.txt", file.type, 1700000000123, "contents"],
  );
  assert.equal(empty.size, 0);
  assert.ok(back.shared === back.again[0] && back.again[1] === back.last);
});

test("the golden blobs", async () => {
  const golden = new Map(
    vectors("values")
      .values.filter(({ note }) => note === "blob")
      .map(({ name, hex }) => [name, hex]),
  );
  const made = {
    Blob: new Blob(["hi"], { type: "image/png" }),
    File: new File(["hi"], "a.txt", { lastModified: 1000 }),
  };
  for (const [name, blob] of Object.entries(made)) {
    const back = fromHex(golden.get(name));
    assert.deepEqual(
      [back instanceof globalThis[name], await back.text(), back.name, back.lastModified],
      [true, "hi", blob.name, blob.lastModified],
    );
    const writer = new Writer();
    encodeValue(writer, back);
    const bytes = writer.copy();
    await fillBlobs(bytes, writer.fills);
    assert.equal(bytes.toString("hex"), golden.get(name));
  }
});

test("a blob that is no longer what it was is not stored", async () => {
  const bytes = new Uint8Array(8);
  await assert.rejects(fillBlobs(bytes, [{ offset: 0, size: 4, blob: new Blob(["12345"]) }]), {
    name: "TypeError",
  });
});

test("nothing read refers to the bytes it was read from", () => {
  const { bytes } = encode({
    text: "a text that is long enough to be cut out",
    bytes: new Uint8Array(100).fill(1),
    big: 2n ** 99n,
  });
  const value = decodeValue(67, bytes, 0, bytes.length);
  bytes.fill(0);
  assert.deepEqual(value, {
    text: "a text that is long enough to be cut out",
    bytes: new Uint8Array(100).fill(1),
    big: 2n ** 99n,
  });
  assert.deepEqual(roundTrip(new Uint8Array([1, 2])), new Uint8Array([1, 2]));
});
