// Fills the disk: commits until commits fail, checks that acknowledged commits can still be read
// and failed ones are absent, frees space if possible, and continues. Prints one JSON object.

import { rmSync } from "node:fs";

import { args, listen, tell } from "../../processes/child.mjs";
import { KvError, openKv } from "../../processes/target.mjs";

const { path, ballast, durability } = args;

/** More than fits, however the file system rounds. */
const COMMITS_MAX = 5000;
/** Commits in flight together, so that one that fails takes others with it, or not. */
const TOGETHER = 5;

listen();
const acknowledged = new Map();
const unknown = new Set();
const failures = {};
const faults = [];

const kv = await openKv(path, { durability });
await kv.set(["small"], 0);
let failed = 0;
for (let n = 0; n < COMMITS_MAX && failed < 4 * TOGETHER; n += TOGETHER) {
  const together = Array.from({ length: TOGETHER }, (_, at) => commit(n + at));
  failed += (await Promise.all(together)).filter((ok) => !ok).length;
}
if (failed === 0) faults.push("the disk never filled up");
await check(kv, "on the full disk");
// Small commits too, now that not even they fit; and everything that is not a plain set.
for (let n = 0; n < 20; n++) await attempt(() => kv.set(["small"], n));
await attempt(() => kv.enqueue("x".repeat(5000)));
await attempt(() => kv.atomic().sum(["sum"], 1n).set(["with", "sum"], "x".repeat(9000)).commit());
await check(kv, "after more commits failed");

let recovered = null;
if (ballast) {
  rmSync(ballast);
  recovered = true;
  for (let n = COMMITS_MAX; n < COMMITS_MAX + 10; n++) recovered = (await commit(n)) && recovered;
  await check(kv, "after room was made");
}
await kv.close();
const again = await openKv(path).catch((error) => void note(error));
if (again) {
  await check(again, "opened again");
  again.close();
}
tell(
  JSON.stringify({
    acknowledged: [...acknowledged],
    unknown: [...unknown],
    failures,
    faults,
    recovered,
    reopened: again !== undefined,
  }),
);

async function commit(n) {
  try {
    const value = "x".repeat(1 + (n % 3) * 7000);
    const { versionstamp } = await kv
      .atomic()
      .set(["n", n, "a"], value)
      .set(["n", n, "b"], n)
      .commit();
    acknowledged.set(n, versionstamp);
    return true;
  } catch (error) {
    if (error.code === "OUTCOME_UNKNOWN") unknown.add(n);
    note(error);
    return false;
  }
}

async function attempt(action) {
  try {
    await action();
  } catch (error) {
    note(error);
  }
}

function note(error) {
  const name = error instanceof KvError ? error.code : `${error?.name} ${error?.message}`;
  failures[name] = (failures[name] ?? 0) + 1;
  if (!["UNAVAILABLE", "OUTCOME_UNKNOWN"].includes(name))
    faults.push(`not what a full disk is: ${error?.stack}`);
}

/** All that was acknowledged is there, with its versionstamp, and nothing else is. */
async function check(kv, when) {
  const found = new Map();
  try {
    for await (const { key, versionstamp } of kv.list({ prefix: ["n"] }, { batchSize: 500 })) {
      const [, n, half] = key;
      found.set(n, (found.get(n) ?? "") + half);
      if (acknowledged.has(n) && acknowledged.get(n) !== versionstamp)
        faults.push(`${n} has ${versionstamp} ${when}`);
      if (!acknowledged.has(n) && !unknown.has(n))
        faults.push(`${n} was rejected, and is there ${when}`);
    }
  } catch (error) {
    faults.push(`reading failed ${when}: ${error.stack}`);
  }
  for (const n of acknowledged.keys())
    if (found.get(n) !== "ab") faults.push(`${n} is lost ${when}: ${found.get(n)}`);
  for (const [n, halves] of found)
    if (halves !== "ab") faults.push(`${n} is there by half ${when}`);
}
