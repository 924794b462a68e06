// Duty: clocks that are an hour off: a replica never deletes by its own clock, its lag needs no common
// clock, and a primary whose clock goes back goes on with newer versionstamps.

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { open, startServer } from "../kit/server.mjs";
import { guard, HANG_MS } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";
import { shiftedClock } from "../processes/probe.mjs";
import { all } from "./entries.mjs";

const FOLLOWER = new URL("follower.mjs", import.meta.url);
const SERVER = new URL("chaos/server.mjs", import.meta.url);
const HOUR_S = 3600;
const HALF_AN_HOUR_MS = 1_800_000;
const accessToken = "an-access-token";
const fresh = freshPaths("replica-clock");
const skip = process.platform !== "linux" && "clocks are shifted by LD_PRELOAD";

/** Starts a process whose clock is that many seconds off; it has said that it is ready. */
async function startShifted(t, script, args, seconds) {
  const env = { ...process.env, ...shiftedClock(seconds) };
  const child = startChild(script, args, { spawn: { env } });
  t.after(() => child.kill());
  assert.equal(await guard(child.line(), HANG_MS, "it starts"), "ready", child.stderr);
  return {
    child,
    async ask(question) {
      child.say(question);
      return JSON.parse(await guard(child.line(), HANG_MS, question));
    },
  };
}

for (const [hours, hidden] of [
  [1, true],
  [-1, false],
]) {
  test(`a replica whose clock is ${hours} h off deletes nothing`, { skip }, async (t) => {
    const server = await startServer({ path: fresh(), accessToken });
    const kv = await open(server.url, { accessToken });
    for (let n = 0; n < 20; n++) await kv.set(["small", n], n, { expireIn: HALF_AN_HOUR_MS });
    const replica = fresh();
    const given = { url: server.url, accessToken, replica };
    const far = await startShifted(t, FOLLOWER, given, hours * HOUR_S);
    const { versionstamp } = await kv.set(["big", 0], 0);
    assert.equal(await far.ask(`reached ${versionstamp}`), "reached");
    // What has expired by the clock of the reader is hidden from it, and stays in the file.
    assert.deepEqual([await far.ask("small"), await far.ask("big")], [hidden ? 0 : 20, 1]);
    const { lag, state, copies } = await far.ask("status");
    assert.deepEqual([state, copies], ["following", 1]);
    assert.ok(lag >= 0 && lag < HOUR_S * 500, `lag ${lag}`);
    far.child.kill();
    await far.child.ended;
    const local = await openKv(replica, { readonly: true });
    assert.deepEqual(await all(local), await all(kv));
    await local.close();
  });
}

test("a primary whose clock goes back an hour is followed without a new copy", {
  skip,
}, async (t) => {
  const path = fresh();
  const listen = `127.0.0.1:${await freePort()}`;
  const given = { path, listen, accessToken };
  const ahead = await startShifted(t, SERVER, given, HOUR_S);
  const url = `http://${listen}`;
  const kv = await open(url, { accessToken });
  const first = await kv.set(["a"], 1);
  const near = await open(url, { accessToken, replica: fresh(), consistency: "eventual" });
  await near.replica.ready();
  ahead.child.kill();
  await ahead.child.ended;
  await startShifted(t, SERVER, given, 0);
  const second = await kv.set(["a"], 2);
  assert.ok(second.versionstamp > first.versionstamp);
  await guard(near.replica.reached(second.versionstamp), HANG_MS, "it has the commit");
  assert.equal((await near.get(["a"])).value, 2);
  const { copies, lag } = await near.replica.status();
  assert.equal(copies, 1);
  assert.ok(lag >= 0 && lag < HOUR_S * 500, `lag ${lag}`);
});
