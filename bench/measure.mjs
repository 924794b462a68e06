// Measures a rate: warms up, then counts the operations completed in a time window.
//
// Every peer gets the same window instead of the same number of operations: a number that the
// slowest completes in a second takes the fastest a few milliseconds, too short to compile its
// code.
//
// The processor time of the process is recorded too: on a busy machine it is more reliable than the
// clock.

import { cpuUsage } from "node:process";

/**
 * Operations per second of `round`, which does some operations and answers how many.
 * @param {{ warmMs: number, ms: number }} window
 * @param {() => Promise<number>} round
 */
export async function rate(window, round) {
  await during(window.warmMs, round);
  const before = cpuUsage();
  return result(await during(window.ms, round), before);
}

/**
 * Calls in a closed loop, so many in flight at a time, for so long: the time of each, and of all, in ms.
 * @param {number} ms
 * @param {number} inFlight
 * @param {() => Promise<unknown>} call
 */
export async function closedLoop(ms, inFlight, call) {
  const times = [];
  const start = performance.now();
  const one = async () => {
    while (performance.now() - start < ms) {
      const began = performance.now();
      await call();
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  return { times, elapsedMs: performance.now() - start };
}

/** The result of a trial: operations per second, and processor time per operation. */
function result({ operations, elapsedMs }, before) {
  const { user, system } = cpuUsage(before);
  return {
    value: (operations / elapsedMs) * 1000,
    cpuMicroseconds: (user + system) / operations,
    operations,
    elapsedMs,
  };
}

async function during(ms, round) {
  const start = performance.now();
  let operations = 0;
  let elapsedMs = 0;
  do {
    operations += await round();
    elapsedMs = performance.now() - start;
  } while (elapsedMs < ms);
  return { operations, elapsedMs };
}

/** The same for a synchronous peer, without promises. */
export function rateSync(window, round) {
  duringSync(window.warmMs, round);
  const before = cpuUsage();
  return result(duringSync(window.ms, round), before);
}

function duringSync(ms, round) {
  const start = performance.now();
  let operations = 0;
  let elapsedMs = 0;
  do {
    operations += round();
    elapsedMs = performance.now() - start;
  } while (elapsedMs < ms);
  return { operations, elapsedMs };
}

/** The quantile p (0 to 1) of the numbers, by nearest rank. */
export function quantile(numbers, p) {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))];
}

export const median = (numbers) => {
  const sorted = Float64Array.from(numbers).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
