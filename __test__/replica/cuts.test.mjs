// Duty: a replica behind a link that is cut anywhere: it becomes complete, a handle never misses its own
// writes, and no handle reads back in time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "./entries.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("replica-cuts");
const eventual = { consistency: "eventual" };

test("a link that is cut at any byte delays the copy and the changes, and changes nothing", async () => {
  const server = await startServer({ path: fresh(), accessToken });
  const kv = await open(server.url, { accessToken });
  for (let n = 0; n < 60; n++) await kv.set(["entry", n], "y".repeat(n * 20));
  const written = await all(kv);
  const cutAt = async (bytes) => {
    const link = await linkTo(server.url);
    link.most = bytes;
    const opened = open(link.url, { accessToken, replica: ":memory:", timeout: 20_000 });
    // The metadata and the stream may share a connection or not: either is cut.
    await until(() => link.cuts > 0, "a cut");
    link.most = Number.POSITIVE_INFINITY;
    const near = await opened;
    await near.replica.ready();
    const copied = (await all(near, eventual)).filter(({ key }) => key[0] === "entry");
    assert.deepEqual(copied, written, `cut after ${bytes} bytes`);
    const { versionstamp } = await near.set(["own", bytes], bytes);
    assert.equal((await near.get(["own", bytes], eventual)).versionstamp, versionstamp);
    await near.delete(["own", bytes]);
    await near.close();
  };
  // About 40,000 bytes in all; every byte would take minutes.
  const places = Array.from({ length: 120 }, (_, n) => 1 + n * 331);
  for (let at = 0; at < places.length; at += 24) {
    // One after the other would wait for each other's pauses.
    await Promise.all(
      places.slice(at, at + 24).map((bytes) =>
        cutAt(bytes).catch((error) => {
          throw new Error(`cut after ${bytes} bytes: ${error.message}`, { cause: error });
        }),
      ),
    );
  }
});

test("hundreds of reads through cuts are never stale and never go back", async () => {
  const server = await startServer({ path: fresh(), accessToken });
  const link = await linkTo(server.url);
  const far = await open(server.url, { accessToken });
  await far.set(["count"], 0);
  const near = await open(link.url, {
    accessToken,
    replica: fresh(),
    consistency: "eventual",
    timeout: 10_000,
  });
  await near.replica.ready();
  let over = false;
  let [reads, own, seen] = [0, 0, 0];
  const others = (async () => {
    for (let n = 1; !over; n++) await far.set(["count"], n);
  })();
  const cutting = (async () => {
    // On a busy machine there are few reads between two cuts.
    for (let n = 0; !over && (n < 25 || reads <= 100); n++) {
      await sleep(20 + ((n * 37) % 60));
      link.cut();
    }
    over = true;
  })();
  try {
    while (!over) {
      const result = await near.set(["own"], ++own).catch((error) => {
        // A cut may lose the answer; the next read must not be older than what was seen.
        assert.match(error.code, /OUTCOME_UNKNOWN|UNAVAILABLE/);
        return null;
      });
      const [mine, count] = await near.getMany([["own"], ["count"]]);
      // A write whose answer was lost may arrive behind the next one.
      const isStale = result !== null && mine.versionstamp < result.versionstamp;
      assert.ok(!isStale, `a stale read of an own write: ${mine.value}, not ${own}`);
      assert.ok(count.value >= seen, `${count.value} after ${seen}: back in time`);
      seen = count.value;
      const now = near.getSync(["count"]).value;
      assert.ok(now >= seen, `${now} after ${seen}: back in time`);
      seen = now;
      reads += 3;
    }
  } finally {
    // After a failure too: a writer that goes on would keep the process.
    over = true;
  }
  await Promise.all([others, cutting]);
  const { versionstamp } = await far.set(["end"], true);
  await near.replica.reached(versionstamp);
  assert.deepEqual(await all(near), await all(far));
});
