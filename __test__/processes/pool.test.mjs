// Many files in one process, of which maxOpen are kept open: the others are parked, and no call notices it
// (pool.mjs repeats the last ones with more files and processes).

import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { after, test } from "node:test";

import { freshPaths } from "../kit/folder.mjs";
import { HANG_MS, guard, until } from "../kit/time.mjs";
import { startPeer } from "./peer/start.mjs";
import { round } from "./pool.mjs";
import { openKv } from "./target.mjs";

const freshPath = freshPaths("pool");
const MAX_OPEN = 4;

const opened = [];
after(() => opened.forEach((kv) => kv[Symbol.dispose]()));

async function open(path = freshPath()) {
  const kv = await openKv(path, { maxOpen: MAX_OPEN });
  opened.push(kv);
  return kv;
}

const openMany = (count) => Promise.all(Array.from({ length: count }, () => open()));

/** Uses so many other files that all that may be parked are. */
async function parkOthers(others) {
  for (const kv of others) {
    await kv.set(["used"], true);
    assert.equal((await kv.get(["used"])).value, true);
  }
}

const LINKED = "/proc/self/fd";

/** The number of descriptors that this process has, as far as the system tells. */
const descriptors = () => (existsSync(LINKED) ? readdirSync(LINKED).length : 0);

/** Whether this process has the file open, as far as the system tells. */
function isOpen(path) {
  const leadsThere = (descriptor) => {
    try {
      return readlinkSync(`${LINKED}/${descriptor}`).startsWith(path);
    } catch {
      return false; // It is closed meanwhile.
    }
  };
  return existsSync(LINKED) && readdirSync(LINKED).some(leadsThere);
}

/** Parks the file at `path`. Another one is parked in its place while something in the background uses it. */
const park = (path, others) =>
  until(async () => {
    await parkOthers(others);
    return !isOpen(path);
  }, "it is parked");

// Openings once did not wait for closings: the counters of a parked file were stored after the next handle had read them.
test("an opening waits until what a closing handle has counted is stored", async () => {
  const others = await openMany(MAX_OPEN);
  for (let turn = 0; turn < 20; turn++) {
    const path = freshPath();
    for (const before of [0, 10]) {
      const kv = await openKv(path, { maxOpen: MAX_OPEN, metrics: { persistent: true } });
      assert.equal((await kv.metrics()).operations.set.count, before, `turn ${turn}`);
      for (let n = 0; n < 10; n++) await kv.set(["n"], n);
      await parkOthers(others);
      kv.close();
    }
  }
});

test("every call on more files than maxOpen is answered, with few descriptors", async () => {
  const before = descriptors();
  const handles = await openMany(10 * MAX_OPEN);
  for (let turn = 0; turn < 3; turn++) {
    for (const [n, kv] of handles.entries()) {
      const got = await kv.get(["n"]);
      assert.equal(got.value ?? 0, turn);
      const { ok } = await kv
        .atomic()
        .check(got)
        .set(["n"], turn + 1)
        .commit();
      assert.ok(ok);
      assert.equal(kv.getSync(["n"]).value, turn + 1);
      assert.equal(await kv.count({ prefix: [] }), 1, `file ${n}`);
    }
  }
  // All at once, more than may be open.
  const all = handles.map((kv) => kv.transaction((tx) => tx.set(["all"], 1)));
  for (const { ok } of await Promise.all(all)) assert.ok(ok);
  const values = await Promise.all(handles.map((kv) => kv.getMany([["n"], ["all"]])));
  for (const [n, every] of values) assert.deepEqual([n.value, every.value], [3, 1]);
  await parkOthers(handles.slice(0, 2 * MAX_OPEN));
  // A file has eleven at most: those of its lane, its writer and three threads that read, and of its index.
  const used = descriptors() - before;
  assert.ok(used <= (MAX_OPEN + 1) * 11, `${used} descriptors`);
});

test("several handles of a parked file, and a closed one among them", async () => {
  const path = freshPath();
  const [first, second] = [await open(path), await open(path)];
  const others = await openMany(2 * MAX_OPEN);
  await first.set(["a"], 1);
  await parkOthers(others);
  assert.equal((await second.get(["a"])).value, 1);
  await parkOthers(others);
  await first.close();
  await second.set(["a"], 2);
  await parkOthers(others);
  assert.equal(second.getSync(["a"]).value, 2);
  await parkOthers(others);
  await second.close();
  for (const end of ["-wal", "-shm"]) assert.equal(existsSync(path + end), false, end);
  const again = await open(path);
  assert.equal((await again.get(["a"])).value, 2);
});

