// `node bench/reading.mjs`: count, keysOnly and where over 100,000 small entries of a file, against
// a list in the same run, and small reads of each kind, a transaction without writes among them, against plain ones. Prints
// the times and their ratios.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKv } from "../index.mjs";
import { PREFIX, expect, key } from "./data.mjs";
import { populate } from "./populate.mjs";

const ENTRIES = 100_000;
/** The first round is not counted, because it includes compilation. */
const ROUNDS = 11;
const SELECTOR = { prefix: PREFIX };
/** One in a hundred. */
const WHERE = { id: { $lt: ENTRIES / 100 } };

const folder = mkdtempSync(join(tmpdir(), "openkv-reading-"));
const kv = await openKv(join(folder, "kv.sqlite3"));
await populate(kv, ENTRIES);

async function iterate(options, keep = () => true) {
  let count = 0;
  for await (const entry of kv.list(SELECTOR, options)) if (keep(entry)) count += 1;
  return count;
}

const workloads = {
  list: [() => iterate({}), ENTRIES],
  count: [() => kv.count(SELECTOR), ENTRIES],
  keysOnly: [() => iterate({ keysOnly: true }), ENTRIES],
  filter: [() => iterate({}, ({ value }) => value.id < ENTRIES / 100), ENTRIES / 100],
  where: [() => iterate({ where: WHERE }), ENTRIES / 100],
};

/** Reads of a few entries, one at a time, so many in a round. */
const SMALL = 2000;
const FEW = 20;
const few = { start: key(100), end: key(100 + FEW) };
const repeated = (read) => async () => {
  let sum = 0;
  for (let n = 0; n < SMALL; n++) sum += await read();
  return sum / SMALL;
};
const listed = (options) => async () => (await kv.list(few, options).toArray()).length;
const got = (options) => async () => ((await kv.get(few.start, options)).value === null ? 0 : 1);
Object.assign(workloads, {
  get: [repeated(got()), 1],
  "get with its expiry": [repeated(got({ withExpiry: true })), 1],
  "transaction of a get": [
    repeated(async () => (await kv.transaction((tx) => tx.get(few.start))).value.key.length),
    few.start.length,
  ],
  [`list of ${FEW}`]: [repeated(listed()), FEW],
  [`keys of ${FEW}`]: [repeated(listed({ keysOnly: true })), FEW],
  [`expiries of ${FEW}`]: [repeated(listed({ withExpiry: true })), FEW],
  [`count of ${FEW}`]: [repeated(() => kv.count(few)), FEW],
});

const times = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, [run, expected]] of Object.entries(workloads)) {
    const start = performance.now();
    expect((await run()) === expected, name);
    if (round > 0) (times[name] ??= []).push(performance.now() - start);
  }
}
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const ms = Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
const line = (name, base, target) =>
  console.log(
    `${name}: ${ms[name].toFixed(1)} ms, ${base}: ${ms[base].toFixed(1)} ms, ` +
      `ratio ${(ms[base] / ms[name]).toFixed(2)} (to reach: ${target})`,
  );
line("count", "list", 5);
line("keysOnly", "list", 2);
line("where", "filter", 3);
const small = (name, base) => {
  const us = (of) => (ms[of] * 1000) / SMALL;
  const ratio = (us(base) / us(name)).toFixed(2);
  console.log(
    `${name}: ${us(name).toFixed(1)} µs, ${base}: ${us(base).toFixed(1)} µs, ratio ${ratio}`,
  );
};
small("get with its expiry", "get");
small("transaction of a get", "get");
for (const what of ["keys", "expiries", "count"]) small(`${what} of ${FEW}`, `list of ${FEW}`);
kv.close();
rmSync(folder, { recursive: true });
