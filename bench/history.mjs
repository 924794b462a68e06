// Duty: measures what the replication log and the history cost, in one run:
//
// - 500 sets in flight, without a log, with a log, with an archive, and with a history; each on a fresh database;
// - a get of a moment of the past against a get of the present, on the same database.
//
//   node bench/history.mjs [--postgres] [--trials 5] [--seconds 1.5] [--changes 1000000] [--dir DIRECTORY] [--json FILE]
//
// With --postgres the databases are on a server of PostgreSQL that it starts, with fsync.
// The ways alternate, each round begins with another one, and a ratio is that of the medians.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { startPostgres } from "../__test__/kit/postgres.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median, rate } from "./measure.mjs";

const { values } = parseArgs({
  options: {
    trials: { type: "string", default: "5" },
    seconds: { type: "string", default: "1.5" },
    changes: { type: "string", default: "1000000" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    json: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
});
const trials = Number(values.trials);
const changes = Number(values.changes);
const window = { warmMs: Number(values.seconds) * 300, ms: Number(values.seconds) * 1000 };

const KEYS = 10_000;
const IN_FLIGHT = 500;
/** A step that visits all keys, far apart. */
const STRIDE = 7919;

/** The ratios to reach. */
const TARGETS = { log: 0.85, archive: 0.85, history: 0.7, at: 0.3 };

const keyOf = (n) => ["user", (n * STRIDE) % KEYS];
const valueOf = (n) => ({
  id: n,
  name: `user ${n}`,
  mail: `user${n}@example.com`,
  tags: [n],
  on: true,
});

/** Sets `count` keys, from the `from`th on, 500 in flight. */
async function fill(kv, from, count) {
  for (let n = from; n < from + count; n += IN_FLIGHT) {
    const last = Math.min(n + IN_FLIGHT, from + count);
    await Promise.all(
      Array.from({ length: last - n }, (_, i) => kv.set(keyOf(n + i), valueOf(n + i))),
    );
  }
}

/** The rate of sets. */
async function sets(path, { archived = false, ...options }, name) {
  const kv = await openKv(path, options);
  await fill(kv, 0, KEYS);
  if (archived) await kv.archive({ to: join(directory, `${name}-archive`) });
  let next = KEYS;
  const result = await rate(window, async () => {
    await fill(kv, next, IN_FLIGHT);
    next += IN_FLIGHT;
    return IN_FLIGHT;
  });
  await kv.close();
  return result;
}

/** The rate of gets, one at a time. `isRight` checks each value against the number of its get. */
async function gets(kv, isRight) {
  let next = 0;
  return await rate(window, async () => {
    for (let i = 0; i < 100; i++, next++) {
      const entry = await kv.get(keyOf(next));
      if (!isRight(entry.value, next)) throw new Error(`a wrong value of ${entry.key}`);
    }
    return 100;
  });
}

/** The results of ways that alternate, by name. */
async function alternate(ways) {
  const rates = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  const names = Object.keys(ways);
  for (let trial = 0; trial < trials; trial++) {
    for (let at = 0; at < names.length; at++) {
      const name = names[(trial + at) % names.length];
      rates[name].push(await ways[name](trial));
    }
  }
  return rates;
}

const directory = dataDirectory(values.dir);
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
console.log(machineLine(directory));

const server = values.postgres ? await startPostgres({ settings: { fsync: "on" } }) : undefined;

/** Where a database with a name is. */
function placeOf(name) {
  return server === undefined ? join(directory, `${name}.sqlite3`) : server.url({ kv: name });
}

const ways = {
  off: {},
  log: { log: true },
  archive: { archived: true },
  history: { history: "7d" },
};
const written = await alternate(
  Object.fromEntries(
    Object.entries(ways).map(([name, options]) => [
      name,
      (trial) => sets(placeOf(`${name}-${trial}`), options, `${name}-${trial}`),
    ]),
  ),
);

const kv = await openKv(placeOf("past"), { history: "7d", durability: "normal" });
await fill(kv, 0, KEYS);
const { versionstamp } = await kv.set(["moment"], 0);
await fill(kv, KEYS, changes);
const then = await kv.at(versionstamp);
const read = await alternate({
  now: () => gets(kv, (value, n) => value.id % KEYS === n % KEYS),
  at: () => gets(then, (value, n) => value.id === n % KEYS),
});
await then.close();
await kv.close();
server?.close();

const medianOf = (results, part) => median(results.map((result) => result[part]));

function shown(results) {
  const rates = results.map(({ value }) => Math.round(value));
  const cpu = medianOf(results, "cpuMicroseconds").toFixed(1);
  const middle = Math.round(medianOf(results, "value"));
  return `${middle}/s (${Math.min(...rates)} to ${Math.max(...rates)}; ${cpu} µs of processor time each)`;
}

const ratios = {};
for (const [name, words, ours, other] of [
  ["log", "500 sets in flight with a log", written.log, written.off],
  ["archive", "500 sets in flight with a log and an archive", written.archive, written.off],
  ["history", "500 sets in flight with a history", written.history, written.off],
  ["at", `get, ${changes} changes back`, read.at, read.now],
]) {
  ratios[name] = medianOf(ours, "value") / medianOf(other, "value");
  const cpu = medianOf(other, "cpuMicroseconds") / medianOf(ours, "cpuMicroseconds");
  const verdict = ratios[name] >= TARGETS[name] ? "reached" : "missed";
  console.log(`${words}: ${shown(ours)}`);
  console.log(`  without: ${shown(other)}`);
  console.log(
    `  ratio ${ratios[name].toFixed(2)} (target ${TARGETS[name]}: ${verdict}), by processor time ${cpu.toFixed(2)}`,
  );
}
if (values.json) writeFileSync(values.json, JSON.stringify({ written, read, ratios }, null, 1));
