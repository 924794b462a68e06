// Duty: the commands archive and restore, as processes: archivers and restores that are killed, restores at
// versionstamps and times, and what they refuse.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openKv } from "../../index.mjs";
import { untilArchived } from "../archive/listing.mjs";
import { contents, folderOfTests, openkv, outcomeOf, start } from "./running.mjs";
import { until } from "../kit/time.mjs";

const inFolder = folderOfTests();

/** The entries of a database as text. */
async function entries(file) {
  return JSON.stringify(await contents(file));
}

test("an archive of a database in use restores to a commit, to a time and to the newest", async () => {
  const [file, target] = [inFolder("used.sqlite3"), inFolder("used-archive")];
  const kv = await openKv(file);
  await kv.set(["n"], 0);
  const child = start(["archive", "run", file, target]);
  const ended = outcomeOf(child);
  const states = [];
  for (let n = 1; n <= 5; n++) {
    const { versionstamp } = await kv.set(["n"], n);
    await untilArchived(target, versionstamp);
    states.push({ versionstamp, atMs: Date.now(), n });
    await pause(20);
  }
  child.kill("SIGTERM");
  const { code, out, err } = await ended;
  assert.equal(code, 0, err);
  assert.match(out, /versionstamp/);
  const valueOf = async (name, ...args) => {
    const restored = await openkv("restore", target, inFolder(name), ...args, "--json");
    assert.equal(restored.code, 0, restored.err);
    const found = await contents(inFolder(name));
    return found.find(([key]) => key[0] === "n")[1];
  };
  // The times were milliseconds, where other commands print ISO 8601.
  const listing = JSON.parse((await openkv("archive", "list", target, "--json")).out);
  const [{ begunAt, snapshots }] = listing.timelines;
  const { at: snapshotAt, takenAt } = snapshots[0];
  for (const time of [listing.archived[1], begunAt, snapshotAt, takenAt]) {
    assert.equal(new Date(time).toISOString(), time);
  }
  for (const { versionstamp, atMs, n } of states) {
    assert.equal(await valueOf(`at-${n}`, "--at", versionstamp), n);
    const time = new Date(atMs).toISOString();
    assert.equal(await valueOf(`time-${n}`, "--at", time), n);
  }
  assert.equal(await valueOf("newest"), 5);
  const verified = await openkv("archive", "verify", target, "--json");
  assert.equal(verified.code, 0, verified.err);
  assert.deepEqual(JSON.parse(verified.out).findings, []);
  const pruned = await openkv("archive", "prune", target, "--retention", "1d", "--json");
  assert.deepEqual(JSON.parse(pruned.out), { objects: 0, snapshots: 0 });
  await kv.close();
});

test("kv.archive archives until the handle is closed, and a prefix restores its entries", async () => {
  const [file, target] = [inFolder("api.sqlite3"), inFolder("api-archive")];
  const kv = await openKv(file);
  const archive = await kv.archive({ to: target, snapshotEvery: "1h", retention: "7d" });
  await kv.set(["a", 1], "one");
  await kv.set(["b", 1], "two");
  assert.equal(archive.status().state, "running");
  await assert.rejects(kv.archive({ to: target }), { code: "UNAVAILABLE" });
  await kv.close();
  assert.equal(archive.status().state, "stopped");
  await archive.stop();
  const part = inFolder("part.sqlite3");
  assert.equal((await openkv("restore", target, part, "--prefix", '["b"]')).code, 0);
  assert.deepEqual(await contents(part), [[["b", 1], "two"]]);
  const whole = inFolder("whole.sqlite3");
  assert.equal((await openkv("restore", target, whole)).code, 0);
  assert.equal(await entries(whole), await entries(file));
});

