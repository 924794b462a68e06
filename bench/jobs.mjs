// `node bench/jobs.mjs`: jobs on a named queue. Each row's ways alternate on fresh files; prints the rate of
// each, and the ratio of a row with two ways. Then many schedules on one file: how fast they are set, what they cost
// between their due times, how late their messages come, and the file opened again.
//
// Arguments: --messages N of each measurement (default 20000), --rounds N (default 3), --schedules N (default 100000;
// 0: none), --seconds N in which they are due (default 10), --dir DIRECTORY (default: bench/.data).

import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { value } from "./data.mjs";
import { DEFAULT_DIRECTORY } from "./machine.mjs";

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "20000" },
    rounds: { type: "string", default: "3" },
    schedules: { type: "string", default: "100000" },
    seconds: { type: "string", default: "10" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const messages = Number(values.messages);
const rounds = Number(values.rounds);
const schedules = Number(values.schedules);
const seconds = Number(values.seconds);

const IN_FLIGHT = 100;

/** Enqueues the messages with so many calls at a time. */
async function fill(queue) {
  let next = 0;
  const caller = async () => {
    while (next < messages) await queue.enqueue(value(next++));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
}

/** Handles all messages; answers the ms from `begin`, which runs beside, to the end of the last message. */
async function handled(kv, begin, handle) {
  const queue = kv.queue("jobs");
  const stop = new AbortController();
  let left = messages;
  const start = performance.now();
  const listening = queue.listen(
    async (job, message) => {
      await handle(job, message);
      if (--left === 0) stop.abort();
    },
    { concurrency: IN_FLIGHT, signal: stop.signal },
  );
  await begin(queue);
  await listening;
  const ms = performance.now() - start;
  if ((await queue.stats()).total !== 0) throw new Error("a message is left");
  return ms;
}

const nothing = () => {};

/** The ms of the messages, by the name of the way. */
const ROWS = {
  "enqueue → handler → ack, 100 in flight": {
    all: (kv) => handled(kv, fill, nothing),
  },
  "handler → ack, 100 in flight: in a commit against alone": {
    async "in a commit"(kv) {
      await fill(kv.queue("jobs"));
      return await handled(kv, nothing, async (_, message) => {
        const { ok } = await kv.atomic().ack(message).commit();
        if (!ok) throw new Error("nobody else has the message");
      });
    },
    async alone(kv) {
      await fill(kv.queue("jobs"));
      return await handled(kv, nothing, nothing);
    },
  },
};

/** Schedules that one commit sets. */
const SCHEDULES_A_COMMIT = 500;
/** The time without a due time in which the process takes none of the processor. */
const IDLE_MS = 5000;

/** The time of the processor that `during` takes, as a part of the time that passes. */
async function load(during) {
  const [start, before] = [performance.now(), process.cpuUsage()];
  await during();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (performance.now() - start);
}

async function setAll(kv, timingOf) {
  for (let next = 0; next < schedules; ) {
    const commit = kv.atomic();
    const end = Math.min(next + SCHEDULES_A_COMMIT, schedules);
    for (; next < end; next++) commit.schedule(`s${next}`, timingOf(next), next, { queue: "jobs" });
    await commit.commit();
  }
}

async function manySchedules(path) {
  let kv = await openKv(path);
  const stop = new AbortController();
  const lateMs = [];
  const handle = (_, { schedule }) => void lateMs.push(Date.now() - schedule.dueAt.getTime());
  const listen = () => kv.queue("jobs").listen(handle, { signal: stop.signal, concurrency: 100 });
  const listening = listen();
  const told = (name, text) => console.log(`  ${name.padEnd(28)} ${text}`);
  const percent = (part) => `${(part * 100).toFixed(2)} % of a processor`;
  const rate = async (timingOf) => {
    const start = performance.now();
    await setAll(kv, timingOf);
    return `${Math.round(schedules / ((performance.now() - start) / 1000)).toLocaleString("en")}/s`;
  };
  console.log(`${schedules.toLocaleString("en")} schedules`);
  told("set", await rate(() => ({ cron: "0 0 1 1 *" })));
  told("set again", await rate(() => ({ cron: "0 0 1 1 *" })));
  told("between due times", percent(await load(() => sleep(IDLE_MS))));
  // Each is due once in 1000 s, so a thousandth of them in each second.
  const every = 1_000_000;
  told("set with other times", await rate((n) => ({ every, offset: (n * 7919) % every })));
  // Those that were due while others were set are done.
  while ((await kv.queue("jobs").stats()).total > 0) await sleep(100);
  lateMs.length = 0;
  told(`due, ${schedules / 1000}/s`, percent(await load(() => sleep(seconds * 1000))));
  lateMs.sort((a, b) => a - b);
  const late = (part) => lateMs[Math.min(Math.floor(lateMs.length * part), lateMs.length - 1)];
  told("late", `p50 ${late(0.5)} ms, p99 ${late(0.99)} ms, of ${lateMs.length}`);
  stop.abort();
  await listening;
  await kv.close();
  const before = process.memoryUsage().rss;
  const start = performance.now();
  kv = await openKv(path);
  await kv.queue("jobs").schedules({ limit: 1 });
  const ms = performance.now() - start;
  const mib = (process.memoryUsage().rss - before) / 2 ** 20;
  told("opened again", `${ms.toFixed(1)} ms, ${mib.toFixed(1)} MiB more memory`);
  await kv.close();
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

const directory = resolve(values.dir, "jobs");
mkdirSync(directory, { recursive: true });
for (const [row, ways] of Object.entries(ROWS)) {
  const rates = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const kv = await openKv(join(directory, `${round}-${name.replaceAll(" ", "-")}.sqlite3`));
      rates[name].push((messages / (await way(kv))) * 1000);
      await kv.close();
      rmSync(directory, { recursive: true });
      mkdirSync(directory);
    }
  }
  console.log(row);
  for (const [name, list] of Object.entries(rates)) {
    console.log(`  ${name.padEnd(12)} ${Math.round(median(list)).toLocaleString("en")}/s`);
  }
  const [first, second] = Object.values(rates).map(median);
  if (second !== undefined) console.log(`  ${(first / second).toFixed(2)} ×`);
}
if (schedules > 0) await manySchedules(join(directory, "schedules.sqlite3"));
rmSync(directory, { recursive: true });
