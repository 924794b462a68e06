#!/usr/bin/env node
// Prints how long a commit of one process takes to reach a watch, a change feed and a queue listener
// in another, and what an idle process with 100 watches and 100 feeds open costs. Asserts nothing about time: the numbers are for
// people.
//
//   node watch-latency.mjs [--rounds 1000] [--pause 5] [--idle 10]

import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openKv } from "./target.mjs";

const OBSERVER = new URL("peer/observer.mjs", import.meta.url);
const HANG_MS = 30_000;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "1000" },
    pause: { type: "string", default: "5" },
    idle: { type: "string", default: "10" },
  },
});
const directory = newFolder("latency");
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const path = join(directory, "kv.sqlite3");

const kv = await openKv(path);
const observer = startChild(OBSERVER, { path });
const answer = async (what) => JSON.parse((await guard(observer.line(), HANG_MS, what)) ?? "null");
await answer("the other process is ready");

await measure("set → watch event", (n) => kv.set(["watched", 0], { n, at: now() }));
await measure("set → change feed", (n) => kv.set(["fed", 0, n % 10], { n, at: now() }));
await measure("enqueue → handler", (n) => kv.enqueue({ n, at: now() }));

observer.say("idle " + Number(values.idle) * 1000);
const { user, system, ms } = await guard(
  answer("CPU use"),
  Number(values.idle) * 1000 + HANG_MS,
  "CPU use",
);
const percent = ((user + system) / 1000 / ms) * 100;
console.log(
  `idle with 100 watches, 100 feeds and a listener: ${((user + system) / 1000).toFixed(1)} ms of CPU ` +
    `in ${(ms / 1000).toFixed(1)} s (${percent.toFixed(2)} %)`,
);
await kv.close();
observer.hangUp();
await observer.ended;

/** Both processes read the same monotonic clock of the system. */
function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function measure(what, write) {
  const latencies = [];
  for (let n = 0; n < Number(values.rounds); n++) {
    await write(n);
    let seen;
    do seen = await answer(what);
    while (seen.n !== n);
    latencies.push(seen.ms);
    await sleep(Number(values.pause));
  }
  latencies.sort((a, b) => a - b);
  const at = (share) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))].toFixed(2);
  console.log(
    `${what}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms (${latencies.length} times)`,
  );
}
