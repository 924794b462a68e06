// Files that are deleted, moved or replaced while they are open.

import assert from "node:assert/strict";
import { renameSync, rmSync, statSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { newDirectory } from "./child/start.mjs";
import { startPeer } from "../processes/peer/start.mjs";
import { openKv } from "../../index.mjs";
import { open, startServer } from "../kit/server.mjs";
import { guard, HANG_MS, until } from "../kit/time.mjs";

const windows = process.platform === "win32" && "an open file cannot be cut off or removed";

async function setUp(t) {
  const path = join(newDirectory(t), "data", "kv.sqlite3");
  const peer = await startPeer(t, path);
  await peer.do("set", { key: ["a"], value: 1 });
  return { path, peer };
}

/** Either answer is fine, as long as it is one: what was removed under us cannot be kept. */
async function answers(peer, does, request) {
  try {
    return await peer.do(does, request);
  } catch (error) {
    assert.match(error.message, /^KvError: /);
  }
}

test("the file is deleted while it is open: a new one can be created", async (t) => {
  const { path, peer } = await setUp(t);
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  await answers(peer, "set", { key: ["b"], value: 2 });
  await answers(peer, "get", { key: ["a"] });

  const next = await startPeer(t, path);
  assert.equal((await next.do("get", { key: ["a"] })).value, null);
  await next.do("set", { key: ["c"], value: 3 });
  await answers(peer, "set", { key: ["c"], value: "of the deleted file" });
  assert.equal((await next.do("get", { key: ["c"] })).value, 3);
  assert.equal(peer.child.stderr + next.child.stderr, "");
});

test("a process with the deleted file open can open the new one too", async (t) => {
  const { path, peer } = await setUp(t);
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  await peer.do("open", { path, as: "second" });
  assert.equal((await peer.do("get", { key: ["a"], on: "second" })).value, null);
  await peer.do("set", { key: ["b"], value: 2, on: "second" });
  const next = await startPeer(t, path);
  assert.equal((await next.do("get", { key: ["b"] })).value, 2);
  assert.equal(peer.child.stderr, "");
});

test("writes of a file that is gone are refused", { skip: windows }, async (t) => {
  const path = join(newDirectory(t), "kv.sqlite3");
  const kv = await openKv(path);
  await kv.set(["a"], 1);
  rmSync(path);
  const gone = { code: "UNAVAILABLE", message: /is gone: it was deleted or replaced/ };
  const write = () => kv.set(["b"], 2).then(() => null, String);
  await until(write, "a write is refused");
  await assert.rejects(kv.set(["b"], 2), gone);
  await assert.rejects(kv.atomic().sum(["n"], 1n).enqueue(1).commit(), gone);
  await kv.close();
});

/** They waited for changes of the file that is gone, for good. */
test("streams of a file that was replaced end, also by URL", { skip: windows }, async (t) => {
  const path = join(newDirectory(t), "kv.sqlite3");
  const kv = await open(path);
  await kv.set(["a"], 1);
  const copy = `${path}.backup`;
  await kv.backup(copy);
  const accessToken = "a-token-of-sixteen-chars";
  const server = await startServer({ path, accessToken });
  const remote = await open(server.url, { accessToken });
  const feeds = [kv, remote].map((of) => of.watch({ prefix: ["a"] }).getReader());
  const states = [kv, remote].map((of) => of.watch([["a"]]).getReader());
  let begun = false;
  const first = Promise.all(feeds.map((feed) => feed.read())).then(() => {
    begun = true;
  });
  // A feed begins with the commits behind its opening, which a server learns of later.
  await until(() => kv.set(["a", 1], 2).then(() => begun || null), "both feeds have begun");
  await first;
  renameSync(copy, path);
  const replaced = {
    code: "CORRUPT",
    message: /is another file than before: it was deleted or repl/,
  };
  const ended = async (stream) => {
    while (!(await stream.read()).done);
  };
  for (const stream of [...feeds, ...states])
    await assert.rejects(guard(ended(stream), HANG_MS, "the end of a stream"), replaced);
});

test("the directory is removed while the file is open", async (t) => {
  const { path, peer } = await setUp(t);
  rmSync(dirname(path), { recursive: true });
  await answers(peer, "set", { key: ["b"], value: "x".repeat(60_000) });
  await answers(peer, "get", { key: ["a"] });
  await answers(peer, "enqueue", { message: 1 });
  await peer.do("close");
  const { code, signal } = await peer.child.ended;
  assert.deepEqual(
    { code, signal, stderr: peer.child.stderr },
    { code: 0, signal: null, stderr: "" },
  );
});

test("the file is moved while it is open, and back", async (t) => {
  const { path, peer } = await setUp(t);
  const away = join(dirname(dirname(path)), "away");
  renameSync(dirname(path), away);
  await answers(peer, "set", { key: ["b"], value: 2 });
  renameSync(away, dirname(path));
  await peer.do("set", { key: ["c"], value: 3 });
  await peer.do("close");
  await peer.child.ended;
  const next = await startPeer(t, path);
  assert.equal((await next.do("get", { key: ["a"] })).value, 1);
  assert.equal((await next.do("get", { key: ["c"] })).value, 3);
  assert.equal(peer.child.stderr + next.child.stderr, "");
});

// A mapping of the file would end the process by a signal here: none is made by default.
test("the file is cut off under reads, beyond what the cache holds", {
  skip: windows,
}, async (t) => {
  const path = join(newDirectory(t), "kv.sqlite3");
  const values = 400;
  const valueOf = (n) => String(n).padEnd(60_000, "x");
  const kv = await openKv(path, { durability: "normal" });
  for (let n = 0; n < values; n++) await kv.set(["k", n], valueOf(n));
  await kv.close();
  const peer = await startPeer(t, path);
  assert.equal((await peer.do("get", { key: ["k", 1] })).value, valueOf(1));
  truncateSync(path, Math.floor(statSync(path).size / 3));
  let failed = 0;
  for (let n = 0; n < values; n += 7) {
    const entry = await answers(peer, "get", { key: ["k", n] });
    if (entry === undefined) failed++;
    else assert.equal(entry.value, valueOf(n));
  }
  assert.ok(failed > 0, "what was cut off was not read");
  await peer.do("close");
  const { code, signal } = await peer.child.ended;
  assert.deepEqual(
    { code, signal, stderr: peer.child.stderr },
    { code: 0, signal: null, stderr: "" },
  );
});
