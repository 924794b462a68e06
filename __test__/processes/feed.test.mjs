// A change feed sees what other processes write, killed ones too, and goes on after a restart.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HANG_MS, guard } from "../kit/time.mjs";
import { newPath } from "./peer/file.mjs";
import { startPeer } from "./peer/start.mjs";
import { openKv } from "./target.mjs";

/** Reads changes until one satisfies `last`. */
async function until(reader, last, changes = []) {
  for (;;) {
    const { value, done } = await guard(reader.read(), HANG_MS, "changes");
    assert.equal(done, false, "the feed ended");
    changes.push(...value.changes);
    if (value.changes.some(last)) return changes;
  }
}

const ROUNDS = 4;
const SETS = 40;

test("what killed processes were told is durable is in the feed, once and in order", async (t) => {
  const path = newPath();
  const kv = await openKv(path);
  t.after(() => kv[Symbol.dispose]());
  const reader = kv.watch({ prefix: ["k"] }).getReader();
  // The feed has begun once this is committed.
  await kv.set(["k", "begun"], true);
  const acknowledged = [];
  for (let round = 0; round < ROUNDS; round++) {
    const peer = await startPeer(t, path);
    for (let n = 0; n < SETS; n++) {
      const { versionstamp } = await peer.do("set", { key: ["k", n % 5], value: [round, n] });
      acknowledged.push([versionstamp, round, n]);
    }
    // One more is on its way: it may happen or not.
    const unanswered = { does: "set", key: ["k", "unanswered", round], value: round };
    peer.child.say(JSON.stringify(unanswered));
    peer.child.kill();
    await peer.child.ended;
    await kv.set(["k", "ours"], round);
  }
  await kv.set(["k", "end"], true);
  const changes = await until(reader, ({ key }) => key[1] === "end");
  const stamps = changes.map(({ versionstamp }) => versionstamp);
  assert.deepEqual(stamps, [...stamps].sort(), "in order");
  const theirs = changes.filter(({ value }) => Array.isArray(value));
  assert.deepEqual(
    theirs.map(({ versionstamp, value }) => [versionstamp, ...value]),
    acknowledged,
  );
});

test("a feed goes on where it was when its process ended", async (t) => {
  const path = newPath();
  const first = await openKv(path);
  const reader = first.watch({ prefix: [] }).getReader();
  await first.set(["a"], 1);
  const { value } = await reader.read();
  await first.close();

  const peer = await startPeer(t, path);
  await peer.do("set", { key: ["b"], value: 2 });
  await peer.do("delete", { key: ["a"] });
  peer.child.kill();
  await peer.child.ended;

  const second = await openKv(path);
  t.after(() => second[Symbol.dispose]());
  const resumed = second.watch({ prefix: [] }, { since: value.versionstamp }).getReader();
  await second.set(["c"], 3);
  const changes = await until(resumed, ({ key }) => key[0] === "c");
  assert.deepEqual(
    changes.map(({ type, key, value }) => [type, key[0], value]),
    [
      ["set", "b", 2],
      ["delete", "a", null],
      ["set", "c", 3],
    ],
  );
});
