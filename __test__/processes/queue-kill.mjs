// Consumers of a named queue that are killed in the middle of their messages, again and again:
// nothing is lost, no message has two holders while a lock holds, and what a killed consumer had is
// delivered again at most a second after its lock ran out.
//
// Consumers of a file, or with --served of a server's URL.
//
//   node __test__/processes/queue-kill.mjs [--rounds 20] [--messages 120] [--served]

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { guard, sleep, until } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openKv, serve } from "./target.mjs";

const CONSUMER = new URL("./queue-kill/consumer.mjs", import.meta.url);
/** Longer than a loaded machine keeps a living consumer from renewing its locks. */
const LOCK_MS = 5_000;
/** From the end of a lock to the next delivery: a guard, since a loaded machine delivers late. */
const LATE_MS_MAX = 10_000;
const HANG_MS = 60_000;
const CONSUMERS = 3;

/** One round behind the URL of a server of this process. */
export async function killClients(path, messages) {
  const accessToken = "token-of-killed-consumers";
  const server = await serve({ path, accessToken, listen: "127.0.0.1:0" });
  try {
    return await killConsumers(server.url, messages, { accessToken });
  } finally {
    await server.close();
  }
}

/** One round; answers how many messages were taken over, and the longest time that took. */
export async function killConsumers(path, messages, options) {
  const kv = await openKv(path, options);
  const queue = kv.queue("work");
  const begun = new Map();
  const done = new Set();
  const deaths = new Map();
  let takenOver = 0;
  let latest = 0;
  let finish;
  let fail;
  const finished = new Promise((resolve, reject) => ([finish, fail] = [resolve, reject]));
  finished.catch(() => {});

  function start(name) {
    const follow = (line) => {
      const { event, n, at } = JSON.parse(line);
      if (event === "begin") {
        const holder = begun.get(n);
        if (holder !== undefined) {
          const death = deaths.get(holder);
          assert.ok(death !== undefined, `message ${n} went to ${name} while ${holder} had it`);
          // The lock was renewed for the last time at most a third of it before the death.
          const free = death + LOCK_MS;
          assert.ok(at >= death, `message ${n} was taken while its holder lived`);
          latest = Math.max(latest, at - free);
          takenOver++;
        }
        begun.set(n, name);
      } else if (event === "end") {
        done.add(n);
        if (done.size === messages) finish();
      }
    };
    const onLine = (line) => {
      try {
        follow(line);
      } catch (error) {
        fail(error);
      }
    };
    return { name, child: startChild(CONSUMER, { path, options, lockMs: LOCK_MS }, { onLine }) };
  }

  let names = 0;
  const consumers = Array.from({ length: CONSUMERS }, () => start(`c${names++}`));
  try {
    for (let n = 0; n < messages; n++) {
      await queue.enqueue(n, { backoffSchedule: [0, 0, 0, 0, 0] });
    }
    for (let kill = 0; kill < CONSUMERS; kill++) {
      await sleep(80);
      const victim = consumers.shift();
      victim.child.kill();
      await victim.child.ended;
      deaths.set(victim.name, Date.now());
      consumers.push(start(`c${names++}`));
    }
    await guard(finished, HANG_MS, `${messages} messages; ${done.size} are done`);
    // The ends are told before they are durable, so the end of a killed consumer may be told twice.
    const isEmpty = async () => (await queue.stats()).total === 0;
    await until(isEmpty, "the end of the last message", HANG_MS);
    const { total, dead } = await queue.stats();
    for (const { child } of consumers) child.hangUp();
    await Promise.all(consumers.map(({ child }) => child.ended));
    assert.deepEqual({ total, dead }, { total: 0, dead: 0 });
  } finally {
    for (const { child } of consumers) child.kill();
    await kv.close();
  }
  assert.ok(latest <= LATE_MS_MAX, `taken over ${latest} ms after the lock's end`);
  return { takenOver, latest };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "20" },
      messages: { type: "string", default: "120" },
      served: { type: "boolean", default: false },
    },
  });
  const folder = newFolder("queue-kill");
  for (let round = 1; round <= Number(values.rounds); round++) {
    const path = join(folder, `${round}.sqlite3`);
    const kill = values.served ? killClients : killConsumers;
    const { takenOver, latest } = await kill(path, Number(values.messages));
    console.log(`round ${round}: ${takenOver} taken over, at most ${latest} ms after the lock`);
  }
}
