// `node bench/bullmq.mjs`: BullMQ on openkv's file against BullMQ on Redis, which syncs its log at every write
// (`appendfsync always`), and on PostgreSQL, as far as they are on this machine. In turns, each round on a new
// database; prints medians and ratios.
//
//   --jobs N         of each measurement (default 5000)
//   --rounds N       (default 3)
//   --dir DIRECTORY  where the files are (default bench/.data)

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { freePort } from "../__test__/kit/port.mjs";
import { findBinaries } from "../__test__/kit/postgres/programs.mjs";
import { startPostgres } from "../__test__/kit/postgres.mjs";
import { packedFiles } from "../scripts/pack.mjs";
import { installPeers } from "./install.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median } from "./measure.mjs";

const { values: options } = parseArgs({
  options: {
    jobs: { type: "string", default: "5000" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const jobs = Number(options.jobs);
const AT_ONCE = 50;
/** Jobs that are added to an idle worker, one by one. */
const LATENCIES = 100;

installPeers();
installOpenkv();
const { Queue, Worker, createPostgresBackend } = await import("bullmq");
const { openKv } = await import("openkv");
const { openKvBackend } = await import("openkv/bullmq");

const stores = { openkv: startOpenkv };
if (spawnSync("redis-server", ["--version"]).status === 0) stores.Redis = startRedis;
if (findBinaries() !== null) stores.PostgreSQL = startPostgreSQL;
const directory = dataDirectory(options.dir);
console.log(`Machine: ${machineLine(directory)}.`);
const results = Object.fromEntries(Object.keys(stores).map((name) => [name, []]));
for (let round = 0; round < Number(options.rounds); round++) {
  const names = Object.keys(stores);
  for (const name of round % 2 === 0 ? names : names.toReversed()) {
    const store = await stores[name](join(directory, `${name}-${round}`));
    results[name].push(await measure(store));
    await store.close();
  }
}
rmSync(directory, { recursive: true, force: true });
const of = (name, what) => median(results[name].map((result) => result[what]));
for (const name of Object.keys(stores)) {
  const [add, handle, ms] = ["add", "handle", "ms"].map((what) => of(name, what));
  const against = (what) => (of("openkv", what) / of(name, what)).toFixed(2);
  const ratio = name === "openkv" ? "" : `; openkv ${against("add")} × / ${against("handle")} ×`;
  console.log(
    `${name}: ${Math.round(add)} added/s, ${Math.round(handle)} handled/s, ${AT_ONCE} at a time; ` +
      `${ms.toFixed(2)} ms from add to an idle worker${ratio}`,
  );
}

/** Adds the jobs, handles them, and then single ones by an idle worker. */
async function measure({ options: given, backend }) {
  const queue = new Queue("bench", given, backend);
  await queue.waitUntilReady();
  let added = 0;
  const add = async () => {
    while (added < jobs) await queue.add("job", { n: added++ });
  };
  const adding = await timed(() => Promise.all(Array.from({ length: AT_ONCE }, add)));
  let handled = 0;
  let told;
  const all = new Promise((resolve) => (told = resolve));
  const handle = async () => {
    if (++handled >= jobs) told();
  };
  const worker = new Worker("bench", handle, { ...given, concurrency: AT_ONCE }, backend);
  const handling = await timed(() => all);
  const latencies = [];
  for (let i = 0; i < LATENCIES; i++) {
    const drained = once(worker, "drained");
    const one = new Promise((resolve) => (told = resolve));
    latencies.push(await timed(() => Promise.all([queue.add("job", {}), one])));
    await drained;
  }
  await worker.close();
  await queue.close();
  return { add: (jobs / adding) * 1000, handle: (jobs / handling) * 1000, ms: median(latencies) };
}

async function timed(run) {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

async function startOpenkv(folder) {
  mkdirSync(folder);
  const kv = await openKv(join(folder, "jobs.sqlite3"), { limits: "wide" });
  return { options: { connection: {} }, backend: openKvBackend(kv), close: () => kv.close() };
}

async function startRedis(folder) {
  mkdirSync(folder);
  const port = await freePort();
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const place = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder];
  // BullMQ's client asks until the server listens.
  const server = spawn("redis-server", [...place, ...durable], { stdio: "ignore" });
  const close = async () => {
    const closed = once(server, "exit");
    server.kill();
    await closed;
  };
  return { options: { connection: { port } }, backend: undefined, close };
}

async function startPostgreSQL() {
  const server = await startPostgres({ settings: { fsync: "on" } });
  const connection = { connectionString: server.url().toString(), migrate: true };
  return { options: { connection }, backend: createPostgresBackend, close: () => server.close() };
}

/** openkv as it would be published: its driver finds BullMQ beside itself. */
function installOpenkv() {
  const root = fileURLToPath(new URL("../", import.meta.url));
  const target = fileURLToPath(new URL("./node_modules/openkv", import.meta.url));
  rmSync(target, { recursive: true, force: true });
  const addons = readdirSync(join(root, "dist/native")).filter((name) => name.endsWith(".node"));
  for (const path of [...packedFiles(), ...addons.map((name) => `dist/native/${name}`)]) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(root, path), join(target, path));
  }
}
