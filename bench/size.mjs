// Measures the cost of a get and a set as the database grows: 10 thousand, a million and (with a
// flag) 10 million keys.
//
//   node bench/size.mjs [--ten-million] [--sizes 10000,1000000] [--seconds 3]
//                       [--cache-size BYTES] [--mmap-size BYTES]
//
// Keys are read and overwritten in a scattered order over the whole database. The output includes
// the sizes that explain the rates: SQLite's page cache is fixed, so a larger file is read through
// the system's page cache, and a scattered batch of sets changes about one page per set.

import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { rate } from "./measure.mjs";
import { short } from "./report.mjs";

const MB = 1e6;
/** Steps through the keys in a scattered order; prime, so that it visits each before any twice. */
const STEP = 6_180_341;
const FILL_BATCH = 1000;
const SETS_IN_FLIGHT = 500;
const ROUND = 20;

const { values: options } = parseArgs({
  options: {
    "ten-million": { type: "boolean", default: false },
    sizes: { type: "string", default: "10000,1000000" },
    seconds: { type: "string", default: "3" },
    "cache-size": { type: "string" },
    "mmap-size": { type: "string" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const numberOf = (text) => (text === undefined ? undefined : Number(text));
const memory = {
  cacheSize: numberOf(options["cache-size"]),
  mmapSize: numberOf(options["mmap-size"]),
};
const { openKv } = await import("../index.mjs");
const sizes = options.sizes.split(",").map(Number);
if (options["ten-million"]) sizes.push(10_000_000);
const window = { warmMs: 500, ms: Number(options.seconds) * 1000 };

let written = 0;
const key = (i) => ["users", i];
const value = (i) => ({ id: i, name: `User ${i}`, email: `user${i}@example.com`, seen: ++written });
const note = (text) => process.stderr.isTTY && process.stderr.write(`\r\x1b[2K${text}`);

/** Memory of the system's page cache in use, in MB; undefined where /proc is missing. */
function systemCacheMb() {
  if (!existsSync("/proc/meminfo")) return undefined;
  const found = /^Cached:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"));
  return found ? Math.round((Number(found[1]) * 1024) / MB) : undefined;
}

const sizeMb = (path) => (existsSync(path) ? statSync(path).size / MB : 0).toFixed(1);

/** One size: fill, then measure gets, single sets and sets in flight. */
async function measure(count) {
  const directory = dataDirectory(options.dir);
  const path = join(directory, "bench.sqlite3");
  const kv = await openKv(path, memory);
  for (let from = 0; from < count; from += FILL_BATCH) {
    const operation = kv.atomic();
    for (let i = from; i < Math.min(from + FILL_BATCH, count); i++) operation.set(key(i), value(i));
    await operation.commit();
    if (from % 100_000 === 0) note(`filling ${short(from || 1)} of ${short(count)}`);
  }
  note("");
  let at = 0;
  const next = () => (at = (at + STEP) % count);

  const get = await rate(window, async () => {
    for (let n = 0; n < ROUND; n++) {
      const i = next();
      const entry = await kv.get(key(i));
      if (entry.value?.id !== i) throw new Error(`wrong answer for key ${i}`);
    }
    return ROUND;
  });
  const set = await rate(window, async () => {
    for (let n = 0; n < ROUND; n++) {
      const i = next();
      await kv.set(key(i), value(i));
    }
    return ROUND;
  });
  const setMany = await rate(window, async () => {
    const pending = [];
    for (let n = 0; n < SETS_IN_FLIGHT; n++) {
      const i = next();
      pending.push(kv.set(key(i), value(i)));
    }
    await Promise.all(pending);
    return SETS_IN_FLIGHT;
  });
  const row = {
    count,
    get: get.value,
    set: set.value,
    setMany: setMany.value,
    fileMb: sizeMb(path),
    walMb: sizeMb(`${path}-wal`),
    cachedMb: systemCacheMb(),
  };
  kv.close();
  rmSync(directory, { recursive: true, force: true });
  return row;
}

const probe = dataDirectory(options.dir);
console.log(`Machine: ${machineLine(probe)}.\n`);
const rows = [];
for (const count of sizes) rows.push(await measure(count));

const heads = [
  "keys",
  "get/s",
  "set/s",
  "500 sets in flight/s",
  "file MB",
  "WAL MB",
  "system page cache MB",
];
console.log(`| ${heads.join(" | ")} |\n|${" --- |".repeat(heads.length)}`);
for (const row of rows) {
  const relative = (name) => `${short(row[name])} (${(row[name] / rows[0][name]).toFixed(2)}×)`;
  const cells = [
    short(row.count),
    relative("get"),
    relative("set"),
    relative("setMany"),
    row.fileMb,
    row.walMb,
    row.cachedMb ?? "?",
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