test("an archiver that is killed at any moment goes on", async () => {
  const [file, target] = [inFolder("killed.sqlite3"), inFolder("killed-archive")];
  const kv = await openKv(file, { durability: "normal" });
  let n = 0;
  for (let round = 0; round < 4; round++) {
    const child = start(["archive", "run", file, target, "--snapshot-every", "300ms"]);
    const ended = outcomeOf(child);
    const end = Date.now() + 500 + round * 350;
    while (Date.now() < end) {
      await kv.set(["n", n % 50], n++);
      await pause(3);
    }
    child.kill("SIGKILL");
    await ended;
  }
  const child = start(["archive", "run", file, target]);
  const ended = outcomeOf(child);
  const { versionstamp } = await kv.set(["last"], n);
  await untilArchived(target, versionstamp);
  child.kill("SIGTERM");
  const { code, err } = await ended;
  assert.equal(code, 0, err);
  await kv.close();
  const restored = inFolder("killed-restored.sqlite3");
  const outcome = await openkv("restore", target, restored);
  assert.equal(outcome.code, 0, outcome.err);
  assert.equal(await entries(restored), await entries(file));
  const verified = await openkv("archive", "verify", target, "--json");
  assert.equal(verified.code, 0, verified.err + verified.out);
});

test("a restore that is killed leaves no database, and the next one removes what it has left", async () => {
  const [file, target] = [inFolder("large.sqlite3"), inFolder("large-archive")];
  const kv = await openKv(file, { durability: "normal" });
  const archive = await kv.archive({ to: target });
  for (let at = 0; at < 40; at++) {
    let atomic = kv.atomic();
    for (let n = 0; n < 25; n++) atomic = atomic.set(["k", at, n], "x".repeat(20_000));
    await atomic.commit();
  }
  await archive.stop();
  await kv.close();
  const to = inFolder("kill/restored.sqlite3");
  mkdirSync(inFolder("kill"));
  for (let round = 0; round < 4; round++) {
    const child = start(["restore", target, to]);
    const ended = outcomeOf(child);
    await pause(150 + round * 60);
    child.kill("SIGKILL");
    await ended;
    if (existsSync(to)) break;
  }
  if (!existsSync(to)) {
    const { code, err } = await openkv("restore", target, to);
    assert.equal(code, 0, err);
  }
  assert.equal(await entries(to), await entries(file));
  assert.deepEqual(
    readdirSync(inFolder("kill")).filter((name) => name.includes("unfinished")),
    [],
  );
});

test("bad input is refused with what to do, and changes nothing", async () => {
  const [file, target] = [inFolder("bad.sqlite3"), inFolder("bad-archive")];
  const kv = await openKv(file);
  await kv.set(["a"], 1);
  const archive = await kv.archive({ to: target });
  await until(() => archive.status().snapshot !== null);
  await archive.stop();
  const mine = inFolder("mine");
  mkdirSync(mine);
  writeFileSync(join(mine, "precious"), "x");
  const there = inFolder("there.sqlite3");
  writeFileSync(there, "precious");
  const cases = [
    [["archive", "run", file, mine], 1, /is not empty and no archive/],
    [["archive", "run", file, "s3://user:secret@bucket/x"], 1, /credentials in the environment/],
    [["archive", "run", ":memory:", target], 1, /memory/],
    [["archive", "run", file, target, "--retention", "soon"], 2, /must be a duration/],
    [["restore", mine, inFolder("no1")], 1, /is no archive/],
    [["restore", target, there], 1, /exists already: a restore replaces nothing/],
    [["restore", target, inFolder("no2"), "--at", "yesterday"], 2, /20 hexadecimal digits/],
    [["restore", target, inFolder("no3"), "--at", "2001-01-01"], 1, /before the oldest/],
    [["restore", target, inFolder("no4"), "--at", "2999-01-01"], 1, /after the newest/],
    [["restore", target, inFolder("no5"), "--force"], 2, /replaces nothing/],
    [["restore", file, inFolder("no6"), "--at", "2001-01-01"], 2, /is a backup/],
    [
      ["restore", inFolder("gone"), inFolder("no7"), "--at", "2001-01-01"],
      2,
      /does not exist: name the folder/,
    ],
    [["archive", "list", inFolder("nowhere")], 1, /cannot be used/],
  ];
  for (const [args, code, message] of cases) {
    const outcome = await openkv(...args);
    assert.match(outcome.err, message, args.join(" "));
    assert.doesNotMatch(outcome.err, /secret@|:secret/);
    assert.equal(outcome.code, code, args.join(" "));
  }
  for (let n = 1; n <= 6; n++) assert.equal(existsSync(inFolder(`no${n}`)), false);
  assert.deepEqual(readdirSync(mine), ["precious"]);
  await kv.close();
});
