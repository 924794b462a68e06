// Measures how maintenance of a large file affects others: a second process writes every few
// milliseconds and handles messages, while this one makes a backup, checks, searches and vacuums.
//
//   node bench/large-file.mjs [--gb 10] [--folder DIR]
//
// Prints for each operation its duration, the longest and the 99th percentile of the other process'
// writes, the largest write-ahead log, and the number of messages with two handlers at once. Needs
// disk space for three times the size. Not part of `npm run bench`, because ten gigabytes take
// long.

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";

const VALUE_BYTES = 60_000;
const TEXTS = 50_000;
const WORDS = 20;
const WRITE_EVERY_MS = 5;
const LOOK_EVERY_MS = 50;
/** Longer than the default wait of writes, because this wait is measured. */
const BUSY_MS = 600_000;
const LOCK_MS = 5000;
const BATCH = 200;

if (process.send === undefined) await measure();
else await beside(process.argv[2]);

async function measure() {
  const { values } = parseArgs({
    options: {
      gb: { type: "string", default: "10" },
      folder: { type: "string", default: tmpdir() },
    },
  });
  const folder = mkdtempSync(join(values.folder, "openkv-large-"));
  process.on("SIGINT", () => process.exit(130));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "kv.sqlite3");
  const kv = await openKv(path, { busyTimeout: BUSY_MS });
  await fill(kv, Number(values.gb) * 1e9);
  await kv.checkpoint();
  console.log(`${(statSync(path).size / 1e9).toFixed(2)} GB`);
  for (const [name, work] of [
    ["nothing", () => sleep(5000)],
    ["backup", () => kv.backup(join(folder, "copy.sqlite3"))],
    ["check", () => kv.check()],
    ["search", () => search(kv)],
    ["vacuum", () => kv.vacuum()],
  ]) {
    console.log(name.padEnd(8), await during(path, work));
  }
  await kv.close();
  process.exit();
}

async function fill(kv, bytes) {
  await kv.createIndex({ prefix: ["text"], fields: ["text"] });
  const word = () => `w${Math.floor(Math.random() ** 3 * 20_000)}`;
  for (let n = 0; n < TEXTS; n += BATCH) {
    const texts = Array.from({ length: BATCH }, (_, at) => [
      n + at,
      Array.from({ length: WORDS }, word),
    ]);
    await Promise.all(
      texts.map(([key, words]) => kv.set(["text", key], { text: words.join(" ") })),
    );
  }
  const values = Math.ceil(bytes / VALUE_BYTES);
  for (let n = 0; n < values; n += BATCH) {
    const value = new Uint8Array(VALUE_BYTES).fill(n & 255);
    const keys = Array.from({ length: Math.min(BATCH, values - n) }, (_, at) => n + at);
    await Promise.all(keys.map((key) => kv.set(["bytes", key], value)));
    if (process.stderr.isTTY) process.stderr.write(`\r${n} of ${values} values`);
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
}

async function search(kv) {
  for (let n = 0; n < 200; n++) await kv.search(["text"], `w${n}* OR w${n + 1}*`, { limit: 10 });
}

/** Runs `work` beside the other process and returns the other's measurements. */
async function during(path, work) {
  const other = fork(fileURLToPath(import.meta.url), [path]);
  await once(other, "message");
  let wal = 0;
  const look = setInterval(() => {
    wal = Math.max(wal, statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  }, LOOK_EVERY_MS);
  const begun = performance.now();
  await work();
  const seconds = (performance.now() - begun) / 1000;
  clearInterval(look);
  other.send("stop");
  const [seen] = await once(other, "message");
  await once(other, "exit");
  return { seconds: Number(seconds.toFixed(1)), walMB: Number((wal / 1e6).toFixed(1)), ...seen };
}

/** The other process: writes and handles messages until told to stop. */
async function beside(path) {
  const kv = await openKv(path, { busyTimeout: BUSY_MS });
  const queue = kv.queue("beside");
  const held = new Set();
  let [stopped, twice, handled] = [false, 0, 0];
  const stop = new AbortController();
  process.on("message", () => (stopped = true));
  const listening = queue.listen(
    async (id) => {
      if (held.has(id)) twice++;
      held.add(id);
      await sleep(LOCK_MS / 2);
      held.delete(id);
      handled++;
    },
    { concurrency: 100, lockDuration: LOCK_MS, signal: stop.signal },
  );
  await kv.set(["beside"], 0);
  process.send("ready");
  const times = [];
  for (let n = 0; !stopped; n++) {
    const begun = performance.now();
    await kv.set(["beside"], n);
    times.push(performance.now() - begun);
    if (n % 20 === 0) await queue.enqueue(n);
    await sleep(WRITE_EVERY_MS);
  }
  stop.abort();
  await listening;
  times.sort((a, b) => a - b);
  const ms = (share) => Number((times[Math.ceil(times.length * share) - 1] ?? 0).toFixed(1));
  process.send({ writes: times.length, p99Ms: ms(0.99), longestMs: ms(1), handled, twice });
  await kv.close();
  process.disconnect();
}
