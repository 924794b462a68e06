// Many databases in one process: how many files are opened in a second, and what an open one costs while it is idle.
//
//   node bench/many.mjs [--files 300] [--rounds 3]
//
// Each store has a process of its own for each round. A new file gets one set and one get. Threads, descriptors and memory are
// those of the process with all files open and no work for five seconds, less those of a process with one file.
// Linux only: it reads /proc.

import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";

const IDLE_MS = 5000;
const OPEN_RATIO_MIN = 2;
const EXISTING_MIN = 3000;
const BOUNDS = { threads: 0, descriptors: 4, kib: 120 };

const { values: options } = parseArgs({
  options: {
    files: { type: "string", default: "300" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    child: { type: "string" },
  },
});
const files = Number(options.files);

/** Opens a file of each store, with one set and one get, and returns what closes it. */
const STORES = {
  openkv: async () => {
    const { openKv } = await import("../index.mjs");
    return async (path, value) => {
      const kv = await openKv(path);
      if (value !== undefined) await kv.set(["a"], value);
      if ((await kv.get(["a"])).value === null) throw new Error("the value is lost");
      return () => kv.close();
    };
  },
  "better-sqlite3": () => {
    const Database = createRequire(import.meta.url)("better-sqlite3");
    return async (path, value) => {
      const database = new Database(path);
      database.pragma("journal_mode = WAL");
      database.pragma("synchronous = FULL");
      if (value !== undefined) {
        database.exec("CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID");
        database.prepare("INSERT INTO kv VALUES (?, ?)").run("a", JSON.stringify(value));
      }
      if (database.prepare("SELECT v FROM kv WHERE k = ?").get("a") === undefined)
        throw new Error("the value is lost");
      return () => database.close();
    };
  },
};

function figures() {
  const status = readFileSync("/proc/self/status", "utf8");
  return {
    threads: Number(/Threads:\s+(\d+)/.exec(status)[1]),
    descriptors: readdirSync("/proc/self/fd").length,
    kib: Number(/VmRSS:\s+(\d+)/.exec(status)[1]),
  };
}

async function child(store, folder) {
  const open = await STORES[store]();
  const closers = [await open(join(folder, "first"), 1)];
  await pause(IDLE_MS);
  globalThis.gc();
  const before = figures();
  const opened = async (value) => {
    const start = performance.now();
    const names = Array.from({ length: files }, (_, n) => join(folder, `${n}`));
    for (const name of names) closers.push(await open(name, value));
    return files / ((performance.now() - start) / 1000);
  };
  const news = await opened(1);
  await pause(IDLE_MS);
  globalThis.gc();
  const after = figures();
  const each = Object.keys(after).map((name) => [name, (after[name] - before[name]) / files]);
  for (const close of closers.splice(1)) await close();
  const existing = await opened();
  for (const close of closers) await close();
  console.log(JSON.stringify({ news, existing, ...Object.fromEntries(each) }));
}

function measure(store, folder) {
  const args = ["--expose-gc", fileURLToPath(import.meta.url), "--child", store];
  const { status, stdout } = spawnSync(
    process.execPath,
    [...args, "--files", options.files, "--dir", folder],
    { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`${store}: the process ended with ${status}`);
  return JSON.parse(stdout);
}

if (options.child !== undefined) {
  await child(options.child, options.dir);
} else {
  const rounds = { openkv: [], "better-sqlite3": [] };
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const store of Object.keys(rounds)) {
      const folder = dataDirectory(options.dir);
      if (round === 0 && store === "openkv") console.log(`Machine: ${machineLine(folder)}.`);
      rounds[store].push(measure(store, folder));
      rmSync(folder, { recursive: true, force: true });
    }
  }
  const median = (store, name) =>
    rounds[store].map((it) => it[name]).sort((a, b) => a - b)[rounds[store].length >> 1];
  const mark = (holds) => (holds ? "✓" : "✗");
  const ratio = median("openkv", "news") / median("better-sqlite3", "news");
  for (const store of Object.keys(rounds)) {
    const of = (name, digits = 0) => median(store, name).toFixed(digits);
    console.log(
      `${store}: ${of("news")} new and ${of("existing")} existing files a second; each idle file ` +
        `${of("threads", 1)} threads, ${of("descriptors", 1)} descriptors, ${of("kib")} KiB`,
    );
  }
  console.log(
    `new files, × better-sqlite3: ${ratio.toFixed(2)} (≥ ${OPEN_RATIO_MIN}) ${mark(ratio >= OPEN_RATIO_MIN)}`,
  );
  const existing = median("openkv", "existing");
  console.log(`existing files a second ≥ ${EXISTING_MIN} ${mark(existing >= EXISTING_MIN)}`);
  for (const [name, most] of Object.entries(BOUNDS))
    console.log(
      `${name} of an idle file ≤ ${most} ${mark(Math.round(median("openkv", name)) <= most)}`,
    );
}
