// `node bench/indexes.mjs`: value indexes: a find beside a get and beside better-sqlite3 with a column and an index; finds
// and pages as the database grows; writes under two indexes beside those without and those of indexes by hand; and the
// building of an index beside sets. On a file whose commits are synced.
//
// Arguments: --quick (a tenth of the entries, shorter), --ten-million (also as many entries), --trials N (default 5),
// --seconds S of each trial (default 1), --dir DIRECTORY (default: bench/.data), --cache-size BYTES of each file.

import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median, quantile, rate, rateSync } from "./measure.mjs";
import { short } from "./report.mjs";
import { record } from "./values.mjs";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    "ten-million": { type: "boolean", default: false },
    trials: { type: "string" },
    seconds: { type: "string" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    "cache-size": { type: "string" },
  },
});
const { quick } = options;
const trials = Number(options.trials ?? (quick ? 3 : 5));
const ms = Number(options.seconds ?? (quick ? 0.3 : 1)) * 1000;
const window = { warmMs: ms / 3, ms };
/** The entries of the comparisons, of the growing database, and of the build. */
const POPULATION = 10_000;
const SIZES = quick ? [10_000, 100_000] : [10_000, 100_000, 1_000_000];
if (options["ten-million"]) SIZES.push(10_000_000);
const BUILT = quick ? 100_000 : 1_000_000;
const IN_FLIGHT = 500;
const PAGE = 20;
const SAMPLES = quick ? 500 : 3000;
const ROUND = 20;
/** Prime to every size, so that it visits each entry once before any twice. */
const STEP = 6_180_341;
const FILL_BATCH = 1000;

const USERS = { prefix: ["users"] };
const BY_EMAIL = { type: "value", ...USERS, on: "email", unique: true };
const BY_TIME = { type: "value", ...USERS, on: "at" };

/** A user of the realistic records: an id, a name, an e-mail address, tags and a date, of which two are indexed. */
const user = (i) => record(4 * i);
const key = (i) => ["users", i];

const directory = dataDirectory(options.dir);
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const newPath = () => join(directory, `${files++}.sqlite3`);
const cacheSize = options["cache-size"] === undefined ? undefined : Number(options["cache-size"]);

async function filled(count, indexes) {
  const kv = await openKv(newPath(), { cacheSize });
  for (const index of indexes) await (await kv.createIndex(index)).ready();
  for (let from = 0; from < count; from += FILL_BATCH) {
    const operation = kv.atomic();
    for (let i = from; i < Math.min(from + FILL_BATCH, count); i++) operation.set(key(i), user(i));
    await operation.commit();
  }
  return kv;
}

function scattered(count) {
  let at = 0;
  return () => (at = (at + STEP) % count);
}

const check = (found, i) => {
  if (found?.id !== 4 * i) throw new Error(`wrong answer for entry ${i}`);
};
const find = async (kv, i, email = user(i).email) => {
  const list = kv.list(USERS, { where: { email }, limit: 1 });
  check((await list.toArray())[0]?.value, i);
};
const get = async (kv, i) => check((await kv.get(key(i))).value, i);
const page = async (kv, i) => {
  const where = { at: { $gte: user(i).at } };
  const list = await kv.list(USERS, { where, orderBy: "at", limit: PAGE }).toArray();
  check(list[0]?.value, i);
};

/** One at a time. */
const sequential = (call, next) => async () => {
  for (let n = 0; n < ROUND; n++) await call(next());
  return ROUND;
};

/** `[["name", trial]]`: trials of all in turns, so that other load falls on all alike; the median rate of each. */
async function inTurns(all) {
  const rates = all.map(() => []);
  for (let trial = 0; trial < trials; trial++) {
    for (const [at, run] of all.entries()) rates[at].push((await run()).value);
  }
  return rates.map(median);
}

const rows = [];
const say = (what, figure, bound) => {
  rows.push([what, figure, bound]);
  process.stderr.write(`${what}: ${figure}\n`);
};
const times = (ratio) => `${ratio.toFixed(2)} ×`;

/** better-sqlite3 with a column and an index; null if it is not installed. */
function openSqlite() {
  let Database;
  try {
    Database = createRequire(import.meta.url)("better-sqlite3");
  } catch {
    return null;
  }
  const db = new Database(newPath());
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma("cache_size = -16000");
  db.exec("CREATE TABLE users (k TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, v BLOB NOT NULL)");
  const put = db.prepare("INSERT INTO users VALUES (?, ?, ?)");
  db.transaction(() => {
    for (let i = 0; i < POPULATION; i++) put.run(`users/${i}`, user(i).email, serialize(user(i)));
  })();
  const one = db.prepare("SELECT v FROM users WHERE email = ?").pluck();
  return { find: (i, email) => check(deserialize(one.get(email)), i), close: () => db.close() };
}

