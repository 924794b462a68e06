// Resident memory after a million sets.
//
//   node bench/rss.mjs [--sets 1000000] [--in-flight 500]
//
// Each set writes a new key and a fresh value. Memory is read without forcing a collection.

import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { short } from "./report.mjs";

const TARGET_MB = 150;
const MB = 1e6;
const REPORTS = 10;

const { values: options } = parseArgs({
  options: {
    sets: { type: "string", default: "1000000" },
    "in-flight": { type: "string", default: "500" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const { openKv } = await import("../index.mjs");
const sets = Number(options.sets);
const inFlight = Number(options["in-flight"]);

const rssMb = () => process.memoryUsage.rss() / MB;
const directory = dataDirectory(options.dir);
const path = join(directory, "bench.sqlite3");
console.log(`Machine: ${machineLine(directory)}.`);
const before = rssMb();
const kv = await openKv(path);

let written = 0;
let peak = 0;
const start = performance.now();
for (let report = 1; report <= REPORTS; report++) {
  const until = (sets / REPORTS) * report;
  while (written < until) {
    const pending = [];
    for (let n = 0; n < inFlight && written < until; n++, written++) {
      pending.push(
        kv.set(["rows", written], { id: written, name: `row ${written}`, at: Date.now() }),
      );
    }
    await Promise.all(pending);
    peak = Math.max(peak, rssMb());
  }
  console.log(`${short(written)} sets: RSS ${rssMb().toFixed(0)} MB`);
}
const seconds = (performance.now() - start) / 1000;
const after = rssMb();
console.log(
  `RSS ${before.toFixed(0)} MB before opening, ${after.toFixed(0)} MB after ${short(sets)} sets ` +
    `(≤ ${TARGET_MB}) ${after <= TARGET_MB ? "✓" : "✗"}, peak ${peak.toFixed(0)} MB; ` +
    `${short(sets / seconds)} sets/s, file ${(statSync(path).size / MB).toFixed(0)} MB.`,
);
kv.close();
rmSync(directory, { recursive: true, force: true });
