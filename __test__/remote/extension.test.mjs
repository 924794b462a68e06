// Duty: openkv's client with openkv's server: repetition after a lost answer, unknown outcomes, and
// errors for features that an older server lacks. (__test__/api and __test__/conformance test the
// features themselves, over a URL too.)

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, describe, test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { lossy } from "./lossy.mjs";

const ACCESS_TOKEN = "access-token-of-a-file";
const READ_TOKEN = "read-token-of-a-file";
const freshPath = freshPaths("extension");
const open = [];

after(async () => {
  for (const each of open.toReversed()) await each.close();
});

/** A server, the way to it, and a handle that goes that way. */
async function served({ accessToken = ACCESS_TOKEN, ...options } = {}) {
  const path = freshPath();
  const tokens = { accessToken: ACCESS_TOKEN, readToken: READ_TOKEN };
  const server = await serve({ path, listen: "127.0.0.1:0", ...tokens });
  const link = await lossy(server.url);
  const kv = await openKv(link.url, { accessToken, ...options });
  const local = await openKv(path);
  open.push(server, link, kv, local);
  return { kv, link, local };
}

const unknown = { name: "KvOutcomeUnknownError", code: "OUTCOME_UNKNOWN" };
const everything = { prefix: [] };

describe("a lost answer", () => {
  test("to a read: the request is repeated", async () => {
    const { kv, link } = await served();
    await kv.set(["a"], 1);
    for (const [end, call, expected] of [
      ["/read", () => kv.get(["a"]).then(({ value }) => value), 1],
      ["/call/10", () => kv.count(everything), 1],
      ["/call/12", () => kv.ttl(["a"]), null],
      ["/call/2", () => kv.stats({ entries: true }).then(({ entries }) => entries), 1],
      ["/call/52", () => kv.listIndexes(), []],
      ["/call/1", () => kv.checkpoint().then(({ logPages }) => logPages > 0), true],
    ]) {
      link.loseNext(end, 2);
      assert.deepEqual(await call(), expected, end);
    }
  });

  test("to a write with a check of its key: sent again, with an unknown outcome", async () => {
    const { kv, link, local } = await served();
    await kv.set(["a"], 1);
    const entry = await kv.get(["a"]);
    link.loseNext("/write");
    await assert.rejects(kv.atomic().check(entry).set(["a"], 2).commit(), unknown);
    assert.equal((await local.get(["a"])).value, 2);
    assert.equal(link.paths.filter((path) => path.endsWith("/write")).length, 3);
  });

  test("to a write of checks only: sent again, and the second answer counts", async () => {
    const { kv, link } = await served();
    await kv.set(["a"], 1);
    const old = await kv.get(["a"]);
    await kv.set(["a"], 2);
    const current = await kv.get(["a"]);
    for (const [entry, ok] of [
      [old, false],
      [current, true],
    ]) {
      link.loseNext("/write");
      assert.equal((await kv.atomic().check(entry).commit()).ok, ok);
    }
    // One line of writes about one key, so one request.
    link.loseNext("/write");
    const guarded = kv.atomic().check(old).set(["a"], 3).commit();
    const only = kv.atomic().check(old).commit();
    await assert.rejects(guarded, unknown);
    assert.equal((await only).ok, false);
  });

  test("to any other write: not repeated", async () => {
    const { kv, link, local } = await served();
    for (const write of [
      () => kv.set(["a"], 1),
      () => kv.atomic().append(["list"], ["x"]).commit(),
      () => kv.queue("jobs").enqueue({}),
      () => kv.deleteMany({ prefix: ["gone"] }),
      () => kv.dropIndex("none"),
      () => kv.queue("jobs").dead.purge(),
    ]) {
      const before = link.paths.length;
      link.loses = () => true;
      await assert.rejects(write(), unknown, `${write}`);
      link.loses = () => false;
      assert.equal(link.paths.length, before + 1, `${write}`);
    }
    assert.deepEqual((await local.get(["list"])).value, ["x"]);
    assert.equal((await local.queue("jobs").stats()).pending, 1);
  });

  test("to a transaction: its read set makes a repetition safe", async () => {
    const { kv, link, local } = await served();
    await kv.set(["n", 1], 1);
    link.loseNext("/write");
    const adding = kv.transaction(async (tx) => {
      let sum = 0;
      for await (const { value } of tx.list({ prefix: ["n"] })) sum += value;
      await tx.set(["n", 1], sum + 1);
    });
    await assert.rejects(adding, unknown);
    assert.equal((await local.get(["n", 1])).value, 2);
  });

  test("to createIndex: repeated, and the index is created once", async () => {
    const { kv, link } = await served();
    link.loseNext("/call/50");
    await kv.createIndex({ prefix: ["doc"], fields: ["t"], name: "docs" });
    assert.equal((await kv.listIndexes()).length, 1);
  });

  test("to some of several concurrent writes: only their outcomes are unknown", async () => {
    const { kv, link } = await served();
    await kv.set(["guarded"], 1);
    const entry = await kv.get(["guarded"]);
    let lost = 0;
    // What is guarded goes by itself: of the two requests one is lost.
    link.loses = (path) => path.endsWith("/write") && lost++ === 0;
    const outcomes = await Promise.allSettled([
      kv.set(["a"], 1),
      kv.atomic().check(entry).set(["guarded"], 2).commit(),
      kv.set(["b"], 1),
    ]);
    const kinds = outcomes.map(({ status }) => status);
    assert.equal(kinds[0], kinds[2]);
    assert.notEqual(kinds[0], kinds[1]);
  });
});

