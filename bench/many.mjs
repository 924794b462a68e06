// Many databases in one process: how many files are opened in a second, and what an open one costs while it is idle.
//
//   node bench/many.mjs [--files 300] [--rounds 3] [--pooled 10000 [--remote]] [--served 99900]
//
// With --pooled also calls on so many files of openkv of which 100 are open: each operation, a set and then a get, is on one of
// 100 active files, by a Zipf law, and after every 200 operations another file takes the place of an active one. They are compared
// with the same operations on 100 files. A parked file is one that was not used for long. With --remote the files are databases of a
// server, which keeps 100 of them open, and the calls go to its URL.
//
// With --served also a server on a folder of so many databases: its start, the first request, the list of all, and what it costs to
// create and drop one. The registry is as the server writes it. The files are links of a few, but for those that are used.
//
// Each store has a process of its own for each round. A new file gets one set and one get. Threads, descriptors and memory are
// those of the process with all files open and no work for five seconds, less those of a process with one file.
// Linux only: it reads /proc.

import { spawnSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { copyFileSync, linkSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
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
const POOLED = { open: 100, operations: 5000, exchanged: 200, parked: 300 };
const POOLED_P99_MAX = 2;
const SERVED = { changes: 20, linksMax: 10_000, startMsMax: 1000 };
const ADMIN = "admin-token-of-the-measured-server";

const { values: options } = parseArgs({
  options: {
    files: { type: "string", default: "300" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    child: { type: "string" },
    pooled: { type: "string", default: "0" },
    remote: { type: "boolean", default: false },
    served: { type: "string", default: "0" },
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

/** The place of an active file, by a Zipf law. */
const zipf = (() => {
  const sums = [];
  for (let n = 1; n <= POOLED.open; n++) sums.push((sums.at(-1) ?? 0) + 1 / n);
  return () => {
    const at = Math.random() * sums.at(-1);
    return sums.findIndex((sum) => at < sum);
  };
})();

const quantile = (times, part) => times.sort((a, b) => a - b)[Math.floor(times.length * part)];

/** Milliseconds of the operations on the active ones of these handles: of each set, and of each get. */
async function operations(handles) {
  const times = { set: [], get: [] };
  const active = handles.slice(0, POOLED.open);
  for (let n = 0; n < POOLED.operations; n++) {
    if (n % POOLED.exchanged === 0) {
      active[n % POOLED.open] = handles[Math.floor(Math.random() * handles.length)];
    }
    const kv = active[zipf()];
    const start = performance.now();
    await kv.set(["a"], n);
    const between = performance.now();
    if ((await kv.get(["a"])).value !== n) throw new Error("the value is lost");
    times.get.push(performance.now() - between);
    times.set.push(between - start);
  }
  return times;
}

/** Opens files, or databases of a server on them, by number. A file is made when it is opened first. */
async function opener(folder) {
  const { openKv, serve } = await import("../index.mjs");
  if (!options.remote) return (n) => openKv(join(folder, `${n}`), { maxOpen: POOLED.open });
  const path = `${join(folder, "served")}/`;
  const listen = "127.0.0.1:0";
  const server = await serve({ path, adminToken: ADMIN, listen, maxOpen: POOLED.open });
  return async (n) => {
    await admin(server, "POST", "", JSON.stringify({ name: `db-${n}` }));
    return openKv(`${server.url}/db-${n}`, { accessToken: ADMIN });
  };
}

async function pooledChild(folder) {
  const open = await opener(folder);
  const handles = [];
  const upTo = async (count) => {
    while (handles.length < count) {
      const kv = await open(handles.length);
      await kv.set(["a"], 0);
      handles.push(kv);
    }
  };
  await upTo(POOLED.open);
  await operations(handles);
  const few = await operations(handles);
  await upTo(Number(options.pooled));
  await operations(handles);
  const many = await operations(handles);
  const first = { set: [], get: [] };
  for (let n = 0; n < POOLED.parked; n++) {
    // Files that were opened long ago are parked, but for the active ones.
    for (const [name, call] of [
      ["get", (kv) => kv.get(["a"])],
      ["set", (kv) => kv.set(["a"], n)],
    ]) {
      const kv = handles[Math.floor(Math.random() * handles.length)];
      const start = performance.now();
      await call(kv);
      first[name].push(performance.now() - start);
    }
  }
  const { kib } = figures();
  const answer = { kib };
  for (const name of ["set", "get"]) {
    answer[name] = {
      few: quantile(few[name], 0.99),
      many: quantile(many[name], 0.99),
      parked: quantile(first[name], 0.5),
    };
  }
  console.log(JSON.stringify(answer));
  // Closing thousands of files is not measured.
  process.exit(0);
}

/** A call of the admin API of a server. */
async function admin(server, method, place, body) {
  const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
  const answer = await fetch(`${server.url}/v1/admin/databases${place}`, { method, headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${place}: ${text}`);
  return text;
}

const newNamed = (n) => JSON.stringify({ name: `new-${n}` });

/** Makes a folder of databases from one that a server has created. */
async function fillFolder(path, count) {
  const { serve } = await import("../index.mjs");
  const server = await serve({ path, adminToken: ADMIN, listen: "127.0.0.1:0" });
  await admin(server, "POST", "", JSON.stringify({ name: "db-0" }));
  await server.close();
  const place = join(path, "openkv-server.json");
  const registry = JSON.parse(readFileSync(place, "utf8"));
  const [first] = registry.databases;
  const fileOf = (id) => join(path, `${id}.sqlite3`);
  let linked;
  for (let n = 1; n < count; n++) {
    const id = randomUUID();
    if (n % SERVED.linksMax === 1) copyFileSync(fileOf(first.id), fileOf((linked = id)));
    else linkSync(fileOf(linked), fileOf(id));
    const sha256 = createHash("sha256").update(`token ${n}`).digest("base64url");
    const token = { ...first.tokens[0], id: randomBytes(6).toString("hex"), sha256 };
    registry.databases.push({ ...first, name: `db-${n}`, id, tokens: [token] });
  }
  registry.databases.sort((a, b) => (a.name < b.name ? -1 : 1));
  writeFileSync(place, JSON.stringify(registry, null, 2));
  const again = await serve({ path, adminToken: ADMIN, listen: "127.0.0.1:0" });
  // From now on the registry has its changes beside it.
  await admin(again, "POST", "", JSON.stringify({ name: "last" }));
  await again.close();
}

async function servedChild(path) {
  const { openKv, serve } = await import("../index.mjs");
  globalThis.gc();
  const before = figures().kib;
  const times = {};
  const timed = async (name, call) => {
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    const result = await call();
    const used = process.cpuUsage(cpu);
    const spent = [performance.now() - start, (used.user + used.system) / 1000];
    (times[name] ??= []).push(spent);
    return result;
  };
  const open = { path, adminToken: ADMIN, listen: "127.0.0.1:0" };
  const server = await timed("start", () => serve(open));
  const { kib } = figures();
  const kv = await timed("first", async () => {
    const kv = await openKv(`${server.url}/db-0`, { accessToken: ADMIN });
    await kv.set(["a"], 1);
    return kv;
  });
  await timed("list", () => admin(server, "GET", ""));
  for (let n = 0; n < SERVED.changes; n++)
    await timed("create", () => admin(server, "POST", "", newNamed(n)));
  for (let n = 0; n < SERVED.changes; n++)
    await timed("drop", () => admin(server, "DELETE", `/new-${n}`));
  await kv.close();
  await server.close();
  const median = (all) => all.sort(([a], [b]) => a - b)[all.length >> 1];
  const each = Object.entries(times).map(([name, all]) => [name, median(all)]);
  console.log(JSON.stringify({ kib: kib - before, ...Object.fromEntries(each) }));
}

function measure(store, folder) {
  const args = ["--expose-gc", fileURLToPath(import.meta.url), "--child", store];
  const { status, stdout } = spawnSync(
    process.execPath,
    [...args, "--files", options.files, "--pooled", options.pooled].concat(
      ["--served", options.served, "--dir", folder],
      options.remote ? ["--remote"] : [],
    ),
    { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`${store}: the process ended with ${status}`);
  return JSON.parse(stdout);
}

if (options.child === "pooled") {
  await pooledChild(options.dir);
} else if (options.child === "folder") {
  await fillFolder(options.dir, Number(options.served));
  console.log("{}");
} else if (options.child === "served") {
  await servedChild(options.dir);
} else if (options.child !== undefined) {
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
  if (Number(options.pooled) > 0) {
    const folder = dataDirectory(options.dir);
    const pooled = measure("pooled", folder);
    rmSync(folder, { recursive: true, force: true });
    for (const name of ["set", "get"]) {
      const { few, many, parked } = pooled[name];
      const times = many / few;
      console.log(
        `${name}: p99 ${few.toFixed(3)} ms on ${POOLED.open} files, ${many.toFixed(3)} ms on ${options.pooled} of which ` +
          `${POOLED.open} are open: ${times.toFixed(2)} times (≤ ${POOLED_P99_MAX}) ${mark(times <= POOLED_P99_MAX)}; ` +
          `of a parked file p50 ${parked.toFixed(3)} ms`,
      );
    }
    console.log(`memory of the process ${Math.round(pooled.kib / 1024)} MiB`);
  }
  if (Number(options.served) > 0) {
    const folder = dataDirectory(options.dir);
    // In a process of its own, whose memory is not the server's.
    measure("folder", folder);
    const { kib, ...times } = measure("served", folder);
    rmSync(folder, { recursive: true, force: true });
    for (const [name, [ms, cpuMs]] of Object.entries(times))
      console.log(
        `server of ${options.served} databases, ${name}: ${ms.toFixed(1)} ms, ${cpuMs.toFixed(1)} of the processor`,
      );
    console.log(
      `start ≤ ${SERVED.startMsMax} ms ${mark(times.start[0] <= SERVED.startMsMax)}; memory ${Math.round(kib / 1024)} MiB`,
    );
  }
}
