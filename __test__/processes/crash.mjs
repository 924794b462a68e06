#!/usr/bin/env node
// Kills writers with SIGKILL and checks that everything they were told is committed is still there,
// nothing else is, and nothing is half there.
//
//   node crash.mjs [--kills 50] [--seed text] [--durability full|normal] [--keep]
//
// The same file goes through several kills, so that damage adds up; then its queue is drained and a
// new one begins. `--keep` leaves the file of a failure where it is.

import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { drain } from "./crash/drain.mjs";
import { Model } from "./crash/model.mjs";
import { Random } from "./crash/random.mjs";
import { round } from "./crash/round.mjs";
import { verify } from "./crash/verify.mjs";
import { openProbe } from "./probe.mjs";
import { isOracle, openKv } from "./target.mjs";

const KILLS_PER_FILE = 10;
/**
 * One file in so many has a writer that also handles messages; its end waits for the locks of the
 * killed.
 */
const CONSUMED_ONE_IN = 4;
const FAULTS_SHOWN = 20;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    seed: { type: "string", default: String(Date.now()) },
    durability: { type: "string", default: "full" },
    keep: { type: "boolean", default: false },
  },
});
const kills = Number(values.kills);
const { seed, durability, keep } = values;
const started = Date.now();
console.log(`${kills} kills, seed ${seed}, durability ${durability}`);

const probe = openProbe();
const totals = {};
const styles = {};
let ending = Promise.resolve();

for (let done = 0; done < kills; ) {
  const file = await newFile(done / KILLS_PER_FILE);
  const random = new Random(seed, "rounds", done);
  for (const end = Math.min(done + KILLS_PER_FILE, kills); done < end; done++) {
    const style = await round(file, random).catch((error) => file.model.fault(error.stack));
    styles[style] = (styles[style] ?? 0) + 1;
    stopOnFaults(file, done + 1);
  }
  // The end of one file, which may wait for locks to run out, beside the beginning of the next.
  const finished = done;
  await ending;
  ending = finish(file)
    .catch((error) => file.model.fault(error.stack))
    .then(() => stopOnFaults(file, finished));
}
await ending;
probe.close();

const seconds = ((Date.now() - started) / 1000).toFixed(1);
console.log(`${kills} kills in ${seconds} s: ${words(styles)}`);
console.log(words(totals));
for (const needed of [
  "acknowledged",
  "refused",
  "flying",
  "landed",
  "spilled",
  "expired",
  "messages",
]) {
  if (kills >= 50 && !totals[needed] && !isOracle) {
    console.error(`this run tested too little: not one ${needed}`);
    process.exitCode = 1;
  }
}
if (!process.exitCode) console.log("every acknowledged commit was there, whole");

async function newFile(index) {
  const directory = await mkdtemp(join(tmpdir(), "openkv-crash-"));
  return {
    directory,
    path: join(directory, "kv.sqlite3"),
    model: new Model(`${seed}/${index}`),
    rounds: 0,
    consumed: index % CONSUMED_ONE_IN === 1,
    durability,
    probe,
  };
}

async function finish({ directory, path, model }) {
  const kv = await openKv(path, { durability });
  await drain(kv, model);
  await verify(kv, model, Date.now(), new Random(seed, "last"));
  await kv.close();
  for (const what of await probe.damage(path)) model.fault(`damaged at the end: ${what}`);
  for (const [name, count] of Object.entries({ ...model.counts, messages: model.handled.size })) {
    totals[name] = (totals[name] ?? 0) + count;
  }
  if (model.faults.length === 0) await rm(directory, { recursive: true });
}

function stopOnFaults(file, kill) {
  const { faults } = file.model;
  if (faults.length === 0) return;
  console.error(`\n${faults.length} faults at kill ${kill} (round ${file.rounds} of ${file.path})`);
  for (const what of faults.slice(0, FAULTS_SHOWN)) console.error(`- ${what}`);
  console.error(
    `\nagain: node __test__/processes/crash.mjs --seed ${seed} --kills ${kills} ` +
      `--durability ${durability}`,
  );
  if (keep) console.error(`kept: ${file.directory}`);
  else rmSync(file.directory, { recursive: true, force: true });
  process.exit(1);
}

function words(counts) {
  return Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}
