// `node bench/server.mjs`: openkv's server compared with Deno's server denokv, with the same
// client, over loopback, each on its own file that syncs every commit; in turns, printed as ratios.
//
//   --seconds S      of each measurement (default 3)
//   --rounds N       (default 3); a figure is the median
//   --dir DIRECTORY  where the files are (default bench/.data)
//   --only NAMES     of: reads, commits, watch, idle; by commas
//   --alone          our server only
//
// The client is openkv's, which sends concurrent reads together. With Deno's client, which sends
// each separately: deno run -A --unstable-kv bench/server.mjs
//
// denokv is the binary at DENOKV; without it, it is compiled once, which takes minutes.

import { rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { installDenokv, startDenokv } from "../__test__/peers/denokv-server.mjs";
import { kill, spawnServer } from "../__test__/server/children.mjs";
import { DEFAULT_DIRECTORY, dataDirectory, machineLine } from "./machine.mjs";
import { median, quantile } from "./measure.mjs";
import { idleWatches, processorMs } from "./workloads/idle-watches.mjs";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    only: { type: "string", default: "reads,commits,watch,idle" },
    alone: { type: "boolean" },
  },
});
const accessToken = "token-of-the-benchmark";
const client = await connector();
const IN_FLIGHT = 64;
const KEYS = 10_000;
const FILL_AT_ONCE = 500;
const WARM_MS = 500;
const measuredMs = Number(options.seconds) * 1000;
const directory = dataDirectory(options.dir);

const servers = {
  async openkv(path) {
    const server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
    return { url: server.url, pid: server.pid, close: () => kill(server) };
  },
  denokv: (path) => startDenokv(installDenokv(), path, accessToken),
};
if (options.alone) delete servers.denokv;

const value = (n) => ({
  id: n,
  name: `name ${n}`,
  email: `user${n}@example.com`,
  age: n % 90,
  ok: true,
});

/** Operations per second of 64 callers, each of which runs one operation after the other. */
async function rate({ pid }, operation) {
  let [done, stopped] = [0, false];
  const caller = async () => {
    while (!stopped) {
      await operation();
      done++;
    }
  };
  const callers = Array.from({ length: IN_FLIGHT }, caller);
  await pause(WARM_MS);
  const [before, start, busy] = [done, performance.now(), processorMs(pid)];
  await pause(measuredMs);
  const [operations, ms] = [done - before, performance.now() - start];
  const result = {
    value: (operations / ms) * 1000,
    cpu: ((processorMs(pid) - busy) / operations) * 1000,
  };
  stopped = true;
  await Promise.all(callers);
  return result;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let written = 0;
const workloads = {
  reads: {
    title: `point reads, ${IN_FLIGHT} in flight (/s)`,
    aim: (ratio) => ratio >= 3,
    aimed: "≥ 3",
    async run({ kv, pid }) {
      for (let n = 0; n < KEYS; n += FILL_AT_ONCE) {
        await Promise.all(
          Array.from({ length: FILL_AT_ONCE }, (_, m) => kv.set(["user", n + m], value(n + m))),
        );
      }
      let at = 0;
      return rate({ pid }, async () => {
        const key = ["user", (at = (at + 7919) % KEYS)];
        if ((await kv.get(key)).value.id !== key[1]) throw new Error("another value");
      });
    },
  },
  commits: {
    title: `commits, ${IN_FLIGHT} in flight (/s)`,
    aim: (ratio) => ratio >= 10,
    aimed: "≥ 10",
    run: ({ kv, pid }) => rate({ pid }, () => kv.set(["commit", ++written % KEYS], value(written))),
  },
  watch: {
    title: "watch: set to event, p50 (µs)",
    aim: (ratio) => ratio <= 1,
    aimed: "≤ 1",
    async run({ kv }) {
      const reader = kv.watch([["watched"]]).getReader();
      await reader.read();
      const times = [];
      const end = performance.now() + WARM_MS + measuredMs;
      for (let n = 1; performance.now() < end; n++) {
        const start = performance.now();
        const [event] = await Promise.all([reader.read(), kv.set(["watched"], n)]);
        if (event.value[0].value !== n) throw new Error("another event");
        times.push(performance.now() - start);
      }
      await reader.cancel();
      return { value: quantile(times, 0.5) * 1000 };
    },
  },
};

const only = options.only.split(",");
console.log(`Machine: ${machineLine(directory)}. Client: ${client.name}.`);
const names = Object.keys(servers);
for (const [name, { title, run, aim, aimed }] of Object.entries(workloads)) {
  if (!only.includes(name)) continue;
  const results = Object.fromEntries(names.map((server) => [server, []]));
  for (let round = 0; round < Number(options.rounds); round++) {
    const order = round % 2 === 0 ? names : names.toReversed();
    for (const each of order) {
      const server = await servers[each](join(directory, `${each}-${name}-${round}.sqlite3`));
      const kv = await client.open(server.url);
      results[each].push(await run({ kv, pid: server.pid }));
      kv.close();
      await server.close();
    }
  }
  const shown = names.map((each) => `${each} ${figure(results[each])}`).join(", ");
  if (options.alone) console.log(`${title}: ${shown}`);
  else {
    const ratio = middle(results.openkv) / middle(results.denokv);
    console.log(
      `${title}: ${shown}; ratio ${ratio.toFixed(2)} (${aimed}) ${aim(ratio) ? "✓" : "✗"}`,
    );
  }
}
if (only.includes("idle")) {
  for (const each of names) {
    const server = await servers[each](join(directory, `${each}-idle.sqlite3`));
    const { text } = await idleWatches({ ...server, accessToken });
    console.log(`${each}: ${text}`);
    await server.close();
  }
}
rmSync(directory, { recursive: true, force: true });
process.exit();

async function connector() {
  if (globalThis.Deno) {
    process.env.DENO_KV_ACCESS_TOKEN = accessToken;
    return { name: "Deno's own", open: (url) => globalThis.Deno.openKv(url) };
  }
  const { openKv } = await import("../index.mjs");
  return { name: "openkv's in Node.js", open: (url) => openKv(url, { accessToken }) };
}

function middle(list) {
  return median(list.map(({ value }) => value));
}

/** The median, minimum and maximum, and the server's processor time per operation. */
function figure(list) {
  const round = (n) => Math.round(n).toLocaleString("en");
  const values = list.map(({ value }) => value);
  const cpu =
    list[0].cpu > 0
      ? `, ${median(list.map((each) => each.cpu)).toFixed(0)} µs of processor each`
      : "";
  return `${round(middle(list))} (${round(Math.min(...values))} – ${round(Math.max(...values))}${cpu})`;
}
