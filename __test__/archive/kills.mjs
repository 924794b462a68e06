// Duty: archivers and restores that are killed at random moments, against a model of every commit.
//
//   node __test__/archive/kills.mjs [--kills 30] [--seed text]
//
// One database is written to all the time. In each round an archiver and a restore are killed. Now and then
// everything is archived, and restores of random commits must give what was there; a restore that was killed
// leaves either no file or one that equals a commit.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKv } from "../../index.mjs";
import { contents, openkv, outcomeOf, start } from "../cli/running.mjs";
import { untilArchived } from "./listing.mjs";
import { newFolder } from "../kit/folder.mjs";

const KILLS_PER_CHECK = 30;
const RESTORES_PER_CHECK = 4;
const KEYS = 40;
const PATIENCE_MS = 60_000;

/** Numbers from a seed, below a bound. */
function randomOf(seed) {
  let count = 0;
  return (bound) => {
    const hash = createHash("sha256").update(`${seed}/${count++}`).digest();
    return hash.readUInt32LE(0) % bound;
  };
}

/** Kills so many processes; fails with what was wrong. */
export async function kill(kills, seed, tell = () => {}) {
  const below = randomOf(seed);
  const folder = newFolder("archive-kills");
  const [file, target] = [join(folder, "kv.sqlite3"), join(folder, "archive")];
  const kv = await openKv(file, { durability: "normal" });
  const model = new Map();
  /** The entries after each commit, as text, by versionstamp. */
  const states = new Map();
  let stopped = false;
  const writing = write();
  const totals = { archivers: 0, restores: 0, completed: 0, checked: 0 };
  try {
    for (let done = 0; done < kills; ) {
      for (const end = Math.min(done + KILLS_PER_CHECK, kills); done < end; done += 2) {
        await round();
      }
      await check();
      tell(`${done} kills: ${JSON.stringify(totals)}`);
    }
  } finally {
    // After a failure too: a writer that goes on would keep the process.
    stopped = true;
    await writing;
    await kv.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return totals;

  async function write() {
    for (let n = 0; !stopped; n++) {
      const key = below(KEYS);
      let atomic = kv.atomic();
      if (below(5) === 0) {
        atomic = atomic.delete(["k", key]);
        model.delete(key);
      } else {
        const value = below(20) === 0 ? `${n}`.repeat(5000) : n;
        atomic = atomic.set(["k", key], value);
        model.set(key, value);
      }
      const { versionstamp } = await atomic.commit();
      states.set(versionstamp, text([...model].map(([name, of]) => [["k", name], of])));
      await pause(5);
    }
  }

  async function round() {
    const archiver = start(["archive", "run", file, target, "--snapshot-every", "400ms"]);
    const to = join(folder, "killed.sqlite3");
    const restore =
      totals.checked > 0 || totals.archivers > 4 ? start(["restore", target, to]) : undefined;
    const ends = [archiver, restore].map(async (child) => {
      if (child === undefined) return;
      const ended = outcomeOf(child);
      await pause(50 + below(700));
      child.kill("SIGKILL");
      await ended;
    });
    await Promise.all(ends);
    totals.archivers++;
    if (restore === undefined) return;
    totals.restores++;
    if (existsSync(to)) {
      totals.completed++;
      // A commit that is not answered yet can be archived.
      const found = text(await contents(to));
      const end = Date.now() + PATIENCE_MS;
      while (![...states.values()].includes(found)) {
        assert.ok(Date.now() < end, `seed ${seed}: a killed restore has left another database`);
        await pause(20);
      }
      for (const more of ["", "-wal", "-shm"]) rmSync(to + more, { force: true });
    }
  }

  async function check() {
    const archiver = start(["archive", "run", file, target]);
    const ended = outcomeOf(archiver);
    const newest = [...states.keys()].at(-1);
    await untilArchived(target, newest);
    archiver.kill("SIGTERM");
    const outcome = await ended;
    assert.equal(outcome.code, 0, outcome.err);
    const listing = JSON.parse((await openkv("archive", "list", target, "--json")).out);
    assert.equal(listing.timelines.length, 1);
    const oldest = listing.timelines[0].snapshots[0].versionstamp;
    const last = listing.timelines[0].last ?? oldest;
    const known = [...states].filter(([stamp]) => stamp >= oldest && stamp <= last);
    assert.ok(known.length > 0, `seed ${seed}: no commit from ${oldest} to ${last}`);
    for (let n = 0; n < RESTORES_PER_CHECK; n++) {
      const [versionstamp, expected] = n === 0 ? known.at(-1) : known[below(known.length)];
      const to = join(folder, `restored-${totals.checked++}.sqlite3`);
      const restored = await openkv("restore", target, to, "--at", versionstamp);
      assert.equal(restored.code, 0, `seed ${seed}, at ${versionstamp}: ${restored.err}`);
      assert.equal(text(await contents(to)), expected, `seed ${seed}, at ${versionstamp}`);
      rmSync(to);
    }
    const verified = await openkv("archive", "verify", target, "--json");
    assert.equal(verified.code, 0, `seed ${seed}: ${verified.err}${verified.out}`);
    assert.deepEqual(JSON.parse(verified.out).findings, []);
  }
}

/** Entries as a short text, in the order of their keys. */
function text(entries) {
  const sorted = entries.toSorted(([[, a]], [[, b]]) => a - b);
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      kills: { type: "string", default: "30" },
      seed: { type: "string", default: String(Date.now()) },
    },
  });
  console.log(`${values.kills} kills, seed ${values.seed}`);
  await kill(Number(values.kills), values.seed, (line) => console.log(line));
  console.log("every commit was there, and nothing else");
}
