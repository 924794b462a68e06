// Duty: backup and check of a database in use: what they promise, and what they refuse.

import assert from "node:assert/strict";
import { on } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { KvU64, openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const folder = newFolder("backup");
const path = (name) => join(folder, name);

async function entriesOf(kv) {
  const entries = [];
  for await (const entry of kv.list({ prefix: [] })) entries.push(entry);
  return entries;
}

test("a backup is the database at one point in time, while others write", async () => {
  const kv = await openKv(path("a.db"));
  for (let i = 0; i < 50; i++) await kv.set(["before", i], "x".repeat(i * 100));
  await kv.set(["sum"], new KvU64(7n));
  await kv.enqueue({ job: 1 });
  const writer = (async () => {
    for (let i = 0; i < 300; i++) await kv.atomic().set(["a", i], i).set(["b", i], i).commit();
  })();
  const copy = await kv.backup(path("copy.db"));
  await writer;
  assert.match(copy.sha256, /^[0-9a-f]{64}$/);
  const copied = await openKv(path("copy.db"));
  const entries = await entriesOf(copied);
  assert.equal(entries.length, copy.entries);
  // Both of each pair or neither, and nothing newer than the backup's own stamp.
  const count = (first) => entries.filter(({ key }) => key[0] === first).length;
  assert.equal(count("a"), count("b"));
  assert.equal(count("before"), 50);
  assert.ok(entries.every(({ versionstamp }) => versionstamp <= copy.versionstamp));
  assert.deepEqual(await copied.check(), { ok: true, findings: [] });
  await copied.close();
  await kv.close();
  assert.deepEqual(
    readdirSync(folder).filter((name) => /unfinished|wal|shm/.test(name)),
    [],
  );
});

test("the same contents have the same hash", async () => {
  const kv = await openKv(path("same.db"));
  await kv.set(["k"], { v: 1 });
  const first = await kv.backup(path("same1.db"));
  const second = await kv.backup(path("same2.db"));
  assert.equal(first.sha256, second.sha256);
  await kv.set(["k"], { v: 2 });
  const third = await kv.backup(path("same3.db"));
  assert.notEqual(third.sha256, first.sha256);
  await kv.close();
});

test("a backup that is ended leaves nothing behind", async () => {
  const kv = await openKv(path("ended.db"));
  const end = async (message) => {
    const controller = new AbortController();
    const backup = kv.backup(path("ended-copy.db"), {
      signal: controller.signal,
      onProgress: () => {},
    });
    controller.abort(new Error(message));
    await assert.rejects(backup, { message });
    assert.ok(!existsSync(path("ended-copy.db")));
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes("unfinished")),
      [],
    );
  };
  for (let i = 0; i < 300; i++) kv.set([i], new Uint8Array(60_000));
  // A backup waits for the writes before it; its end was lost meanwhile, and the backup went on.
  await end("while it waits");
  await end("while it copies");
  await kv.close();
});

// It was an unhandled rejection, and the end of the process.
test("what onProgress throws ends the backup, which rejects with it", async () => {
  const kv = await openKv(path("thrown.db"), { limits: "wide" });
  // Enough for a look at it while it is copied: looks are 100 ms apart.
  for (let n = 0; n < 16; n++) await kv.set(["big", n], new Uint8Array(8 * 1024 * 1024).fill(n));
  for (const [name, onProgress] of [
    [
      "thrown",
      () => {
        throw new Error("no more");
      },
    ],
    [
      "rejected",
      async () => {
        throw new Error("no more");
      },
    ],
  ]) {
    await assert.rejects(kv.backup(path(`${name}-copy.db`), { onProgress }), /no more/);
  }
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes("unfinished")),
    [],
  );
  await kv.close();
});

// "end" ends the backup in the turn that begins it: a backup of this size may be done before
// another message arrives.
const BACKUP_WORKER = `
  const { parentPort, workerData: { index, from, to } } = require("node:worker_threads");
  const controller = new AbortController();
  (async () => {
    const { openKv } = await import(index);
    const kv = await openKv(from);
    parentPort.once("message", async (message) => {
      const backup = kv.backup(to, { signal: controller.signal });
      if (message === "end") controller.abort(new Error("enough"));
      else parentPort.postMessage("begun");
      const answer = await backup.then(({ entries }) => entries, (error) => error.message);
      await kv.close();
      parentPort.postMessage(answer);
    });
    parentPort.postMessage("open");
  })();`;

// Each thread called its first backup 1, and the end of the one ended the other.
test("a backup that is ended ends no other thread's", async () => {
  const kv = await openKv(path("threads.db"));
  for (let i = 0; i < 300; i++) kv.set([i], new Uint8Array(60_000));
  await kv.set(["last"], 1);
  const [ended, whole] = [1, 2].map((n) => {
    const index = new URL("../../index.mjs", import.meta.url).href;
    const workerData = { index, from: path("threads.db"), to: path(`threads${n}.db`) };
    const worker = new Worker(BACKUP_WORKER, { eval: true, workerData });
    const messages = on(worker, "message");
    return { worker, next: async () => (await messages.next()).value[0] };
  });
  for (const { next } of [ended, whole]) assert.equal(await next(), "open");
  whole.worker.postMessage("go");
  assert.equal(await whole.next(), "begun");
  ended.worker.postMessage("end");
  assert.deepEqual([await ended.next(), await whole.next()], ["enough", 301]);
  for (const { worker } of [ended, whole]) await worker.terminate();
  await kv.close();
});

test("what cannot be is refused, and says why", async () => {
  const kv = await openKv(path("refused.db"));
  await kv.set(["k"], 1);
  await assert.rejects(kv.backup(path("refused.db")), {
    name: "TypeError",
    message: /exists already/,
  });
  await assert.rejects(kv.backup(7), { name: "TypeError", message: /path must be/ });
  await assert.rejects(kv.backup("s3://bucket/copy"), {
    code: "UNSUPPORTED",
    message: /^kv.backup: not for a database in an object store: back up to a file/,
  });
  await assert.rejects(kv.backup("s3:/bucket/copy"), { code: "INVALID", message: /is no URL/ });
  await assert.rejects(kv.backup(path("x"), { onprogress: 1 }), /unknown option 'onprogress'/);
  await assert.rejects(kv.backup(path("x"), { signal: 1 }), /signal must be an AbortSignal/);
  await assert.rejects(kv.backup(path("x"), { onProgress: 1 }), /onProgress must be a function/);
  await assert.rejects(kv.backup(path("no/such/folder/x")), { code: "UNAVAILABLE" });
  await kv.close();
  await assert.rejects(kv.backup(path("x")), { name: "BadResource" });
  await assert.rejects(kv.check(), { name: "BadResource" });
  const memory = await openKv(":memory:");
  await assert.rejects(memory.backup(path("x")), { code: "UNSUPPORTED" });
  assert.deepEqual(await memory.check(), { ok: true, findings: [] });
  await memory.close();
});
