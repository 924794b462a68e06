// Duty: a feed, a replica and an archive of one file read the same log, whoever turns it on and off.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { archived } from "../archive/messages.mjs";
import { openkv } from "../cli/running.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "./entries.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("one-log");

/** Reads batches up to a commit. */
async function upTo(reader, versionstamp) {
  const changes = [];
  for (;;) {
    const { value } = await reader.read();
    changes.push(...value.changes.map(({ type, key }) => `${type} ${key.join("/")}`));
    if (value.versionstamp >= versionstamp) return changes;
  }
}

test("a feed, a replica and an archive follow one log", async () => {
  const path = fresh();
  const kv = await open(path);
  const reader = kv.watch({ prefix: ["a"] }).getReader();
  await kv.set(["a", 1], "first");
  assert.deepEqual((await reader.read()).value.changes[0].value, "first");
  // They find the log on, with what the feed has not read yet.
  await kv.set(["a", 2], "x".repeat(5000));
  const server = await startServer({ path, accessToken });
  const near = await open(server.url, { accessToken, replica: fresh() });
  await near.replica.ready();
  const target = fresh();
  const archive = await kv.archive({ to: target });
  await archived(kv, archive);
  await kv.atomic().delete(["a", 1]).set(["b"], 1).set(["a", 3], 3).commit();
  const { versionstamp } = await kv.set(["a", "end"], true);
  const told = await upTo(reader, versionstamp);
  assert.deepEqual(told.sort(), ["delete a/1", "set a/2", "set a/3", "set a/end"]);
  const reached = async () => ((await near.replica.status()).version ?? "") >= versionstamp;
  await until(reached, "the replica has the last commit");
  assert.deepEqual(await all(near, { consistency: "eventual" }), await all(kv));
  await archived(kv, archive);
  const restored = fresh();
  assert.equal((await openkv("restore", target, restored)).code, 0);
  const again = await open(restored);
  assert.deepEqual(await all(again), await all(kv));
  // The restored database has no log: nothing was deleted since, so a feed continues from the entries.
  const { value } = await again
    .watch({ prefix: ["a"] }, { since: (await kv.get(["a", 3])).versionstamp })
    .getReader()
    .read();
  assert.deepEqual(
    value.changes.map(({ key }) => key),
    [["a", "end"]],
  );
});

test("log: false ends an open feed after the next commit, and a new one turns the log on", async () => {
  const path = fresh();
  const kv = await open(path);
  const reader = kv.watch({ prefix: [] }).getReader();
  const { versionstamp } = await kv.set(["a"], 1);
  assert.equal((await reader.read()).value.versionstamp, versionstamp);
  await (await openKv(path, { log: false })).close();
  // Awaited before the commit, which may be answered after the feed has ended.
  const ended = assert.rejects(reader.read(), (error) => {
    assert.equal(error.name, "KvFeedGapError");
    assert.match(error.message, /log: false/);
    return true;
  });
  await kv.set(["a"], 2);
  await ended;
  const next = kv.watch({ prefix: [] }, { since: versionstamp }).getReader();
  assert.deepEqual((await next.read()).value.changes[0].value, 2);
  await kv.delete(["a"]);
  assert.equal((await next.read()).value.changes[0].type, "delete");
});
