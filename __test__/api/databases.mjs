// Duty: fresh databases for the tests of this folder, in memory, on a file, behind a URL that our own
// server answers, with a replica of that, on PostgreSQL and in a bucket; closed afterwards.

import { join } from "node:path";
import { after, describe } from "node:test";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { closeAll, open, startServer } from "../kit/server.mjs";

export { open };

let made;
let files = 0;

/** A folder of this test file's own. */
export function folder() {
  made ??= newFolder("api");
  return made;
}

/** A path that nobody has used. */
export function freshPath() {
  return join(folder(), `${files++}.sqlite3`);
}

/**
 * A suite that closes what it has opened. A runtime runs many files in one process, which would otherwise hold
 * thousands of threads, and as many open files as a process may have.
 */
function closing(name, suite) {
  describe(name, () => {
    after(closeAll);
    suite();
  });
}

/**
 * Whether these tests run in memory, on replicas, PostgreSQL and buckets too. What differs by runtime is above the binding,
 * and files and URLs show it. Each runtime runs some of the conformance cases on each kind.
 */
const hasAllKinds = !(globalThis.Bun || globalThis.Deno);

/** Runs `suite(fresh)` for each local kind of database; `fresh(options)` opens an empty one. */
export function onEach(name, suite) {
  const inMemory = (options) => open(":memory:", options);
  if (hasAllKinds) closing(`${name}, in memory`, () => suite(inMemory));
  closing(`${name}, on a file`, () => suite((options) => open(freshPath(), options)));
}

/** The same behind the URL of a server of its own; the suite is told that it is `elsewhere`. */
export function onServed(name, suite) {
  const fresh = async (options) => open(...(await served(options)));
  closing(`${name}, behind a URL`, () => suite(fresh, { elsewhere: true }));
}

/** In Node.js: the same through a handle with a replica, whose reads the server answers. */
export function onReplica(name, suite) {
  if (!hasAllKinds) return;
  const fresh = async (options) => {
    const [url, given] = await served(options);
    return open(url, { replica: ":memory:", ...given });
  };
  closing(`${name}, through a replica`, () => suite(fresh, { elsewhere: true }));
}

/** In Node.js: the same with reads that the replica answers. */
export function onNearReplica(name, suite) {
  if (!hasAllKinds) return;
  const fresh = async (options) => {
    const [url, given] = await served(options);
    const kv = await open(url, { replica: ":memory:", consistency: "eventual", ...given });
    await kv.replica.ready();
    return kv;
  };
  closing(`${name}, by a replica`, () => suite(fresh, { elsewhere: true }));
}

/** In Node.js: the same on PostgreSQL, directly and as the leader. */
export function onPostgres(name, suite) {
  if (!hasAllKinds) return;
  for (const [mode, more] of Object.entries({
    "on PostgreSQL": "",
    "leading on PostgreSQL": "&lead=test",
  })) {
    const fresh = async (options) => open((await sharedPostgres()).url({ more }), options);
    closing(`${name}, ${mode}`, () => suite(fresh, { onPostgres: true, withoutSearch: true }));
  }
}

/** In Node.js: the same in an object store, a folder, which has the same rules. */
export function onBucket(name, suite) {
  if (!hasAllKinds) return;
  const fresh = (options) => open(bucketUrl(`${freshPath()}.bucket`), options);
  closing(`${name}, in a bucket`, () => suite(fresh));
}

/** On each and behind a URL, for suites with calls that PostgreSQL does not offer. */
export function onEachAndServed(name, suite) {
  onEach(name, suite);
  onServed(name, suite);
}

/**
 * On each, behind a URL and, in Node.js, on PostgreSQL and in a bucket: the same assertions, only the opener differs. The
 * suite is told whether the kind lacks full-text search (`withoutSearch`).
 */
export function onEveryKind(name, suite) {
  onEachAndServed(name, suite);
  onPostgres(name, suite);
  onBucket(name, suite);
}

async function served(options) {
  const accessToken = "the-token-of-these-tests";
  const server = await startServer({ path: freshPath(), accessToken });
  return [server.url, { accessToken, ...options }];
}

/**
 * How far the time of a leader is behind that of its server: by the way of an answer. Far more than
 * that takes.
 */
export const BEHIND_MS_MAX = 10_000;

/** Until the loop turns again, no sync read is made: they have used up the turn's budget. */
export async function spendTurn(kv) {
  await kv.get(["nothing"]);
  const end = performance.now() + TURN_BUDGET_MS * 4;
  while (performance.now() < end);
}

/** The budget of crates/core/src/model/limits.rs, TURN_BUDGET_US. */
const TURN_BUDGET_MS = 0.25;

/** Every entry of a list. */
export async function all(iterator) {
  const entries = [];
  for await (const entry of iterator) entries.push(entry);
  return entries;
}
