// Duty: a message is done once it was printed, and only then; and what nobody reads ends nothing
// badly.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import {
  ended,
  folderOfTests,
  linesOf,
  outcomeOf,
  shell,
  start,
  withoutShell,
} from "./running.mjs";

const path = folderOfTests();

// It was acknowledged while the line was on its way: the message was gone, the exit code 0.
test("a message that nobody could read is delivered again", async () => {
  const kv = await openKv(path("closed.db"));
  for (const [verb, code] of [
    ["receive", 1],
    ["listen", 0],
  ]) {
    const wait = verb === "receive" ? ["--wait", "20000"] : [];
    const child = start(["-d", path("closed.db"), "queue", verb, verb, ...wait]);
    child.stdout.destroy();
    const outcome = outcomeOf(child);
    await kv.queue(verb).enqueue("kept");
    const { code: exit, err } = await outcome;
    assert.equal(exit, code, err);
    assert.equal((await kv.queue(verb).stats()).total, 1, verb);
  }
  await kv.close();
});

test("a message is kept when the device is full", {
  skip: withoutShell || !existsSync("/dev/full"),
}, async () => {
  const kv = await openKv(path("full.db"));
  await kv.queue("m").enqueue("kept", { backoffSchedule: [0] });
  const { code, err } = await shell(`$OPENKV -d ${path("full.db")} queue receive m >/dev/full`);
  assert.equal(code, 1);
  assert.match(err, /could not be written: ENOSPC.*: message 1 is not done/);
  assert.equal((await kv.queue("m").stats()).total, 1);
  await kv.close();
});

test("serve ends well when nobody reads what it tells", async () => {
  const env = { OPENKV_ACCESS_TOKEN: "a-long-and-secret-token" };
  const child = start(["serve", "--path", path("served.db"), "--listen", "127.0.0.1:0"], env);
  await linesOf(child, 1);
  child.stderr.destroy();
  assert.equal(await ended(child, "SIGTERM"), 0);
});
