// A watch sees what other processes write to the same file.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HANG_MS, guard } from "../kit/time.mjs";
import { newPath } from "./peer/file.mjs";
import { startPeer } from "./peer/start.mjs";
import { openKv } from "./target.mjs";

/** Reads events until one satisfies `wanted`. */
async function until(reader, wanted, what) {
  for (;;) {
    const { value, done } = await guard(reader.read(), HANG_MS, what);
    assert.equal(done, false, `the watch ended before: ${what}`);
    if (wanted(value)) return value;
  }
}

async function setUp(t) {
  const path = newPath();
  const kv = await openKv(path);
  t.after(() => kv[Symbol.dispose]());
  return { kv, peer: await startPeer(t, path) };
}

test("a set, an overwrite and a delete by another process reach a watch", async (t) => {
  const { kv, peer } = await setUp(t);
  const reader = kv.watch([["a"], ["b"]]).getReader();
  await until(reader, ([a, b]) => a.value === null && b.value === null, "the state at first");

  const { versionstamp } = await peer.do("set", { key: ["a"], value: 1 });
  const [a, b] = await until(reader, ([{ value }]) => value === 1, "the set");
  assert.equal(a.versionstamp, versionstamp);
  assert.equal(b.versionstamp, null);

  await peer.do("set", { key: ["b"], value: "x".repeat(20_000) });
  await until(reader, (entries) => entries[1].value?.length === 20_000, "a large value");
  await peer.do("delete", { key: ["a"] });
  await until(reader, ([{ value }]) => value === null, "the delete");
});

test("a watch in another process sees our writes, and ends on the last of many", async (t) => {
  const { kv, peer } = await setUp(t);
  await peer.do("watch", { keys: [["n"]] });
  for (let n = 1; n <= 500; n++) await kv.set(["n"], n);

  let newest = "";
  for (;;) {
    const { event } = await peer.hear((said) => "event" in said, "an event");
    const [{ value, versionstamp }] = event;
    if (versionstamp !== null) {
      assert.ok(versionstamp > newest, "events go forward");
      newest = versionstamp;
    }
    if (value === 500) break;
  }
});

test("an entry that another process set to expire leaves the watch when it does", async (t) => {
  const { kv, peer } = await setUp(t);
  const reader = kv.watch([["short"]]).getReader();
  await until(reader, ([{ value }]) => value === null, "the state at first");
  await peer.do("set", { key: ["short"], value: 1, options: { expireIn: 4000 } });
  await until(reader, ([{ value }]) => value === 1, "the set");
  await until(reader, ([{ value }]) => value === null, "its end");
  assert.equal((await kv.get(["short"])).value, null);
});

test("a watch goes on after the process that wrote was killed", async (t) => {
  const { kv, peer } = await setUp(t);
  const reader = kv.watch([["k"]]).getReader();
  await until(reader, ([{ value }]) => value === null, "the state at first");
  await peer.do("set", { key: ["k"], value: "before" });
  await until(reader, ([{ value }]) => value === "before", "the first process's value");
  peer.child.kill();
  await peer.child.ended;

  await kv.set(["k"], "between");
  await until(reader, ([{ value }]) => value === "between", "our own value");
});

// A commit of ours that followed another process's within microseconds once hid it from our
// watches: the one look that came after both found our own commit on top, and nothing to do.
test("a commit of ours at the same moment hides no commit of another process", async (t) => {
  const { kv, peer } = await setUp(t);
  const reader = kv.watch([["theirs"]]).getReader();
  await until(reader, ([{ value }]) => value === null, "the state at first");
  for (let n = 0; n < 200; n++) {
    await Promise.all([
      peer.do("set", { key: ["theirs"], value: n }),
      kv.set(["ours"], n),
      kv.set(["ours", n], n),
    ]);
    await until(reader, ([{ value }]) => value === n, `set ${n} of the other process`);
  }
});
