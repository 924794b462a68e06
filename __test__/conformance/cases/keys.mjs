// Duty: what a key is made of, its order and its bytes. The cursor of a list over everything is
// the whole encoded key in base64, which lets these cases see the bytes through the public API.

import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";

const vectors = JSON.parse(
  readFileSync(new URL("../../../tests/vectors/keys.json", import.meta.url), "utf8"),
)
  .keys.filter((vector) => vector.hex !== "" && vector.note !== "nan-sign")
  .map((vector) => ({ ...vector, key: new Function(`return ${vector.js}`)() }));

const cursorOf = (hex) =>
  Buffer.from(hex, "hex").toString("base64").replaceAll("+", "-").replaceAll("/", "_");

/** Stores the keys in this order shuffled, and answers them as listed. */
async function listed(t, kv, keys) {
  for (const key of [...keys].reverse()) await kv.set(key, 1);
  return (await t.all(kv.list({ prefix: [] }))).map((entry) => entry.key);
}

/** A case that says: these keys are in this order. */
function order(name, keys) {
  return {
    name: `order: ${name}`,
    async run(t) {
      t.same(await listed(t, await t.open(), keys), keys);
    },
  };
}

export default [
  {
    name: "golden keys have their bytes and the order of their bytes",
    async run(t) {
      const kv = await t.open();
      for (const { key, name } of vectors) await kv.set(key, name);
      const expected = [...new Set(vectors.map((vector) => vector.hex))].sort();
      const iterator = kv.list({ prefix: [] });
      const found = [];
      for await (const entry of iterator) found.push([iterator.cursor, entry.value]);
      t.same(
        found.map(([cursor]) => cursor),
        expected.map(cursorOf),
      );
    },
  },
  {
    name: "golden keys read back as they were",
    async run(t) {
      const kv = await t.open();
      for (const { key, name, note } of vectors) {
        await kv.set(key, name);
        const entry = await kv.get(key);
        t.is(entry.value, name);
        if (note !== "lossy") t.same(entry.key, key, name);
      }
    },
  },
  {
    name: "golden keys backwards",
    async run(t) {
      const kv = await t.open();
      for (const { key, hex } of vectors) await kv.set(key, hex);
      const found = (await t.all(kv.list({ prefix: [] }, { reverse: true }))).map((e) => e.value);
      t.same(found, [...new Set(vectors.map((vector) => vector.hex))].sort().reverse());
    },
  },
  order("bytes, strings, bigints, numbers, booleans", [
    [new Uint8Array([255])],
    ["a"],
    [-(2n ** 200n)],
    [2n ** 200n],
    [-Infinity],
    [NaN],
    [false],
    [true],
  ]),
  order("numbers by value", [
    [-Infinity],
    [-1e300],
    [-2],
    [-1.5],
    [-1],
    [-5e-324],
    [-0],
    [0],
    [5e-324],
    [0.5],
    [1],
    [2 ** 53],
    [Infinity],
    [NaN],
  ]),
  order("bigints by value, over every length", [
    [-(2n ** 2040n) + 1n],
    [-(2n ** 64n)],
    [-(2n ** 64n) + 1n],
    [-65536n],
    [-256n],
    [-255n],
    [-1n],
    [0n],
    [1n],
    [255n],
    [256n],
    [2n ** 64n - 1n],
    [2n ** 64n],
    [2n ** 72n],
    [2n ** 2040n - 1n],
  ]),
  order("strings by UTF-8, not by UTF-16", [[""], ["\0"], ["A"], ["a"], ["é"], ["\uffff"], ["😀"]]),
  order("a shorter key, its extensions, then longer strings", [
    ["a"],
    ["a", new Uint8Array(0)],
    ["a", ""],
    ["a", "b"],
    ["a", 1n],
    ["a", 1],
    ["a", true],
    ["a\0"],
    ["a\0b"],
    ["aa"],
  ]),
  order("bytes, zeroes included", [
    [new Uint8Array([])],
    [new Uint8Array([0])],
    [new Uint8Array([0, 0])],
    [new Uint8Array([0, 1])],
    [new Uint8Array([0, 255])],
    [new Uint8Array([1])],
    [new Uint8Array([255])],
    [new Uint8Array([255, 0])],
    [new Uint8Array([255, 255])],
  ]),
  {
    name: "1, 1n, '1', true and 1 as bytes are five keys",
    async run(t) {
      const kv = await t.open();
      const parts = [1, 1n, "1", true, new Uint8Array([1])];
      for (const [i, part] of parts.entries()) await kv.set([part], i);
      for (const [i, part] of parts.entries()) t.is(await t.value(kv, [part]), i);
    },
  },
  {
    name: "0 and -0 are two keys",
    async run(t) {
      const kv = await t.open();
      await kv.set([0], "plus");
      await kv.set([-0], "minus");
      t.is(await t.value(kv, [0]), "plus");
      t.is(await t.value(kv, [-0]), "minus");
      t.same(await t.ends(kv.list({ prefix: [] })), [-0, 0]);
    },
  },
  {
    name: "NaN is a key, one whatever its payload",
    async run(t) {
      const kv = await t.open();
      const odd = new Float64Array(new BigUint64Array([0x7ff8dead0000beefn]).buffer)[0];
      await kv.set([NaN], 1);
      await kv.set([odd], 2);
      t.is(await t.value(kv, [NaN]), 2);
      t.same(await t.ends(kv.list({ prefix: [] })), [NaN]);
    },
  },
  {
    name: "strings with lone surrogates share U+FFFD",
    async run(t) {
      const kv = await t.open();
      await kv.set(["\ud800"], 1);
      await kv.set(["\udfff"], 2);
      t.is(await t.value(kv, ["\ufffd"]), 2);
    },
  },
  {
    name: "a composed and a decomposed letter are two keys",
    async run(t) {
      const kv = await t.open();
      await kv.set(["\u00e9"], 1);
      await kv.set(["e\u0301"], 2);
      t.is(await t.value(kv, ["\u00e9"]), 1);
    },
  },
  {
    name: "a view counts its own bytes only",
    async run(t) {
      const kv = await t.open();
      const bytes = new Uint8Array([9, 1, 2, 9]);
      await kv.set([bytes.subarray(1, 3)], "sub");
      await kv.set([new DataView(bytes.buffer, 3, 1)], "view");
      t.is(await t.value(kv, [new Uint8Array([1, 2])]), "sub");
      t.is(await t.value(kv, [new Uint8Array([9])]), "view");
    },
  },
  {
    name: "every kind of view is bytes",
    async run(t) {
      const kv = await t.open();
      const buffer = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
      const views = [Int8Array, Uint8ClampedArray, Int16Array, Uint32Array, BigInt64Array].map(
        (View) => new View(buffer),
      );
      for (const view of [...views, new Float64Array(buffer), Buffer.from(buffer)]) {
        await kv.set(["v", view], 1);
      }
      const [entry, ...more] = await t.all(kv.list({ prefix: ["v"] }));
      t.same(more, []);
      t.same(entry.key, ["v", new Uint8Array(buffer)]);
    },
  },
  {
    name: "bytes of a key read back are a Uint8Array over a buffer of their size",
    async run(t) {
      const kv = await t.open();
      await kv.set([Buffer.from("abc"), new Uint8Array(0)], 1);
      const keys = [
        (await kv.get([Buffer.from("abc"), Buffer.alloc(0)])).key,
        (await kv.list({ prefix: [] }).next()).value.key,
      ];
      for (const [bytes, empty] of keys) {
        t.is(bytes.constructor, Uint8Array);
        t.same([bytes.byteOffset, bytes.buffer.byteLength], [0, 3]);
        t.same([empty.byteOffset, empty.buffer.byteLength], [0, 0]);
      }
    },
  },
  {
    name: "a key may have 500 parts",
    async run(t) {
      const kv = await t.open();
      const key = Array.from({ length: 500 }, (_, i) => (i % 2 ? true : 0n));
      await kv.set(key, "long");
      t.same((await kv.get(key)).key, key);
    },
  },
];
