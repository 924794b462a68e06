// `node bench/reading.mjs`: count, keysOnly and where over 100,000 small entries of a file, against
// a list in the same run. Prints the rates and their ratios.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKv } from "../index.mjs";
import { PREFIX, expect } from "./data.mjs";
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
kv.close();
rmSync(folder, { recursive: true });
