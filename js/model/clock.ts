// Duty: the timers and the clock of the runtime, as they are when this module is loaded.
// Invariant: no other file of js/ (but js/cli) uses a timer or a clock of its own. Fake timers (those
// of node:test, sinon, Jest, Vitest) replace the globals and the properties of node:timers. A read
// that waits for a fake setImmediate would never end, and the addon uses the real clock.

import { performance } from "node:perf_hooks";
import process from "node:process";
import { runInNewContext } from "node:vm";
import {
  clearInterval as clearIntervalNow,
  clearTimeout as clearTimeoutNow,
  setImmediate as setImmediateNow,
  setInterval as setIntervalNow,
  setTimeout as setTimeoutNow,
} from "node:timers";

export const nextTick = process.nextTick;
export const setImmediate = setImmediateNow;
export const setTimeout = setTimeoutNow;
export const clearTimeout = clearTimeoutNow;
export const setInterval = setIntervalNow;
export const clearInterval = clearIntervalNow;

/**
 * Milliseconds since the epoch. Fake timers that were there before this module replace Date; the one
 * of another realm is real.
 */
export const now: () => number = String(Date.now).includes("[native code]")
  ? Date.now
  : runInNewContext("Date.now");

/** Milliseconds of a monotonic clock. */
export const elapsed: () => number = performance.now.bind(performance);
