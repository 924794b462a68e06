#!/usr/bin/env node
// Simulates power losses: records every write and sync of a working process, and opens what a disk
// would hold that lost power in the middle: all that was synced, and of the rest any sectors.
//
//   node power-loss.mjs [--cuts 60] [--runs 2] [--seed text] [--durability full|normal]
//
// full: whatever was acknowledged, or told of by a feed, before the cut is there. normal: the last
// commits may be gone, but those that are there are the first ones, each whole. Linux with glibc
// only: the recorder is loaded with LD_PRELOAD.

import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { Model } from "./crash/model.mjs";
import { Random } from "./crash/random.mjs";
import { verify } from "./crash/verify.mjs";
import { leave, readWriteLog, saidBefore } from "./power/write-log.mjs";
import { openProbe, writeLogLibrary } from "./probe.mjs";
import { openKv } from "./target.mjs";

const WRITER = new URL("crash/writer.mjs", import.meta.url);
const HANG_MS = 60_000;
/**
 * A run is at least this long, in acknowledged commits: enough to fill the log and check it point
 * by point.
 */
const COMMITS_MIN = 300;
/** The first acts of a run: those that create the file, and those of its first commits. */
const FIRST_ACTS = 16;

const { values } = parseArgs({
  options: {
    cuts: { type: "string", default: "60" },
    runs: { type: "string", default: "2" },
    seed: { type: "string", default: String(Date.now()) },
    durability: { type: "string", default: "full" },
  },
});
const { seed, durability } = values;
const cuts = Number(values.cuts);
console.log(
  `${values.runs} runs of ${cuts} power losses each, seed ${seed}, durability ${durability}`,
);

const directory = newFolder("power");
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const probe = openProbe();
const totals = { acknowledged: 0, lost: 0, "unsynced acts": 0 };

for (let run = 0; run < Number(values.runs); run++) {
  const random = new Random(seed, "run", run);
  const name = `${seed}/${run}`;
  const acts = await record(name, random);
  // Some cuts fall while the file is created, most among commits. Right behind what a feed was told
  // is where it would have been told too early.
  const told = acts.filter(({ kind, bytes }) => kind === "said" && /^T /m.test(bytes.toString()));
  for (let cut = 0; cut < cuts; cut++) {
    const at =
      told.length > 0 && random.oneIn(2)
        ? random.pick(told).index + 1
        : random.between(0, random.oneIn(4) ? FIRST_ACTS : acts.length);
    await lose(name, acts, at, random, `${run}-${cut}`);
  }
}
probe.close();
console.log(
  Object.entries(totals)
    .map(([what, count]) => `${count} ${what}`)
    .join(", "),
);
if (durability === "full") console.log("whatever was acknowledged was synced");
else if (totals.lost > 0) console.log("what was there was a beginning of the commits, each whole");
else fail(["not one commit was lost without syncs: the simulation does not work"]);

/** Lets a writer work with the recorder loaded; what it did. */
async function record(name, random) {
  const path = join(directory, "recorded", "kv.sqlite3");
  rmSync(join(directory, "recorded"), { recursive: true, force: true });
  mkdirSync(join(directory, "recorded"));
  const log = join(directory, "recorded", "write-log");
  let commits = 0;
  let enough;
  const worked = new Promise((resolve) => (enough = resolve));
  const child = startChild(
    WRITER,
    {
      path,
      durability,
      seed: name,
      writer: "w0",
      lanes: random.pick([1, 4, 8]),
      first: 0,
      consume: false,
      follow: durability === "full",
      // With pauses, in which what has ended is removed without anybody's write.
      slow: durability === "full",
    },
    {
      onLine: (line) => {
        if (line[0] === "A" && ++commits === COMMITS_MIN) enough();
      },
      spawn: {
        env: {
          ...process.env,
          LD_PRELOAD: writeLogLibrary(),
          WRITE_LOG_OF: path,
          WRITE_LOG_TO: log,
        },
      },
    },
  );
  await guard(Promise.race([worked, child.ended]), HANG_MS, "the recorded process commits");
  await sleep(random.between(0, 50));
  child.kill();
  await child.ended;
  if (child.stderr !== "") fail([`the recorded process said: ${child.stderr}`]);
  const acts = readWriteLog(readFileSync(log));
  if (!acts.some(({ kind }) => kind === "sync"))
    fail(["nothing was recorded: is the C library another one?"]);
  return acts;
}

/** One disk that lost power after `cut` acts: what is on it must be what it must be. */
async function lose(name, acts, cut, random, label) {
  const place = join(directory, label);
  mkdirSync(place);
  const path = join(place, "kv.sqlite3");
  leave(acts, cut, path, random);
  totals["unsynced acts"] +=
    acts.slice(0, cut).length - 1 - acts.slice(0, cut).findLastIndex(({ kind }) => kind === "sync");

  const model = new Model(name);
  for (const line of saidBefore(acts, cut)) model.hear(line);
  if (durability === "normal") totals.lost += model.forgetAfter(await newestOf(place));
  else if (model.told !== "" && (await newestOf(place)) < model.told)
    model.fault(`a feed was told of ${model.told}, which is lost`);
  const kv = await guard(openKv(path), HANG_MS, "opening after a power loss");
  await guard(verify(kv, model, Date.now(), random), HANG_MS, "reading after a power loss");
  await kv.close();
  for (const what of await probe.damage(path)) model.fault(`damaged: ${what}`);
  totals.acknowledged += model.counts.acknowledged;
  if (model.faults.length > 0) fail(model.faults, `at cut ${cut} of ${acts.length}`);
  rmSync(place, { recursive: true });
}

/**
 * The versionstamp of the last commit on a disk, read from a copy: opening the disk itself is under
 * test.
 */
async function newestOf(place) {
  const copy = `${place}-copy`;
  cpSync(place, copy, { recursive: true });
  const rows = await probe
    .run(join(copy, "kv.sqlite3"), "SELECT version FROM data_version")
    .catch(() => [[0]]);
  rmSync(copy, { recursive: true });
  return rows[0][0].toString(16).padStart(16, "0") + "0000";
}

function fail(faults, where = "") {
  console.error(`\n${faults.length} faults ${where}`);
  for (const what of faults.slice(0, 20)) console.error(`- ${what}`);
  console.error(
    `\nagain: node __test__/processes/power-loss.mjs --seed ${seed} --durability ${durability}`,
  );
  process.exit(1);
}
