// Duty: the disk of a replica is full: it keeps its last complete state, says why it is behind, and goes
// on once there is room.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import process from "node:process";
import { test } from "node:test";
import { limitedFiles, smallDisk } from "../faults/child/small-disk.mjs";
import { newDirectory } from "../faults/child/start.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { guard, HANG_MS, sleep } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";

const FOLLOWER = new URL("follower.mjs", import.meta.url);
const accessToken = "an-access-token";
const fresh = freshPaths("replica-disk");
const skip = process.platform === "win32" && "there is neither mount nor ulimit";

/** Room for the entries and their write-ahead log, but not with the ballast. */
const DISK = { diskKib: 20_480, ballastKib: 15_360 };
const BIG_ENTRIES = 120;
const BIG_BYTES = 60_000;

test("a full disk leaves the replica as it was, until there is room", { skip }, async (t) => {
  await fill(t, smallDisk(t, DISK));
});

test("a file that may not grow leaves the replica as it was", { skip }, async (t) => {
  await fill(t, limitedFiles(newDirectory(t)));
});

async function fill(t, { path: replica, ballast, command }) {
  const server = await startServer({ path: fresh(), accessToken });
  const kv = await open(server.url, { accessToken });
  for (let n = 0; n < 10; n++) await kv.set(["small", n], n);
  const child = startChild(FOLLOWER, { url: server.url, accessToken, replica }, { command });
  t.after(() => child.kill());
  const line = await guard(child.line(), HANG_MS, "the replica is ready");
  assert.equal(line, "ready", child.stderr);
  const ask = async (question) => {
    child.say(question);
    return JSON.parse((await guard(child.line(), HANG_MS, question)) ?? "null");
  };

  for (let n = 0; n < BIG_ENTRIES; n++) {
    await kv.set(["big", n], new Uint8Array(BIG_BYTES).fill(n));
  }
  let status = await ask("status");
  while (status.error === null) {
    await sleep(20);
    status = await ask("status");
  }
  t.diagnostic(`${status.state}: ${status.error.code}: ${status.error.message}`);
  // A full disk may get room by itself; a write that fails in another way needs a person.
  assert.equal(status.state, ballast === undefined ? "failed" : "disconnected");
  assert.equal(await ask("small"), 10);
  if (ballast === undefined) return;
  const had = await ask("big");
  assert.ok(had < BIG_ENTRIES, `${had} entries fitted`);
  const { versionstamp } = await kv.set(["small", 10], 10);
  await rm(ballast);
  assert.equal(await ask(`reached ${versionstamp}`), "reached");
  assert.deepEqual([await ask("small"), await ask("big")], [11, BIG_ENTRIES]);
  assert.equal((await ask("status")).error, null);
}
