// Duty: a database without work has no thread, few descriptors and little memory, and does what is due later all the same.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { until } from "../kit/time.mjs";

const skip = existsSync("/proc/self/task")
  ? false
  : "Linux tells the threads of a process in /proc";
/**
 * The file, its log and the index of its log, and the file once more for each of three connections for reads: SQLite
 * keeps that descriptor until no connection of the process has a lock.
 */
const DESCRIPTORS_MAX = 6;
/** A file took 1.1 MB while it was idle. It takes 330 KiB while it works, and 130 KiB at rest. */
const KIB_MAX = 256;
const FILES = 64;
/** Longer than a thread stays without work. */
const LATER_MS = 3000;

/** An entry of /proc, which may be gone meanwhile. */
function read(how, path) {
  try {
    return String(how(path)).trim();
  } catch {
    return "";
  }
}

/** The threads of stores that this process has. */
function threads() {
  const names = readdirSync("/proc/self/task").map((id) =>
    read(readFileSync, `/proc/self/task/${id}/comm`),
  );
  return names.filter((name) => /^openkv-(writer|reader|long)$/.test(name));
}

const descriptors = (folder) =>
  readdirSync("/proc/self/fd").filter((fd) =>
    read(readlinkSync, `/proc/self/fd/${fd}`).startsWith(folder),
  ).length;

const rests = () =>
  until(
    () => threads().length === 0,
    () => `still there: ${threads()}`,
  );

test("a file without work has no thread and few descriptors, and goes on with the next call", {
  skip,
}, async () => {
  const folder = newFolder("idle");
  const kv = await openKv(join(folder, "kv.sqlite3"));
  for (let round = 0; round < 2; round++) {
    await Promise.all([0, 1, 2].map((n) => kv.set(["a", n], round)));
    assert.equal((await kv.get(["a", 1])).value, round);
    const works = async () => {
      assert.equal(await kv.count({ prefix: ["a"] }), 3);
      return threads().length > 0;
    };
    await until(works, "a thread works");
    await rests();
    await until(
      () => descriptors(folder) <= DESCRIPTORS_MAX,
      () => `${descriptors(folder)} descriptors`,
    );
  }
  await kv.close();
});

test("a message that becomes due while no thread runs is delivered at its time", {
  skip,
}, async () => {
  const kv = await openKv(join(newFolder("idle"), "kv.sqlite3"));
  const stop = new AbortController();
  let deliveredAt = 0;
  const listening = kv.queue("later").listen(
    () => {
      deliveredAt = Date.now();
    },
    { signal: stop.signal },
  );
  const enqueuedAt = Date.now();
  await kv.queue("later").enqueue(1, { delay: LATER_MS });
  await rests();
  await until(() => deliveredAt > 0, "the message is delivered");
  assert.ok(deliveredAt - enqueuedAt >= LATER_MS);
  stop.abort();
  await listening;
  await kv.close();
});

test("many files without work take little memory", {
  skip:
    skip ||
    (process.report.getReport().header.glibcVersionRuntime ? false : "glibc gives memory back"),
}, async () => {
  const folder = newFolder("idle");
  const kib = () => Number(/VmRSS:\s+(\d+)/.exec(read(readFileSync, "/proc/self/status"))[1]);
  const open = async (n) => {
    const kv = await openKv(join(folder, `${n}`));
    await kv.set(["a"], n);
    assert.equal((await kv.get(["a"])).value, n);
    return kv;
  };
  const kvs = [await open(0)];
  const before = kib();
  for (let n = 1; n <= FILES; n++) kvs.push(await open(n));
  await until(
    () => (kib() - before) / FILES <= KIB_MAX,
    () => `${(kib() - before) / FILES} KiB for each file`,
  );
  await Promise.all(
    kvs.map(async (kv, n) => {
      await kv.set(["b"], n);
      assert.deepEqual(await kv.count({ prefix: [] }), 2);
      await kv.close();
    }),
  );
});
