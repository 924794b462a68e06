// Duty: objects of another realm are what they are, in values and in options. A Date of a vm
// context (Jest, Electron) was refused as expireAt, at and moment: `instanceof Date` is false for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";
import { openKv } from "../../index.mjs";

const context = createContext({});
const foreign = (source) => runInContext(source, context);

test("values of another realm are stored as what they are", async () => {
  const kv = await openKv(":memory:");
  const values = {
    "new Date(5)": new Date(5),
    "/a/gi": /a/gi,
    "new Map([[1, new Set([2])]])": new Map([[1, new Set([2])]]),
    "Object(1n)": Object(1n),
    "new Uint16Array([1, 2])": new Uint16Array([1, 2]),
    "new ArrayBuffer(3)": new ArrayBuffer(3),
    "({ a: [1, { b: null }] })": { a: [1, { b: null }] },
  };
  for (const [source, expected] of Object.entries(values)) {
    await kv.set(["a"], foreign(source));
    assert.deepEqual((await kv.get(["a"])).value, expected, source);
  }
  await kv.set(["a"], foreign("new RangeError('far')"));
  const { value } = await kv.get(["a"]);
  assert.equal(value.message, "far");
  assert.equal(value.name, "RangeError");
  for (const source of ["new WeakRef({})", "Promise.resolve()", "'a'.matchAll(/a/g)"]) {
    await assert.rejects(kv.set(["a"], { in: foreign(source) }), /cloned\. It is at \.in/, source);
  }
  await kv.close();
});

test("a Date of another realm is one in expireAt, at and where", async () => {
  const kv = await openKv(":memory:");
  const soon = foreign("new Date(Date.now() + 60_000)");
  await kv.set(["a"], soon, { expireAt: soon });
  const entry = await kv.get(["a"], { withExpiry: true });
  assert.equal(entry.expireAt.getTime(), soon.getTime());
  await kv.queue("later").enqueue(1, { at: soon });
  const found = [];
  for await (const { key } of kv.list({ prefix: [] }, { where: { $eq: soon } })) found.push(key);
  assert.deepEqual(found, [["a"]]);
  const invalid = foreign("new Date(NaN)");
  await assert.rejects(kv.set(["a"], 1, { expireAt: invalid }), /an invalid Date/);
  await kv.close();
});

test("enumerable properties on Object.prototype are no options", async () => {
  Object.prototype.ttl = 5;
  try {
    const kv = await openKv(":memory:");
    await kv.set(["a"], { b: 1 }, { expireIn: 60_000 });
    assert.deepEqual((await kv.get(["a"], { consistency: "strong" })).value, { b: 1 });
    await kv.close();
  } finally {
    delete Object.prototype.ttl;
  }
});
