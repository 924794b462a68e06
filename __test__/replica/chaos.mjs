#!/usr/bin/env node
// Duty: kills a primary and its replicas at random moments and cuts the link between them, while the
// replicas' handles check what they read; in the end each replica has what its primary has.
//
//   node chaos.mjs [--kills 30] [--cuts 100] [--replicas 2] [--seed text]
//
// One event in three kills the primary; each cut ends all connections, or lets the next ones live for a
// random number of bytes.

import assert from "node:assert/strict";
import process from "node:process";
import { parseArgs } from "node:util";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";
import { Random } from "../processes/crash/random.mjs";
import { all } from "./entries.mjs";
import { Link } from "./link.mjs";

const READER = new URL("chaos/reader.mjs", import.meta.url);
const SERVER = new URL("chaos/server.mjs", import.meta.url);
const HANG_MS = 60_000;
const ENTRIES = 2000;
/** Between two events; a handle that was cut off needs some to read again. */
const PAUSE_MS = [10, 300];
/** About a copy of the entries: some cuts hit it, some the stream behind it. */
const CUT_BYTES_MAX = 300_000;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "30" },
    cuts: { type: "string", default: "100" },
    replicas: { type: "string", default: "2" },
    seed: { type: "string", default: String(Date.now()) },
  },
});
const [kills, cuts, replicas] = [values.kills, values.cuts, values.replicas].map(Number);
console.log(`${kills} kills, ${cuts} cuts, ${replicas} replicas, seed ${values.seed}`);

const accessToken = "an-access-token";
const random = new Random(values.seed, "replica");
const fresh = freshPaths("replica-chaos");
const faults = [];
const tally = { reads: 0, "primaries killed": 0, "replicas killed": 0, cuts: 0, writes: 0 };

const path = fresh();
const listen = `127.0.0.1:${await freePort()}`;
const url = `http://${listen}`;
let primary = await startPrimary();
const link = new Link(new URL(url));
await link.listen();
const kv = await openKv(url, { accessToken, timeout: HANG_MS });
await fill();
const readers = [];
for (let id = 0; id < replicas; id++) readers.push(await startReader(id, 0, fresh()));

let over = false;
const writing = write();
await disturb();
over = true;
await writing;
await end();

if (tally.reads < kills + cuts) faults.push(`only ${tally.reads} reads`);
for (const what of faults) console.error(`- ${what}`);
console.log(
  Object.entries(tally)
    .map(([what, n]) => `${n} ${what}`)
    .join(", "),
);
process.exit(faults.length > 0 ? 1 : 0);

async function startPrimary() {
  const child = startChild(SERVER, { path, listen, accessToken });
  assert.equal(await guard(child.line(), HANG_MS, "the primary starts"), "ready", child.stderr);
  return child;
}

/** A process with the replica in `file`; it may be killed before it is ready. */
async function startReader(id, life, file) {
  const reader = { id, life, file };
  const heard = (line) => {
    if (line.startsWith("fault")) faults.push(line);
    else if (line === "read") tally.reads++;
  };
  const given = { url: link.url, replica: file, accessToken, life: `${id}/${life}` };
  reader.child = startChild(READER, given, { onLine: heard });
  return reader;
}

async function fill() {
  for (let n = 0; n < ENTRIES; n += 100) {
    const atomic = kv.atomic().set(["count"], 0);
    for (let at = n; at < n + 100; at++) atomic.set(["entry", at], "z".repeat(at % 300));
    await atomic.commit();
  }
}

/** Counts, and changes entries in each way that a log has, until the end. */
async function write() {
  for (let n = 1; !over; n++) {
    const at = n % ENTRIES;
    const more = kv.atomic().set(["count"], n).set(["passing", n], at);
    if (n % 7 === 0) more.delete(["entry", at]);
    else more.set(["entry", at], n, n % 5 === 0 ? { expireIn: 3_600_000 } : {});
    await unlessUnreachable(more.commit());
    if (n % 50 === 0) await unlessUnreachable(kv.deleteMany({ prefix: ["passing"] }));
    if (n % 11 === 0) await unlessUnreachable(kv.touch(["entry", at + 1], { expireIn: 7_200_000 }));
    tally.writes++;
  }
}

async function unlessUnreachable(answer) {
  try {
    await answer;
  } catch (error) {
    if (!/^(UNAVAILABLE|OUTCOME_UNKNOWN)$/.test(error.code)) faults.push(error.stack);
  }
}

async function disturb() {
  const events = [...Array(kills).fill(kill), ...Array(cuts).fill(cut)];
  while (events.length > 0) {
    const [event] = events.splice(random.between(0, events.length - 1), 1);
    await sleep(random.between(...PAUSE_MS));
    await event();
  }
}

async function kill() {
  if (random.oneIn(3)) {
    primary.kill();
    await primary.ended;
    tally["primaries killed"]++;
    primary = await startPrimary();
    return;
  }
  const at = random.between(0, replicas - 1);
  const { id, life, file, child } = readers[at];
  child.kill();
  await child.ended;
  reportCrash(child, id);
  tally["replicas killed"]++;
  readers[at] = await startReader(id, life + 1, file);
}

async function cut() {
  if (random.oneIn(2)) {
    link.most = random.between(1, CUT_BYTES_MAX);
    link.cut();
    await sleep(random.between(5, 60));
    link.most = Number.POSITIVE_INFINITY;
  }
  link.cut();
  tally.cuts++;
}

function reportCrash({ stderr }, id) {
  if (stderr !== "") faults.push(`replica ${id} printed: ${stderr}`);
}

/** Each replica becomes what the primary is, and its file is whole. */
async function end() {
  // A reader writes too, so all end before the first is compared.
  for (const { id, child } of readers) {
    child.kill();
    await child.ended;
    reportCrash(child, id);
  }
  for (const { id, file } of readers) {
    const near = await openKv(link.url, { accessToken, replica: file, timeout: HANG_MS });
    const { versionstamp } = await kv.set(["end", id], true);
    await guard(near.replica.reached(versionstamp), HANG_MS, `replica ${id} has all`);
    compare(
      await all(near, { consistency: "eventual", withExpiry: true }),
      await all(kv, { withExpiry: true }),
      id,
    );
    await near.close();
    const local = await openKv(file, { readonly: true });
    const { ok, findings } = await local.check();
    if (!ok) faults.push(`replica ${id} is damaged: ${JSON.stringify(findings)}`);
    await local.close();
  }
  await kv.close();
  primary.kill();
  link.close();
}

function compare(found, expected, id) {
  try {
    assert.deepEqual(found, expected);
  } catch (error) {
    faults.push(`replica ${id} is not its primary: ${error.message}`);
  }
}
