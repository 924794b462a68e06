// `node bench/redis.mjs`: a server of openkv compared with Redis, from one Node.js client over
// loopback: ioredis with values in JSON, openKv with values as they are. Redis syncs its log at every
// write (`appendfsync always`), as openkv does. In turns, printed as ratios.
//
//   --seconds S      of each measurement (default 2)
//   --rounds N       (default 5); a figure is the median
//   --dir DIRECTORY  where the files are (default bench/.data)
//   --only NAMES     of: get, get-512, set, set-512; by commas
//
// It needs `redis-server` 7 on the path (Debian's package redis-server).

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { freePort } from "../__test__/kit/port.mjs";
import { kill, spawnServer } from "../__test__/server/children.mjs";
import { installPeers } from "./install.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median, rate } from "./measure.mjs";
import { record } from "./values.mjs";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "5" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    only: { type: "string", default: "get,get-512,set,set-512" },
  },
});
const KEYS = 10_000;
const IN_FLIGHT = 512;
const WARM_MS = 500;
const START_MS_MAX = 10_000;
const window = { warmMs: WARM_MS, ms: Number(options.seconds) * 1000 };
const accessToken = "token-of-the-benchmark";

/** What is measured: how many calls run at a time, and the least ratio that the project aims at. */
const ROWS = {
  get: { call: "get", atOnce: 1, aim: 0.75 },
  "get-512": { call: "get", atOnce: IN_FLIGHT, aim: 2 },
  set: { call: "set", atOnce: 1, aim: 0.75 },
  "set-512": { call: "set", atOnce: IN_FLIGHT, aim: 1 },
};

const STORES = { openkv: startOpenkv, redis: startRedis };

if (spawnSync("redis-server", ["--version"]).status !== 0) {
  console.error("bench/redis.mjs needs redis-server: install Debian's package of that name");
  process.exit(1);
}
installPeers();
const { Redis } = await import("ioredis");
const directory = dataDirectory(options.dir);
const rows = options.only.split(",");
console.log(`Machine: ${machineLine(directory)}.`);
const results = Object.fromEntries(rows.map((row) => [row, { openkv: [], redis: [] }]));
for (let round = 0; round < Number(options.rounds); round++) {
  const names = round % 2 === 0 ? Object.keys(STORES) : Object.keys(STORES).toReversed();
  for (const name of names) {
    const store = await STORES[name](join(directory, `${name}-${round}`));
    await Promise.all(Array.from({ length: KEYS }, (_, n) => store.set(n, record(n))));
    for (const row of rows) results[row][name].push(await measure(store, ROWS[row]));
    await store.close();
  }
}
for (const row of rows) print(row, results[row]);
rmSync(directory, { recursive: true, force: true });

async function measure(store, { call, atOnce }) {
  const operation = call === "get" ? reading(store) : writing(store);
  const { value } = await rate(window, async () => {
    await Promise.all(Array.from({ length: atOnce }, operation));
    return atOnce;
  });
  return value;
}

function reading({ get }) {
  let at = 0;
  return async () => {
    const key = (at = (at + 7919) % KEYS);
    const value = await get(key);
    if (value.id % KEYS !== key) throw new Error("another value");
  };
}

function writing({ set }) {
  let written = KEYS;
  return () => set(written % KEYS, record(written++));
}

async function startOpenkv(folder) {
  mkdirSync(folder);
  const server = await spawnServer({
    path: join(folder, "kv.sqlite3"),
    accessToken,
    listen: "127.0.0.1:0",
  });
  const kv = await openKv(server.url, { accessToken });
  return {
    get: async (key) => (await kv.get(["record", key])).value,
    set: (key, value) => kv.set(["record", key], value),
    async close() {
      await kv.close();
      await kill(server);
    },
  };
}

async function startRedis(folder) {
  mkdirSync(folder);
  const port = await freePort();
  const settings = {
    port,
    bind: "127.0.0.1",
    dir: folder,
    appendonly: "yes",
    appendfsync: "always",
  };
  const args = Object.entries({ ...settings, save: "" }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const child = spawn("redis-server", args, { stdio: "ignore" });
  process.on("exit", () => child.kill("SIGKILL"));
  const redis = new Redis({
    port,
    host: "127.0.0.1",
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  redis.on("error", () => {});
  const late = AbortSignal.timeout(START_MS_MAX);
  await Promise.race([redis.ping(), once(late, "abort").then(() => Promise.reject(late.reason))]);
  return {
    get: async (key) => JSON.parse(await redis.get(`record:${key}`)),
    set: (key, value) => redis.set(`record:${key}`, JSON.stringify(value)),
    async close() {
      redis.disconnect();
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

function print(row, { openkv, redis }) {
  const ratio = median(openkv) / median(redis);
  const { aim } = ROWS[row];
  const shown = (rates) => `${Math.round(median(rates)).toLocaleString("en")}/s`;
  const range = openkv.map((value, n) => (value / redis[n]).toFixed(2)).join(" ");
  console.log(
    `${row}: openkv ${shown(openkv)}, Redis ${shown(redis)}; ratio ${ratio.toFixed(2)} ` +
      `(≥ ${aim}) ${ratio >= aim ? "✓" : "✗"}; rounds ${range}`,
  );
}
