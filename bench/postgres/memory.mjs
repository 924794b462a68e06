// Resident memory of a process with databases on PostgreSQL.
//
//   node bench/postgres/memory.mjs [--sets 1000000] [--in-flight 500] [--databases 100]
//
// The sets are made twice, so that memory which grows with them is seen. Each writes a new key. Memory
// is read without forcing a collection; for the idle databases once they have been polled for a while.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openKv } from "../../index.mjs";
import { startPostgres } from "../../__test__/kit/postgres.mjs";
import { short } from "../report.mjs";

const TARGET_MIB = 300;
const IDLE_TARGET_KIB = 128;
const KIB = 1024;
const MIB = KIB * KIB;
const REPORTS = 4;
const SETTLE_MS = 3000;

const { values: options } = parseArgs({
  options: {
    sets: { type: "string", default: "1000000" },
    "in-flight": { type: "string", default: "500" },
    databases: { type: "string", default: "100" },
  },
});
const sets = Number(options.sets);
const inFlight = Number(options["in-flight"]);
const databases = Number(options.databases);

const server = await startPostgres();
try {
  await idle();
  await million();
} finally {
  server.close();
}

async function idle() {
  // The first one brings the connections, the threads and the code that all share.
  const handles = [await openKv(server.url())];
  await sleep(SETTLE_MS);
  const before = process.memoryUsage.rss();
  while (handles.length <= databases) handles.push(await openKv(server.url()));
  await sleep(SETTLE_MS);
  const each = (process.memoryUsage.rss() - before) / databases / KIB;
  console.log(`${databases} idle databases: ${each.toFixed(0)} KiB each (≤ ${IDLE_TARGET_KIB})`);
  for (const handle of handles) await handle.close();
}

async function million() {
  const kv = await openKv(server.url());
  const peaks = [0, 0];
  let written = 0;
  for (let report = 1; report <= 2 * REPORTS; report++) {
    const end = (sets / REPORTS) * report;
    while (written < end) {
      const pending = [];
      for (let n = 0; n < inFlight && written < end; n++, written++) {
        pending.push(kv.set(["rows", written], { id: written, name: `row ${written}` }));
      }
      await Promise.all(pending);
      const half = written <= sets ? 0 : 1;
      peaks[half] = Math.max(peaks[half], process.memoryUsage.rss() / MIB);
    }
    const rss = process.memoryUsage.rss() / MIB;
    console.log(`${short(written)} sets: RSS ${rss.toFixed(0)} MiB`);
  }
  const [first, second] = peaks.map((peak) => peak.toFixed(0));
  console.log(
    `peak of the first ${short(sets)} sets ${first} MiB (≤ ${TARGET_MIB}), of the second ${second} MiB`,
  );
  await kv.close();
}
