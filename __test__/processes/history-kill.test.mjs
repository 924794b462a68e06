// Duty: a writer with a history is killed at random moments; after each time, every moment that it
// was told of reads as a model that repeats its commits, and so do the versions of every entry.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { Random } from "./crash/random.mjs";
import { allSlots, markKey, plan, slotKey } from "./history-kill/plan.mjs";
import { newPath } from "./peer/file.mjs";
import { openKv } from "./target.mjs";

const WRITER = new URL("./history-kill/writer.mjs", import.meta.url);
const LANES = 6;
const KILLS = 5;
/** Commits that are known in the end: more than these. */
const COMMITS_MIN = KILLS * LANES;
/** Steps of a lane in one life: far more than it takes. */
const STEPS_MAX = 1_000_000;
const HANG_MS = 60_000;
/** Moments that are read after a kill, besides the last ones. */
const SAMPLE = 25;
const LAST = 10;

test("every acknowledged moment is there after a kill, and as it was", async () => {
  const path = newPath();
  const seed = `history ${Date.now()}`;
  const random = new Random(seed);
  /** The commits that are known to be there, by versionstamp. */
  const commits = new Map();
  // A writer that has little of a busy machine is killed before it commits much.
  for (let round = 0; round < KILLS || commits.size <= COMMITS_MIN; round++) {
    const flying = await life(path, seed, round, random, commits);
    const kv = await openKv(path);
    await addLanded(kv, flying, commits);
    await verify(kv, seed, commits, random);
    assert.deepEqual(await kv.check(), { ok: true, findings: [] }, seed);
    await kv.close();
  }
});

/** Runs a writer and kills it; answers the steps without an answer, by lane. */
async function life(path, seed, round, random, commits) {
  const flying = new Map();
  const opened = {};
  opened.or = new Promise((resolve) => (opened.resolve = resolve));
  const onLine = (line) => {
    const [word, lane, n, given] = line.split(" ");
    if (word === "R") return opened.resolve();
    if (word === "S") return flying.set(lane, { n: Number(n), from: Number(given) });
    const step = flying.get(lane);
    assert.equal(step.n, Number(n), line);
    commits.set(given, { lane: Number(lane), ...step });
    flying.delete(lane);
  };
  const args = { path, seed, lanes: LANES, first: round * STEPS_MAX };
  const child = startChild(WRITER, args, { onLine });
  await guard(Promise.race([opened.or, child.ended]), HANG_MS, "the writer opens the file");
  await sleep(random.between(1, 150));
  child.kill();
  const { signal } = await child.ended;
  assert.deepEqual([signal, child.stderr], ["SIGKILL", ""]);
  return flying;
}

/** Commits whose answer the writer did not live to give. */
async function addLanded(kv, flying, commits) {
  for (const [lane, step] of flying) {
    const { value, versionstamp } = await kv.get(markKey(Number(lane)));
    if (value === step.n) commits.set(versionstamp, { lane: Number(lane), ...step });
  }
}

async function verify(kv, seed, commits, random) {
  const stamps = [...commits.keys()].sort();
  const times = await timesOf(kv);
  const wanted = new Set(stamps.slice(-LAST));
  for (let count = 0; count < SAMPLE && stamps.length > 0; count++) wanted.add(random.pick(stamps));
  /** What commits have left, by slot, and what each slot was, newest first. */
  const state = new Map();
  const versions = new Map(allSlots.map((slot) => [slot, []]));
  for (const stamp of stamps) {
    const { lane, n, from } = commits.get(stamp);
    for (const { slot, value, life } of plan(seed, lane, n)) {
      const expireAt = life === undefined ? undefined : from + life;
      if (value !== undefined) versions.get(slot).unshift([stamp, value, expireAt]);
      if (value === undefined) state.delete(slot);
      else state.set(slot, { value, stamp, expireAt });
    }
    if (!wanted.has(stamp)) continue;
    const at = times.get(stamp);
    assert.ok(at !== undefined, `${seed}: the history does not have ${stamp}`);
    const alive = [...state].filter(([, { expireAt }]) => expireAt === undefined || expireAt > at);
    const expected = alive
      .sort(([a], [b]) => a - b)
      .map(([slot, { value, stamp: versionstamp }]) => ({
        key: slotKey(slot),
        value,
        versionstamp,
      }));
    const then = await kv.at(stamp);
    const found = [];
    for await (const entry of then.list({ prefix: ["slot"] })) found.push(entry);
    await then.close();
    assert.deepEqual(found, expected, `${seed}: at ${stamp}`);
  }
  for (const [slot, expected] of versions) {
    const found = [];
    for await (const version of kv.history(slotKey(slot))) {
      const { type, versionstamp, value, expireAt } = version;
      if (type === "set") found.push([versionstamp, value, expireAt?.getTime()]);
    }
    assert.deepEqual(found, expected, `${seed}: slot ${slot}`);
  }
}

/** When each commit was, in ms since the epoch: every commit writes the mark of its lane. */
async function timesOf(kv) {
  const times = new Map();
  for (let lane = 0; lane < LANES; lane++) {
    for await (const { versionstamp, committedAt } of kv.history(markKey(lane))) {
      times.set(versionstamp, committedAt.getTime());
    }
  }
  return times;
}