async function compareFinds() {
  const kv = await filled(POPULATION, [BY_TIME]);
  const users = kv.collection(USERS.prefix, {
    schema: (value) => value,
    id: "id",
    indexes: { email: { unique: true } },
  });
  await users.ready();
  const sqlite = openSqlite();
  const next = scattered(POPULATION);
  // Made before: a get has no such work.
  const emails = Array.from({ length: POPULATION }, (_, i) => user(i).email);
  const runs = [
    () =>
      rate(
        window,
        sequential((i) => get(kv, i), next),
      ),
    () =>
      rate(
        window,
        sequential(async (i) => check((await users.find({ email: emails[i] }))?.value, i), next),
      ),
    () =>
      rate(
        window,
        sequential((i) => find(kv, i, emails[i]), next),
      ),
  ];
  if (sqlite !== null) {
    runs.push(() =>
      rateSync(window, () => {
        for (let n = 0; n < ROUND; n++) {
          const i = next();
          sqlite.find(i, emails[i]);
        }
        return ROUND;
      }),
    );
  }
  const [gets, finds, lists, peers] = await inTurns(runs);
  say("finds of a collection by a unique index", `${short(finds)}/s`, "");
  say("against gets of the key", times(finds / gets), "≥ 0.4 ×");
  say("lists of one entry by that index, against gets", times(lists / gets), "");
  const against = "against better-sqlite3 with a column and an index";
  say(against, sqlite === null ? "not installed" : times(finds / peers), "≥ 2 ×");
  sqlite?.close();
  await kv.close();
}

async function p50(call, count) {
  const next = scattered(count);
  const took = [];
  for (let n = 0; n < SAMPLES; n++) {
    const i = next() % (count - PAGE);
    const begun = performance.now();
    await call(i);
    took.push((performance.now() - begun) * 1000);
  }
  return median(took);
}

/** All databases are there at once, and are measured in turns. */
async function compareSizes() {
  const all = [];
  for (const count of SIZES) all.push([count, await filled(count, [BY_EMAIL, BY_TIME])]);
  for (const [name, call] of [
    ["find", find],
    [`page of ${PAGE} by range`, page],
  ]) {
    const found = all.map(() => []);
    for (let trial = 0; trial < trials; trial++) {
      for (const [at, [count, kv]] of all.entries()) {
        found[at].push(await p50((i) => call(kv, i), count));
      }
    }
    const medians = found.map(median);
    const listed = medians.map((us, at) => `${short(SIZES[at])}: ${Math.round(us)} µs`).join(", ");
    say(`p50 of a ${name}, ${listed}`, times(Math.max(...medians) / medians[0]), "≤ 2 ×");
  }
  for (const [, kv] of all) await kv.close();
}

let written = 10_000_000;

async function compareWrites() {
  const [plain, indexed] = [
    await filled(POPULATION, []),
    await filled(POPULATION, [BY_EMAIL, BY_TIME]),
  ];
  const next = scattered(POPULATION);
  const hand = await byHand();
  const inFlight = (write) => async () => {
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => write(next(), user(written++))));
    return IN_FLIGHT;
  };
  const runs = [
    (i, value) => plain.set(key(i), value),
    (i, value) => indexed.set(key(i), value),
    hand.set,
  ].map((write) => () => rate(window, inFlight(write)));
  const [none, two, own] = await inTurns(runs);
  say(`${IN_FLIGHT} sets in flight with two indexes`, `${short(two)}/s`, "");
  say("against none", times(two / none), "≥ 0.45 ×");
  say("against two indexes by hand with atomic()", times(two / own), "≥ 1.5 ×");
  for (const kv of [plain, indexed, hand.kv]) await kv.close();
}

/** Indexes as a program keeps them that has none: the entries of the old value go in the commit of the new one. */
async function byHand() {
  const kv = await openKv(newPath());
  const email = (value) => ["users by email", value.email];
  const at = (i, value) => ["users by time", value.at.getTime(), i];
  const set = async (i, value) => {
    for (;;) {
      const old = await kv.get(key(i));
      const operation = kv.atomic().check(old);
      if (old.value !== null) operation.delete(email(old.value)).delete(at(i, old.value));
      operation.check({ key: email(value), versionstamp: null });
      operation.set(key(i), value).set(email(value), i).set(at(i, value), i);
      if ((await operation.commit()).ok) return;
    }
  };
  for (let from = 0; from < POPULATION; from += IN_FLIGHT) {
    await Promise.all(Array.from({ length: IN_FLIGHT }, (_, n) => set(from + n, user(from + n))));
  }
  return { kv, set };
}

async function build() {
  const kv = await filled(BUILT, []);
  const begun = performance.now();
  const ready = (await kv.createIndex(BY_EMAIL)).ready();
  let isReady = false;
  const ended = ready.then(() => {
    isReady = true;
    return performance.now() - begun;
  });
  const took = [];
  for (let n = 0; !isReady; n++) {
    const at = performance.now();
    await kv.set(["beside", n % 1000], user(n));
    took.push(performance.now() - at);
  }
  say(
    `building over ${short(BUILT)} entries`,
    `${((await ended) / 1000).toFixed(1)} s`,
    "≤ 8 s a million",
  );
  say("a set beside it, p99", `${quantile(took, 0.99).toFixed(1)} ms`, "≤ 20 ms");
  await kv.close();
}

console.log(`Machine: ${machineLine(directory)}.\n`);
await compareFinds();
await compareWrites();
await compareSizes();
await build();
console.log("| what | measured | bound |\n| --- | --- | --- |");
for (const row of rows) console.log(`| ${row.join(" | ")} |`);
