// One process of bench/bucket.mjs: opens a database and makes one measurement.

import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { openKv } from "../../index.mjs";
import { closedLoop, quantile } from "../measure.mjs";

const job = JSON.parse(process.argv[2]);
const MS_PER_SECOND = 1000;
const VALUE_BYTES = 100;
const PAGE = 100;
const FILL_BATCH = 1000;
/** Prime to every number of keys. */
const STEP = 6_997;

let written = 0;
/** Never the same twice, because SQLite leaves a page clean that gets the same bytes. */
function value() {
  const bytes = new Uint8Array(VALUE_BYTES).fill(120);
  new DataView(bytes.buffer).setFloat64(0, ++written);
  return bytes;
}

async function fill(kv, keys) {
  for (let from = 0; from < keys; from += FILL_BATCH) {
    const operation = kv.atomic();
    for (let i = from; i < Math.min(from + FILL_BATCH, keys); i++)
      operation.set(["rows", i], value());
    await operation.commit();
  }
}

/** The rate of calls in a closed loop, and the processor time of each. */
async function measured(ms, inFlight, call) {
  const cpu = process.cpuUsage();
  const { times, elapsedMs } = await closedLoop(ms, inFlight, call);
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (times.length * MS_PER_SECOND) / elapsedMs,
    p50Ms: quantile(times, 0.5),
    cpuUs: (user + system) / times.length,
  };
}

async function rate(kv) {
  const { what, inFlight, seconds, keys } = job;
  let at = 0;
  const next = () => (at = (at + STEP) % keys);
  const calls = {
    sum: () => kv.atomic().sum(["counter"], 1n).commit(),
    set: () => kv.set(["rows", next()], value()),
    get: () => kv.get(["rows", next()]),
    list: () =>
      kv.list({ start: ["rows", next()], end: ["rows", keys] }, { limit: PAGE }).toArray(),
  };
  await fill(kv, keys);
  await measured((seconds * MS_PER_SECOND) / 3, inFlight, calls[what]);
  const before = requests(await kv.metrics());
  const result = await measured(seconds * MS_PER_SECOND, inFlight, calls[what]);
  const after = requests(await kv.metrics());
  return { ...result, requestsPerSecond: (after - before) / seconds };
}

const requests = ({ bucket }) =>
  Object.values(bucket?.requests ?? {}).reduce((sum, count) => sum + count, 0);

const JOBS = {
  rate,
  fill: (kv) => fill(kv, job.keys),
  /** Calls nothing after a write, and answers its processor time to each message. */
  idle: async (kv) => {
    await kv.set(["idle"], 1);
    process.on("message", () => process.send(process.cpuUsage()));
    process.send({});
    await sleep(2 ** 30);
  },
  /** Opens, and answers how long it took. */
  open: async () => ({}),
  /** Leads until it is killed. */
  lead: async (kv) => {
    await kv.set(["led"], 1);
    process.send({});
    await sleep(2 ** 30);
  },
  /** Writes until it leads. */
  takeOver: async (kv) => {
    process.send({ ready: true });
    for (;;) {
      const written = await kv.set(["led"], 2).catch((error) => error);
      if (!(written instanceof Error)) return { at: Date.now() };
      if (written.code !== "UNAVAILABLE") throw written;
      await sleep(10);
    }
  },
};

const began = performance.now();
const kv = await openKv(job.url, job.options ?? {});
await kv.get(["rows", 1]);
const openMs = performance.now() - began;
const result = await JOBS[job.do](kv);
await kv.close();
process.send({ ...result, openMs }, () => process.exit());