test("watches, feeds and listeners of pooled files miss nothing", async (t) => {
  const paths = Array.from({ length: 2 * MAX_OPEN }, () => freshPath());
  const handles = [];
  for (const path of paths) handles.push(await open(path));
  const others = await openMany(2 * MAX_OPEN);
  const peer = await startPeer(t, paths[0]);
  const heard = handles.map(() => []);
  const listening = handles.map((kv, n) =>
    kv.queue("jobs").listen((value) => void heard[n].push(value)),
  );
  const feeds = handles.map((kv) => kv.watch({ prefix: ["n"] }).getReader());
  const watches = handles.map((kv) => kv.watch([["n", 1]]).getReader());
  for (const watch of watches) {
    const { value } = await guard(watch.read(), HANG_MS, "the first state");
    assert.equal(value[0].value, null);
  }
  // A feed begins once its opening has turned the log on: what another process commits before is not in it.
  for (const [n, feed] of feeds.entries()) {
    await handles[n].set(["n", 0], 0);
    const { value } = await guard(feed.read(), HANG_MS, "the first change");
    assert.deepEqual(
      value.changes.map((change) => change.value),
      [0],
    );
  }
  for (let turn = 1; turn <= 3; turn++) {
    for (const [n, kv] of handles.entries()) {
      if (n === 0) await peer.do("set", { key: ["n", 1], value: turn });
      else await kv.set(["n", 1], turn);
      await kv.queue("jobs").enqueue(turn);
    }
    await parkOthers(others);
  }
  for (const feed of feeds) {
    const seen = [];
    while (seen.length < 3) {
      const { value } = await guard(feed.read(), HANG_MS, "a change");
      seen.push(...value.changes.map((change) => change.value));
    }
    assert.deepEqual(seen, [1, 2, 3]);
  }
  for (const watch of watches) {
    for (let state; state !== 3; ) {
      const { value } = await guard(watch.read(), HANG_MS, "a state");
      state = value[0].value;
    }
  }
  const all = async () => {
    while (heard.some((values) => values.length < 3)) await new Promise((r) => setImmediate(r));
  };
  await guard(all(), HANG_MS, "the messages");
  for (const values of heard) assert.deepEqual(values.sort(), [1, 2, 3]);
  await Promise.all([...feeds, ...watches].map((reader) => reader.cancel()));
  for (const kv of handles) await kv.close();
  await Promise.all(listening);
});

test("what is due at a parked file is done", async () => {
  const kv = await open();
  const others = await openMany(2 * MAX_OPEN);
  await kv.queue("later").enqueue("late", { delay: 1 });
  await kv.set(["gone"], 1, { expireIn: 1 });
  await parkOthers(others);
  const message = await guard(kv.queue("later").receive(), HANG_MS, "the message");
  assert.equal(message.value, "late");
  await message.ack();
  await parkOthers(others);
  assert.equal((await kv.get(["gone"])).value, null);
});

test("a parked file that is gone is an error, and answers once it is back", async () => {
  const path = freshPath();
  const kv = await open(path);
  const others = await openMany(2 * MAX_OPEN);
  await kv.set(["a"], 1);
  await park(path, others);
  const ends = ["", "-wal", "-shm"].filter((end) => existsSync(path + end));
  for (const end of ends) renameSync(path + end, `${path}.away${end}`);
  const gone = { code: "UNAVAILABLE", message: /open/ };
  await assert.rejects(kv.get(["a"]), gone);
  await assert.rejects(kv.set(["a"], 2), gone);
  assert.throws(() => kv.getSync(["a"]), gone);
  assert.equal(existsSync(path), false, "no empty file takes its place");
  for (const end of ends) renameSync(`${path}.away${end}`, path + end);
  assert.equal((await kv.get(["a"])).value, 1);
  await kv.set(["a"], 2);
  assert.equal((await kv.get(["a"])).value, 2);
});

test("another file in the place of a parked one is an error", async () => {
  const [path, another] = [freshPath(), freshPath()];
  const kv = await open(path);
  const others = await openMany(2 * MAX_OPEN);
  await kv.set(["a"], 1);
  const old = freshPath();
  await kv.backup(old);
  await kv.set(["a"], 2);
  const other = await open(another);
  await other.set(["a"], "of another file");
  await other.close();
  const replaced = { code: "UNAVAILABLE", message: /another file|older state/ };
  for (const from of [another, old]) {
    await park(path, others);
    for (const end of ["", "-wal", "-shm"]) {
      if (existsSync(path + end)) renameSync(path + end, `${path}.away${end}`);
    }
    copyFileSync(from, path);
    await assert.rejects(kv.get(["a"]), replaced);
    await assert.rejects(kv.set(["a"], 3), replaced);
    rmSync(path);
    for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
    for (const end of ["", "-wal", "-shm"]) {
      if (existsSync(`${path}.away${end}`)) renameSync(`${path}.away${end}`, path + end);
    }
    assert.equal((await kv.get(["a"])).value, 2);
  }
});

test("processes that share many files, some killed, count exactly", async () => {
  const faults = await round({
    files: 30,
    processes: 3,
    commits: 60,
    kills: 2,
    maxOpen: MAX_OPEN,
    descriptors: 0,
  });
  assert.deepEqual(faults, []);
});

test("a process without free descriptors parks files", {
  skip: process.platform === "win32" && "there is no ulimit",
}, async () => {
  const faults = await round({
    files: 60,
    processes: 2,
    commits: 60,
    kills: 0,
    maxOpen: 1000,
    descriptors: 128,
  });
  assert.deepEqual(faults, []);
});
