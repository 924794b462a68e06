// One of several processes that do everything at once to the same files, until told to stop. The loops of a load take
// files at random, one loop a file at a time, and check what they read; what they did is added up in the parent.

import { args, listen, tell } from "../child.mjs";
import { Random } from "../crash/random.mjs";
import { openKv } from "../target.mjs";
import { loads } from "./loads.mjs";
import { WATCHES, isFinal, isWatched } from "./state.mjs";
import { queue } from "./queue.mjs";

const { paths, options, id, seed } = args;

const reads = new Set(["audit", "list"]);

/** Loops of each load: more would only wait for the processors. */
const LOOPS_MAX = 12;

/** Errors told in full; more of the same would only flood the pipe. */
const FAULTS_MAX = 10;

let faults = 0;
let stopped = false;
const workers = await Promise.all(paths.map(start));
/** What is of the queues; a process that does not listen to one still sends to it. */
const queues = workers
  .filter(isWatched)
  .map((worker) => queue(worker, new Random(seed, id, "queue", worker.file), isFollowed(worker)));
const names = args.loads ?? Object.keys(loads);
const running = names.flatMap((name) => {
  /** The files that no loop of this load is at. */
  const free = workers.slice();
  const loops = Math.min(workers.length, LOOPS_MAX);
  return Array.from({ length: loops }, (_, loop) => repeat(free, name, loop));
});
const watching = workers
  .filter(isFollowed)
  .flatMap((worker) => WATCHES.map((keys) => watch(worker, keys)));

listen(async (word) => {
  if (word === "stop") {
    stopped = true;
    for (const worker of workers) worker.stopped = true;
    await Promise.all([...running, ...queues.map(({ stopEnqueuing }) => stopEnqueuing())]);
    tell(`STOPPED ${JSON.stringify(workers.map(({ done }) => done))}`);
    await Promise.all(watching);
    tell("WATCHED");
  }
  if (word === "close") {
    await Promise.all(workers.map(({ kv }) => kv.close()));
    for (const { listening } of queues)
      await listening?.catch((error) => fault(`listenQueue was rejected: ${error}`));
    tell("CLOSED");
    // Nothing may keep this process alive now: its end is part of the test.
  }
});
tell("READY");

/** The work on one file. */
async function start(path, file) {
  const kv = await openKv(path, options);
  /** What the loads did, by name; added up over all processes. */
  const done = {};
  const count = (name, by = 1) => {
    done[name] = (done[name] ?? 0) + by;
  };
  return { kv, id, file, done, stopped: false, count, fault, states: {} };
}

function fault(what) {
  if (faults++ < FAULTS_MAX) tell(`FAULT ${id}: ${what}`);
}

/** Whether this process watches a file and listens to its queue: of several files half of the processes. */
function isFollowed(worker) {
  return paths.length === 1 || (isWatched(worker) && (worker.file + id) % 2 === 0);
}

async function repeat(free, name, loop) {
  const load = loads[name];
  const random = new Random(seed, id, name, loop);
  while (!stopped) {
    const [worker] = free.splice(random.between(0, free.length - 1), 1);
    const { done } = worker;
    const state = (worker.states[name] ??= {});
    const started = performance.now();
    try {
      await load(worker, random, state);
      worker.count(name);
    } catch (error) {
      fault(`${name}: ${error?.stack ?? error}`);
    }
    const slowest = `slowest ${name}, ms`;
    done[slowest] = Math.max(done[slowest] ?? 0, Math.round(performance.now() - started));
    free.push(worker);
    // Reads answer within the turn: without pauses, eight processes' reads would leave no processor
    // to write.
    const pause = reads.has(name) ? random.between(5, 40) : random.between(-20, 3);
    if (pause >= 0) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/**
 * Reads a watch until it shows the final values; versionstamps never go back, pairs are never torn.
 */
async function watch({ kv, count }, keys) {
  const newest = keys.map(() => "");
  try {
    for await (const entries of kv.watch(keys)) {
      count("watch events");
      entries.forEach(({ versionstamp, key }, at) => {
        if (versionstamp < newest[at]) {
          fault(`a watch of ${key} went back from ${newest[at]} to ${versionstamp}`);
        }
        newest[at] = versionstamp;
      });
      if (new Set(newest).size > 1) fault(`a watch saw half a commit: ${newest}`);
      if (entries.every(({ value }) => isFinal(value))) return;
    }
    fault(`a watch of ${JSON.stringify(keys)} ended before the last value`);
  } catch (error) {
    fault(`a watch failed: ${error?.stack ?? error}`);
  }
}
