// One of several processes that do everything at once to one file, until told to stop. Each load is
// a sequential loop that checks what it reads; what it did is added up in the parent.

import { args, listen, tell } from "../child.mjs";
import { Random } from "../crash/random.mjs";
import { openKv } from "../target.mjs";
import { loads } from "./loads.mjs";
import { WATCHES, isFinal } from "./state.mjs";
import { queue } from "./queue.mjs";

const { path, id, seed } = args;

const reads = new Set(["audit", "list"]);

/** Errors told in full; more of the same would only flood the pipe. */
const FAULTS_MAX = 10;

const kv = await openKv(path);
/** What the loads did, by name; added up over all processes. */
const done = {};
let faults = 0;
const worker = {
  kv,
  id,
  stopped: false,
  count(name, by = 1) {
    done[name] = (done[name] ?? 0) + by;
  },
  fault(what) {
    if (faults++ < FAULTS_MAX) tell(`FAULT ${id}: ${what}`);
  },
};

const running = (args.loads ?? Object.keys(loads)).map((name) => repeat(name, loads[name]));
const watching = WATCHES.map((keys) => watch(keys));
const { listening, stopEnqueuing } = queue(worker, new Random(seed, id, "queue"));

listen(async (word) => {
  if (word === "stop") {
    worker.stopped = true;
    await Promise.all([...running, stopEnqueuing()]);
    tell(`STOPPED ${JSON.stringify(done)}`);
    await Promise.all(watching);
    tell("WATCHED");
  }
  if (word === "close") {
    await kv.close();
    await listening.catch((error) => worker.fault(`listenQueue was rejected: ${error}`));
    tell(`CLOSED ${JSON.stringify({ handled: done.handled ?? 0 })}`);
    // Nothing may keep this process alive now: its end is part of the test.
  }
});
tell("READY");

async function repeat(name, load) {
  const random = new Random(seed, id, name);
  const state = {};
  while (!worker.stopped) {
    const started = performance.now();
    try {
      await load(worker, random, state);
      worker.count(name);
    } catch (error) {
      worker.fault(`${name}: ${error?.stack ?? error}`);
    }
    const slowest = `slowest ${name}, ms`;
    done[slowest] = Math.max(done[slowest] ?? 0, Math.round(performance.now() - started));
    // Reads answer within the turn: without pauses, eight processes' reads would leave no processor
    // to write.
    const pause = reads.has(name) ? random.between(5, 40) : random.between(-20, 3);
    if (pause >= 0) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/**
 * Reads a watch until it shows the final values; versionstamps never go back, pairs are never torn.
 */
async function watch(keys) {
  const newest = keys.map(() => "");
  try {
    for await (const entries of kv.watch(keys)) {
      worker.count("watch events");
      entries.forEach(({ versionstamp, key }, at) => {
        if (versionstamp < newest[at]) {
          worker.fault(`a watch of ${key} went back from ${newest[at]} to ${versionstamp}`);
        }
        newest[at] = versionstamp;
      });
      if (new Set(newest).size > 1) worker.fault(`a watch saw half a commit: ${newest}`);
      if (entries.every(({ value }) => isFinal(value))) return;
    }
    worker.fault(`a watch of ${JSON.stringify(keys)} ended before the last value`);
  } catch (error) {
    worker.fault(`a watch failed: ${error?.stack ?? error}`);
  }
}
