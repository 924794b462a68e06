// `node bench/jobs.mjs`: jobs on a named queue. Each row's ways alternate on fresh files; prints the rate of
// each, and the ratio of a row with two ways.
//
// Arguments: --messages N of each measurement (default 20000), --rounds N (default 3), --dir DIRECTORY (default:
// bench/.data).

import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openKv } from "../index.mjs";
import { value } from "./data.mjs";
import { DEFAULT_DIRECTORY } from "./machine.mjs";

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "20000" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
  },
});
const messages = Number(values.messages);
const rounds = Number(values.rounds);

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
rmSync(directory, { recursive: true });