test("concurrent writes share a request, in their order", async () => {
  const { kv, link } = await served();
  const before = link.paths.length;
  await Promise.all(Array.from({ length: 500 }, (_, i) => kv.set([i % 7], i)));
  assert.equal(link.paths.length, before + 1);
  const entries = await kv.getMany(Array.from({ length: 7 }, (_, i) => [i]));
  assert.deepEqual(
    entries.map(({ value }) => value % 7),
    [0, 1, 2, 3, 4, 5, 6],
  );
  assert.ok(
    entries.every(({ value }) => value >= 490),
    "the last one of each key stays",
  );
});

test("writes of one key keep the order of their calls, whatever delays one", async () => {
  const { kv, link, local } = await served();
  let waiting = 2;
  // Each request arrives sooner than the one before.
  link.delays = (path) => (path.endsWith("/write") ? 60 * waiting-- : 0);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const writes = [];
  for (const value of ["first", "second", "last"]) {
    writes.push(kv.set(["same"], value), kv.queue("jobs").enqueue(value));
    await turn();
  }
  await Promise.all(writes);
  assert.equal((await local.get(["same"])).value, "last");
  const order = [];
  for (let i = 0; i < 3; i++) {
    const message = await local.queue("jobs").receive();
    order.push(message.value);
    await message.ack();
  }
  assert.deepEqual(order, ["first", "second", "last"]);
  // What is about everything waits for all of them.
  waiting = 1;
  const all = [kv.set(["x", 1], 1)];
  await turn();
  all.push(kv.deleteMany({ prefix: ["x"] }));
  await Promise.all(all);
  assert.equal(await local.count({ prefix: ["x"] }), 0);
});

test("a write over a limit is rejected by the client, without affecting others", async () => {
  const { kv, link } = await served();
  const before = link.paths.length;
  const outcomes = await Promise.allSettled([
    kv.set(["a"], 1),
    kv.set(["b"], new Uint8Array(65_537)),
    kv
      .atomic()
      .append(["list"], [new Uint8Array(40_000)])
      .commit(),
  ]);
  const kinds = outcomes.map(({ status, reason }) => (status === "fulfilled" ? true : reason.name));
  assert.deepEqual(kinds, [true, "TypeError", true]);
  assert.equal(link.paths.length, before + 1);
  // What comes out is held to the handle's limit too, though the server's own is wider.
  const grown = kv
    .atomic()
    .append(["list"], [new Uint8Array(40_000)])
    .commit();
  await assert.rejects(grown, /limits\.valueBytesMax/);
});

test("a read-only token", async () => {
  const { kv } = await served({ accessToken: READ_TOKEN });
  assert.equal(await kv.count(everything), 0);
  assert.equal(typeof (await kv.metrics()).commits, "number");
  for (const write of [
    () => kv.set(["a"], 1),
    () => kv.deleteMany(everything),
    () => kv.vacuum(),
    () => kv.check(),
    () => kv.createIndex({ prefix: ["a"], fields: ["t"] }),
    () => kv.queue("jobs").enqueue(1),
  ]) {
    await assert.rejects(write(), { code: "DENIED", message: /may only read/ }, `${write}`);
  }
});

test("errors of the store are those of a local database", async () => {
  const { kv, local } = await served();
  for (const call of [
    (of) => of.search(["none"], "x"),
    (of) => of.createIndex({ prefix: ["a"], fields: [] }),
    (of) => of.atomic().set(["a"], "text").sum(["a"], 1n).commit(),
  ]) {
    const [here, there] = await Promise.allSettled([call(local), call(kv)]);
    const told = ({ reason }) => [reason.name, reason.code, reason.message];
    assert.deepEqual(told(there), told(here), `${call}`);
  }
});

test("a transaction without writes needs a token that reads, and one with writes another", async () => {
  const { kv, local } = await served({ accessToken: READ_TOKEN });
  const { versionstamp } = await local.set(["a"], 1);
  const read = await kv.transaction(async (tx) => (await tx.get(["a"])).value);
  assert.deepEqual(read, { ok: true, versionstamp, value: 1 });
  await assert.rejects(
    kv.transaction((tx) => tx.set(["a"], 2)),
    { code: "DENIED" },
  );
});

test("a transaction without writes commits its checks where the server cannot only compare them", async () => {
  const { kv, link } = await served();
  const { versionstamp } = await kv.set(["a"], 1);
  link.refuses = (path) => (path.endsWith("/call/22") ? 404 : undefined);
  const read = await kv.transaction(async (tx) => (await tx.get(["a"])).value);
  assert.equal(read.value, 1);
  assert.ok(read.versionstamp > versionstamp);
});

test("requests that an older server lacks are rejected by name", async () => {
  const { kv, link } = await served();
  link.refuses = (path) => (path.endsWith("/call/10") ? 404 : undefined);
  await assert.rejects(kv.count(everything), { code: "UNSUPPORTED", message: /lacks.*: count$/ });
  link.refuses = (path) => (path.endsWith("/call/41") ? 404 : undefined);
  const peeking = kv.queue("jobs").peek();
  await assert.rejects(peeking, { code: "UNSUPPORTED", message: /lacks.*: peek of queues$/ });
  link.refuses = (path) => (path.endsWith("/call/42") ? 404 : undefined);
  const deleting = kv.queue("jobs").delete("1");
  await assert.rejects(deleting, { code: "UNSUPPORTED", message: /: deletion of messages$/ });
  await kv.set(["a"], 1);
});

test("a backup is refused by name where the server has none", async () => {
  const { kv, link } = await served();
  assert.deepEqual(await kv.check(), { ok: true, findings: [] });
  link.refuses = (path) => (path.endsWith("/api/backup") ? 404 : undefined);
  const copy = freshPath();
  await assert.rejects(kv.backup(copy), { code: "UNSUPPORTED", message: /lacks.*: backup$/ });
  assert.equal(existsSync(copy), false);
});
