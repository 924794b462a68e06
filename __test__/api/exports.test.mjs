// Duty: what the package gives out: names, one identity by import and require, shapes of classes.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import * as imported from "../../index.mjs";
import { open } from "./databases.mjs";

const required = createRequire(import.meta.url)("../../index.js");

const NAMES = [
  "AtomicOperation",
  "BadResource",
  "Kv",
  "KvConflictError",
  "KvDoNotRetry",
  "KvError",
  "KvFeedGapError",
  "KvListIterator",
  "KvOutcomeUnknownError",
  "KvU64",
  "KvUniqueError",
  "KvUuidV7",
  "KvValidationError",
  "openKv",
  "restore",
  "serve",
  "sizeOf",
];

test("import and require give out the same names", () => {
  assert.deepEqual(Object.keys(imported).sort(), NAMES);
  assert.deepEqual(Object.keys(required).sort(), NAMES);
});

test("import and require give out the same objects", () => {
  for (const name of NAMES) assert.equal(imported[name], required[name], name);
});

test("an instance belongs to the class of both", async () => {
  const kv = await required.openKv(":memory:");
  assert.ok(kv instanceof imported.Kv);
  assert.ok(kv.atomic() instanceof imported.AtomicOperation);
  assert.ok(kv.list({ prefix: [] }) instanceof imported.KvListIterator);
  await kv.close();
});

test("functions take as many arguments as Deno's", async () => {
  const kv = await open(":memory:");
  const lengths = {
    get: 2,
    getMany: 2,
    set: 3,
    delete: 1,
    list: 1,
    atomic: 0,
    watch: 1,
    enqueue: 2,
    listenQueue: 1,
    close: 0,
    commitVersionstamp: 0,
  };
  for (const [name, length] of Object.entries(lengths)) assert.equal(kv[name].length, length, name);
  assert.equal(imported.openKv.length, 1);
});

test("only openKv makes a Kv, only a Kv its operations and lists", () => {
  const { Kv, AtomicOperation, KvListIterator } = imported;
  const words = /can not be constructed/;
  assert.throws(() => new Kv(), { name: "TypeError", message: /use openKv/ });
  for (const argument of [undefined, null, {}, Object.create(Kv.prototype)]) {
    for (const type of [Kv, AtomicOperation, KvListIterator]) {
      assert.throws(() => new type(argument, { prefix: [] }, {}), { message: words });
    }
  }
});

test("a method of another object is a TypeError, not a crash", async () => {
  const kv = await open(":memory:");
  for (const name of ["get", "getMany", "list", "atomic", "watch", "close"]) {
    const call = async () => kv[name].call({}, ["a"], {});
    await assert.rejects(call, TypeError, name);
  }
});

test("nothing of the inside is a property", async () => {
  const kv = await open(":memory:");
  for (const object of [kv, kv.atomic(), kv.list({ prefix: [] })]) {
    assert.deepEqual(Reflect.ownKeys(object), []);
  }
});

test("disposal has the runtime's symbols, or those that stand in for them", async () => {
  const dispose = Symbol.dispose ?? Symbol.for("nodejs.dispose");
  const asyncDispose = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");
  const kv = await imported.openKv(":memory:");
  assert.equal(kv[dispose](), undefined);
  assert.equal(kv[dispose](), undefined, "again");
  assert.equal(await kv[asyncDispose](), undefined);
  await assert.rejects(kv.get(["a"]), { name: "BadResource" });
});
