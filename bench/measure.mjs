// How a rate is taken: warm up, then count what was finished inside a window of time.
//
// Every peer gets the same window and not the same count: a count that the slowest finishes in a
// second is over in milliseconds for the fastest, before its code is even compiled.
//
// The processor time of the whole process is noted beside it: on a machine that is busy with other
// work it says more than the clock.

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

/** What a trial reports: operations per second, and processor time per operation. */
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

/** The same for a synchronous peer, which has nothing to await and pays for no promise. */
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

/** The p-th part (0 to 1) of the numbers, by nearest rank. */
export function quantile(numbers, p) {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))];
}

export const median = (numbers) => {
  const sorted = Float64Array.from(numbers).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
