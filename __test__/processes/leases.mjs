// Processes that write under leases of one key are stopped, continued and killed, and the clock of their machine is
// set forward and back: the tokens grow, and no process writes under a lease that another one has got since.
//
//   node __test__/processes/leases.mjs [--faults 500] [--seed text] [--served] [--planted unchecked|clock]
//
// With --served a server has the file, and the clock is that of the server and of the processes. --planted makes the
// processes do it wrong, which must be found: they write without a check of their lease, or take their token from the
// clock. On Linux, where the clock of a process can be set.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { guard, HANG_MS, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { Random } from "./crash/random.mjs";
import { wrongOf } from "./leases/history.mjs";
import { SteeredClock } from "./probe.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("./leases/worker.mjs", import.meta.url);
const SERVER = new URL("../replica/chaos/server.mjs", import.meta.url);
const PROCESSES = 4;
const TTL_MS = 300;
/** A process is stopped for up to so many times the life of its lease. */
const STOPS_MAX = 3;
/** The clock stays so near to the true time. */
const SHIFT_MS_MAX = 5_000;
const JUMPS_MS = [-2_000, -TTL_MS, -50, 50, TTL_MS, 2_000];
const accessToken = "token-of-the-leases";

export const skip = process.platform !== "linux" && "the clock of a process is set by LD_PRELOAD";

/** So many faults; answers what was wrong, and what has happened. With `planted`, ends with the first that is found. */
export async function trouble({ faults, seed, served = false, planted }) {
  const folder = newFolder("leases");
  const clock = new SteeredClock(join(folder, "clock"));
  const spawn = { env: { ...process.env, ...clock.env } };
  const random = new Random(seed, "faults");
  const place = { path: join(folder, "kv.sqlite3") };
  const living = [];
  if (served) {
    const port = await freePort();
    const listen = `127.0.0.1:${port}`;
    const server = startChild(SERVER, { ...place, accessToken, listen }, { spawn });
    living.push(server);
    await guard(server.line(), HANG_MS, "the server starts");
    Object.assign(place, { path: `http://${listen}`, options: { accessToken } });
  }
  const holds = [];
  const problems = [];
  let started = 0;
  let holder;

  function start() {
    const name = started++;
    const worker = { name };
    let isReady;
    let hasEnded;
    worker.ready = new Promise((resolve) => (isReady = resolve));
    worker.ended = new Promise((resolve) => (hasEnded = resolve));
    let askedNs;
    const onLine = (line) => {
      const [word, time, token] = line.split(" ");
      if (word === "ready") isReady();
      else if (word === "asks") askedNs = BigInt(time);
      else if (word === "got") {
        holds.push({ by: name, askedNs, hasNs: BigInt(time), token });
        holder = worker;
      } else if (word === "held") hasEnded();
      else if (word === "failed") problems.push(`${name} ${line}`);
    };
    const args = { ...place, name, ttl: TTL_MS, planted, seed: `${seed}/${name}` };
    worker.child = startChild(WORKER, args, { onLine, spawn });
    worker.child.say("hold");
    living.push(worker.child);
    worker.child.ended.then(() => (isReady(), hasEnded()));
    return worker;
  }

  async function read() {
    const kv = await openKv(place.path, place.options);
    const entries = await kv.list({ prefix: ["writes"] }).toArray();
    await kv.close();
    return entries.map(({ value, versionstamp }) => ({ ...value, versionstamp }));
  }

  const workers = Array.from({ length: PROCESSES }, start);
  try {
    await guard(Promise.all(workers.map(({ ready }) => ready)), HANG_MS, "the processes start");
    let done = 0;
    for (; done < faults && problems.length === 0; done++) {
      const at = random.between(0, PROCESSES - 1);
      const current = workers.indexOf(holder);
      const victim = current >= 0 && !random.oneIn(3) ? current : at;
      const { child } = workers[victim];
      switch (random.between(0, 5)) {
        case 0:
        case 1:
        case 2:
          child.pause();
          await sleep(random.between(1, STOPS_MAX * TTL_MS));
          child.resume();
          break;
        case 3:
          child.kill();
          await child.ended;
          workers[victim] = start();
          break;
        default: {
          const shiftMs = clock.shiftMs + random.pick(JUMPS_MS);
          clock.set(Math.max(-SHIFT_MS_MAX, Math.min(SHIFT_MS_MAX, shiftMs)));
          await sleep(random.between(1, TTL_MS));
        }
      }
      if (planted && wrongOf({ writes: await read(), holds }).length > 0) break;
    }
    for (const { child } of workers) child.say("end");
    await guard(Promise.all(workers.map(({ ended }) => ended)), HANG_MS, "the processes end");
    const writes = await read();
    const wrong = [...problems, ...wrongOf({ writes, holds })];
    return { wrong, faults: done, holds: holds.length, writes: writes.length };
  } finally {
    for (const child of living) child.kill();
    await Promise.all(living.map((child) => child.ended));
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      faults: { type: "string", default: "500" },
      seed: { type: "string", default: String(Date.now()) },
      served: { type: "boolean", default: false },
      planted: { type: "string" },
    },
  });
  console.log(`seed ${values.seed}`);
  const { wrong, ...counts } = await trouble({ ...values, faults: Number(values.faults) });
  console.log(counts);
  for (const what of wrong.slice(0, 20)) console.error(`- ${what}`);
  if (wrong.length > 0) process.exit(1);
  console.log("no write under a lost lease");
}
