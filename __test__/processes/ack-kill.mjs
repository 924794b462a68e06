// Workers that acknowledge in the commit of their effects are killed with SIGKILL at any moment: each effect
// of each message has happened exactly once, and each following message came exactly once.
//
// Workers of a file, or with --served of a server's URL.
//
//   node __test__/processes/ack-kill.mjs [--kills 10000] [--served]

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { openKv, serve } from "./target.mjs";

const WORKER = new URL("./ack-kill/worker.mjs", import.meta.url);
const WORKERS = 2;
const LOCK_MS = 300;
/** Each kill costs the messages of the worker an interval. */
const BACKOFF = [0, 0, 0, 0, 0];
/** Messages that wait are at least so many, so that every kill meets work. */
const WAITING_MIN = 100;
/** The time from a worker's first message to its end is up to so long. */
const LIFE_MS_MAX = 60;
const HANG_MS = 60_000;

/** So many kills on a file; answers what has happened. */
export async function killWorkers(path, kills, options) {
  const kv = await openKv(path, options);
  const queues = [kv.queue("first"), kv.queue("second")];
  const child = { path, options, lockMs: LOCK_MS, backoff: BACKOFF };
  let sent = 0;
  let killed = 0;

  /** A message whose workers were killed six times is dead. */
  async function requeue() {
    for (const { dead } of queues) {
      for (const { id } of (await dead.list()).messages) await dead.requeue(id);
    }
  }

  async function refill() {
    await requeue();
    const { total } = await queues[0].stats();
    if (total >= WAITING_MIN) return;
    const more = Array.from({ length: 2 * WAITING_MIN }, () => sent++);
    await Promise.all(more.map((n) => queues[0].enqueue(n, { backoffSchedule: BACKOFF })));
  }

  async function live() {
    while (killed < kills) {
      killed++;
      const number = killed;
      await refill();
      const worker = startChild(WORKER, child);
      const line = await guard(worker.line(), HANG_MS, `the first message of worker ${number}`);
      assert.equal(line, "works", worker.stderr);
      await sleep(Math.random() * LIFE_MS_MAX);
      worker.kill();
      await worker.ended;
      assert.equal(worker.stderr, "");
    }
  }

  await refill();
  await Promise.all(Array.from({ length: WORKERS }, live));
  const last = startChild(WORKER, child);
  const empty = async () => {
    for (;;) {
      const all = await Promise.all(queues.map((queue) => queue.stats()));
      if (all.every(({ total }) => total === 0)) return;
      await requeue();
      await sleep(20);
    }
  };
  await guard(empty(), HANG_MS, "the last worker");
  last.hangUp();
  await last.ended;
  for (const step of ["first", "second"]) {
    let entries = 0;
    for await (const { key, value } of kv.list({ prefix: [step] })) {
      assert.equal(value, 1, `${key.join(" ")} happened ${value} times`);
      entries++;
    }
    assert.equal(entries, sent, `${step}: each of ${sent} messages has its effect`);
    assert.equal((await kv.get(["all", step])).value, sent);
  }
  await kv.close();
  return { kills, messages: sent };
}

/** The same behind the URL of a server of this process. */
export async function killClients(path, kills) {
  const accessToken = "token-of-killed-workers";
  const server = await serve({ path, accessToken, listen: "127.0.0.1:0" });
  try {
    return await killWorkers(server.url, kills, { accessToken });
  } finally {
    await server.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      kills: { type: "string", default: "10000" },
      served: { type: "boolean", default: false },
    },
  });
  const kill = values.served ? killClients : killWorkers;
  const path = join(newFolder("ack-kill"), "jobs.sqlite3");
  const { kills, messages } = await kill(path, Number(values.kills));
  console.log(`${kills} kills, ${messages} messages: each effect happened exactly once`);
}
