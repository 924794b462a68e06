// Measures the delay of the event loop while it reads cold pages and a writer commits without a
// pause.
//
//   node bench/loop-delay.mjs [--mb 160] [--seconds 10] [--writer self|process|alone|none] [--gets 50] [--lane auto|thread]
//
// The database is ten times the 16 MB page cache. Each turn of the loop calls 50 gets of scattered
// keys and awaits them. With `--writer alone` one caller writes, each write after the other, and nothing is read: the
// case for commits on the JavaScript thread (`--lane auto`). The delay is what `perf_hooks` records, less the timer's own interval.

import { spawn } from "node:child_process";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { short } from "./report.mjs";

/** Milliseconds between two samples; the histogram's values include it. */
const RESOLUTION_MS = 1;
const TARGET_P99_MS = 5;
/** Of commits on the JavaScript thread, which is what makes it the default. */
const TARGET_ALONE_P99_MS = 2;
const MB = 1e6;
/** Bytes of filler in a value: 1,000 bytes a row is a common size and fills a file quickly. */
const FILLER_BYTES = 900;
const BATCH = 500;
/** Written keys, and how many writes are in flight. */
const WRITTEN_KEYS = 1000;
const WRITES_IN_FLIGHT = 16;

const { values: options } = parseArgs({
  options: {
    mb: { type: "string", default: "160" },
    seconds: { type: "string", default: "10" },
    writer: { type: "string", default: "self" },
    gets: { type: "string", default: "50" },
    lane: { type: "string", default: "auto" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    "write-to": { type: "string" },
  },
});
const { openKv } = await import("../index.mjs");

const key = (i) => ["rows", i];
const filler = Buffer.alloc(FILLER_BYTES, "x").toString("latin1");
const value = (i, n) => ({ id: i, n, filler });

/** Commits without end; returns the number of commits so far. */
function writeAlways(kv, inFlight = WRITES_IN_FLIGHT) {
  let written = 0;
  const loop = async () => {
    for (;;) {
      written += 1;
      await kv.set(key(written % WRITTEN_KEYS), value(written % WRITTEN_KEYS, written));
    }
  };
  for (let n = 0; n < inFlight; n++) loop().catch(() => {});
  return () => written;
}

if (options["write-to"]) {
  // The writer process of `--writer process`; its parent kills it.
  writeAlways(await openKv(options["write-to"]));
  setInterval(() => {}, 1000);
} else {
  await main();
}

async function main() {
  const directory = dataDirectory(options.dir);
  const path = join(directory, "bench.sqlite3");
  const kv = await openKv(path, { lane: options.lane });
  let rows = 0;
  do {
    const pending = [];
    for (let n = 0; n < BATCH; n++, rows++) pending.push(kv.set(key(rows), value(rows, 0)));
    await Promise.all(pending);
  } while (statSync(path).size < Number(options.mb) * MB);

  let writer;
  let written = () => 0;
  if (options.writer === "self") written = writeAlways(kv);
  const isAlone = options.writer === "alone";
  if (isAlone) written = writeAlways(kv, 1);
  if (options.writer === "process") {
    const script = fileURLToPath(import.meta.url);
    writer = spawn(process.execPath, [script, "--write-to", path], { stdio: "inherit" });
  }

  const perTurn = isAlone ? 0 : Number(options.gets);
  const endsAt = performance.now() + Number(options.seconds) * 1000;
  let gets = 0;
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  while (performance.now() < endsAt) {
    const pending = [];
    for (let n = 0; n < perTurn; n++) {
      pending.push(kv.get(key(Math.floor(Math.random() * rows))));
    }
    for (const entry of await Promise.all(pending)) {
      if (entry.value === null) throw new Error(`a row is missing: ${entry.key}`);
    }
    gets += perTurn;
    await turn();
  }
  delay.disable();
  writer?.kill();

  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  const p99 = ms(delay.percentile(99));
  const seconds = Number(options.seconds);
  const target = isAlone ? TARGET_ALONE_P99_MS : TARGET_P99_MS;
  console.log(`Machine: ${machineLine(directory)}.`);
  console.log(
    `Database ${(statSync(path).size / MB).toFixed(0)} MB, ${rows} rows; ${perTurn} gets a turn, ` +
      `writer: ${options.writer}, lane ${options.lane}; ${short(gets / seconds)} gets/s` +
      (options.writer === "self" || isAlone
        ? ` beside ${short(written() / seconds)} sets/s.`
        : "."),
  );
  console.log(
    `Event-loop delay: p50 ${ms(delay.percentile(50)).toFixed(2)} ms, p99 ${p99.toFixed(2)} ms ` +
      `(≤ ${target}) ${p99 <= target ? "✓" : "✗"}, p99.9 ` +
      `${ms(delay.percentile(99.9)).toFixed(2)} ms, max ${ms(delay.max).toFixed(2)} ms.`,
  );
  kv.close();
  rmSync(directory, { recursive: true, force: true });
  process.exit(0);
}
