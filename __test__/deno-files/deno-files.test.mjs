// Duty: files that Deno has made, and files made for Deno, in openkv. That Deno reads them too is
// shown by __test__/runtime/deno-files.mjs.

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { freshPath, open } from "../api/databases.mjs";
import { until } from "../kit/time.mjs";
import { fill, verify } from "./matrix.mjs";

const u64 = (n) => new KvU64(n);
const kept = new URL("../../tests/vectors/files/deno.sqlite3", import.meta.url);

/** Those in Deno's table `queue` there. */
const MESSAGES_OF_DENO = 3;

function copyOfDenos() {
  const path = freshPath();
  copyFileSync(kept, path);
  return path;
}

test("every value of a file of Deno's is read", async () => {
  const kv = await open(copyOfDenos());
  await verify(kv, u64);
  assert.equal(await kv.count({ prefix: ["alone"] }, { where: { $eq: null } }), 1);
});

test("a value that only Deno can read is an error of its entry", async () => {
  const kv = await open(copyOfDenos());
  const unreadable = { name: "RangeError", message: /could not deserialize value/ };
  for (const name of ["Blob", "CryptoKey"]) {
    await assert.rejects(kv.get(["only Deno", name]), unreadable);
    await assert.rejects(kv.atomic().sum(["only Deno", name], 1n).commit(), TypeError);
  }
  await kv.set(["only Deno", "A"], 1);
  const iterator = kv.list({ prefix: ["only Deno"] });
  assert.equal((await iterator.next()).value.value, 1);
  await assert.rejects(iterator.next(), unreadable);
});

test("a file for Deno takes and gives every value", async () => {
  const path = freshPath();
  const kv = await openKv(path, { encoding: "v8" });
  await fill(kv, u64);
  await verify(kv, u64);
  await kv.atomic().append(["list"], [1]).commit();
  await kv
    .atomic()
    .append(["list"], [new Map([[1, 2]])])
    .commit();
  assert.deepEqual((await kv.get(["list"])).value, [1, new Map([[1, 2]])]);
  await kv.close();
  const again = await open(path);
  await verify(again, u64);
  await assert.rejects(openKv(path, { encoding: "cbor" }), {
    name: "TypeError",
    message: /encoding is "cbor", but the file's values are in "v8"/,
  });
  const readonly = await open(path, { readonly: true, encoding: "v8" });
  assert.equal((await readonly.get(["large"])).value.length, 30_000);
});

test("a file keeps the format that it was made with", async () => {
  const path = freshPath();
  const kv = await openKv(path);
  await kv.set(["a"], 1);
  await assert.rejects(openKv(path, { encoding: "v8" }), TypeError);
  await kv.close();
  await assert.rejects(openKv(path, { encoding: "v8" }), TypeError);
  assert.equal((await (await open(path, { encoding: "cbor" })).get(["a"])).value, 1);
});

test("a value without a place in V8's format rejects its own write only", async () => {
  const kv = await open(freshPath(), { encoding: "v8" });
  const blob = new Blob(["x"]);
  const refused = { name: "TypeError", message: /V8's format.*Blob/ };
  const [one, two, three, four, five] = await Promise.allSettled([
    kv.set(["one"], 1),
    kv.set(["two"], blob),
    kv.atomic().set(["three"], 3).append(["items"], [blob]).commit(),
    kv.enqueue(blob),
    kv.set(["five"], 5),
  ]);
  assert.deepEqual([one.status, five.status], ["fulfilled", "fulfilled"]);
  for (const { reason } of [two, three, four])
    assert.throws(() => {
      throw reason;
    }, refused);
  const found = await kv.getMany([["one"], ["two"], ["three"], ["items"], ["five"]]);
  assert.deepEqual(
    found.map(({ value }) => value),
    [1, null, null, null, 5],
  );
});

test("a file of Deno's is searched", async () => {
  const kv = await open(copyOfDenos());
  await kv.set(["posts", 1], { title: "a whale" });
  await kv.createIndex({ name: "posts", prefix: ["posts"], fields: ["title"] });
  await kv.set(["posts", 2], { title: "whales" });
  await kv.set(["posts", 3], { title: "the whale" });
  const found = [];
  const { entries } = await kv.search(["posts"], "whale");
  for (const { key } of entries) found.push(key[1]);
  assert.deepEqual(found.sort(), [1, 3]);
});

/** Until `count` messages have come. */
async function listen(kv, count, handle) {
  const seen = [];
  let done;
  const all = new Promise((resolve) => (done = resolve));
  kv.listenQueue((value) => {
    seen.push(value);
    if (seen.length === count) done();
    return handle(value);
  });
  await all;
  return seen;
}

test("messages that Deno has enqueued are delivered, retried and left under their keys", async () => {
  const kv = await open(copyOfDenos());
  const seen = await listen(kv, 4, () => {
    throw new Error("not now");
  });
  assert.deepEqual(
    seen.filter((value) => value === "second"),
    ["second"],
  );
  assert.deepEqual(seen.filter((value) => value.job === 1).length, 3);
  const left = (key) => until(async () => (await kv.get(key)).value, `${key} is left`);
  assert.deepEqual(await left(["dead", 1]), { job: 1 });
  assert.equal(await left(["dead", 2]), "second");
});

test("the messages of Deno's queue are counted", async () => {
  const ofDeno = await open(copyOfDenos());
  const { pending, delayed } = (await ofDeno.metrics()).queues[""];
  assert.equal(pending + delayed, MESSAGES_OF_DENO);
  const kv = await openKv(freshPath(), { encoding: "v8" });
  assert.deepEqual((await kv.metrics()).queues, {});
  await kv.enqueue("later", { delay: 60_000 });
  await kv.enqueue("now");
  await kv.queue("named").enqueue(1);
  const none = { pending: 0, delayed: 0, processing: 0, dead: 0 };
  const counted = async () => (await kv.metrics()).queues;
  const named = { ...none, pending: 1 };
  assert.deepEqual(await counted(), { "": { ...none, pending: 1, delayed: 1 }, named });
  await listen(kv, 1, async () => {
    assert.deepEqual(await counted(), { "": { ...none, processing: 1, delayed: 1 }, named });
  });
  await until(async () => (await counted())[""].processing === 0, "the message is handled");
  await kv.close();
});

test("what is enqueued in a file for Deno is delivered there", async () => {
  const path = freshPath();
  const kv = await openKv(path, { encoding: "v8" });
  await kv.enqueue({ big: 1n }, { delay: 60_000 });
  await kv.enqueue({ big: 2n });
  assert.deepEqual(await listen(kv, 1, () => {}), [{ big: 2n }]);
  await kv.queue("named").enqueue(new Map([[1, 2]]));
  await kv.close();
  const again = await open(path);
  await again.enqueue("after");
  assert.deepEqual(await listen(again, 1, () => {}), ["after"]);
  const stats = await again.queue("named").stats();
  assert.equal(stats.pending, 1);
});
