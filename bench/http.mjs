// `node bench/http.mjs`: the HTTP API of openkv's server compared with a plain server of node:http over
// `openKv` in its process (bench/http/peer.mjs), with the same routes and the same client, over loopback,
// each on its own file that syncs every commit; in turns, printed as ratios.
//
//   --seconds S      of each measurement (default 3)
//   --rounds N       (default 3); a figure is the median
//   --dir DIRECTORY  where the files are (default bench/.data)
//   --only NAMES     of: reads, writes, idle, export; by commas
//   --watches N      idle streams of events (default 10000)
//   --entries N      entries of an export (default 1000000)
//   --alone          our server only
//
// The client is a process of its own, with 64 connections that each send the next request when the
// last one is answered. The measure is requests per second of the server's processor time: the client and
// the server share the cores, so the rate by the clock is also that of the client.

import { rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { kill, spawnServer } from "../__test__/server/children.mjs";
import { exported } from "./http/export.mjs";
import { idleStreams } from "./http/idle-streams.mjs";
import { load, spawnPeer } from "./http/processes.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median } from "./measure.mjs";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    only: { type: "string", default: "reads,writes,idle,export" },
    watches: { type: "string", default: "10000" },
    entries: { type: "string", default: "1000000" },
    alone: { type: "boolean" },
  },
});
const accessToken = "token-of-the-benchmark";
const KEYS = 10_000;
const FILL_AT_ONCE = 500;
const [watches, entries] = [Number(options.watches), Number(options.entries)];
const directory = dataDirectory(options.dir);
const only = options.only.split(",");

const servers = {
  openkv: (path) => ourServer(path),
  "node:http": (path) => spawnPeer({ path, accessToken }),
};
if (options.alone) delete servers["node:http"];

const workloads = {
  reads: { title: "GET /keys/…, 64 connections", method: "GET", aim: 3 },
  writes: { title: "PUT /keys/…, 64 connections, synced", method: "PUT", aim: 2 },
};

console.log(`Machine: ${machineLine(directory)}.`);
const names = Object.keys(servers);
for (const [name, { title, method, aim }] of Object.entries(workloads)) {
  if (!only.includes(name)) continue;
  const results = Object.fromEntries(names.map((server) => [server, []]));
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const each of round % 2 === 0 ? names : names.toReversed()) {
      const path = join(directory, `${name}-${names.indexOf(each)}-${round}.sqlite3`);
      await fill(path, KEYS);
      const server = await servers[each](path);
      const window = { seconds: Number(options.seconds), keys: KEYS };
      results[each].push(await load(server, { method, accessToken, ...window }));
      await kill(server);
    }
  }
  console.log(`${title}: ${names.map((each) => `${each} ${figure(results[each])}`).join("; ")}`);
  if (options.alone) continue;
  const [ours, theirs] = names.map((each) => middle(results[each], "perProcessorSecond"));
  const ratio = ours / theirs;
  console.log(`  ratio ${ratio.toFixed(2)} (≥ ${aim}) ${ratio >= aim ? "✓" : "✗"}`);
}
if (only.includes("idle")) {
  const server = await ourServer(join(directory, "idle.sqlite3"));
  console.log(await idleStreams({ ...server, accessToken }, watches));
  await kill(server);
}
if (only.includes("export")) {
  const path = join(directory, "export.sqlite3");
  await fill(path, entries);
  const server = await ourServer(path);
  console.log(await exported({ ...server, accessToken }, entries));
  await kill(server);
}
rmSync(directory, { recursive: true, force: true });
process.exit();

function ourServer(path) {
  const quotas = { watches: watches + 1 };
  const connectionsMax = watches + 100;
  return spawnServer({ path, accessToken, listen: "127.0.0.1:0", quotas, connectionsMax });
}

/** The entries that all servers begin with. */
async function fill(path, count) {
  const kv = await openKv(path, { durability: "normal" });
  for (let from = 0; from < count; from += FILL_AT_ONCE) {
    const pending = [];
    for (let n = from; n < Math.min(count, from + FILL_AT_ONCE); n++) {
      pending.push(
        kv.set(["users", `${n}`], {
          id: n,
          name: `name ${n}`,
          email: `user${n}@example.com`,
          age: n % 90,
          ok: true,
        }),
      );
    }
    await Promise.all(pending);
  }
  await kv.close();
}

function middle(list, name) {
  return median(list.map((each) => each[name]));
}

/** Medians, and the smallest and largest number per second of processor time. */
function figure(list) {
  const round = (n) => Math.round(n).toLocaleString("en");
  const each = list.map(({ perProcessorSecond }) => perProcessorSecond);
  return (
    `${round(median(each))} per second of processor ` +
    `(${round(Math.min(...each))} – ${round(Math.max(...each))}), ` +
    `${round(middle(list, "perSecond"))}/s by the clock`
  );
}
