// Duty: the timers and the clock of the runtime, as they are when this module is loaded.
// Invariant: no other file of js/ (but js/cli) uses a timer or a clock of its own. Fake timers (those
// of node:test, sinon, Jest, Vitest) replace the globals and the properties of node:timers. A read
// that waits for a fake setImmediate would never end, and the addon uses the real clock.

import { performance } from "node:perf_hooks";
import process from "node:process";
import * as timers from "node:timers";

export const nextTick = process.nextTick;
export const setImmediate = timers.setImmediate;
export const setTimeout = timers.setTimeout;
export const clearTimeout = timers.clearTimeout;
export const setInterval = timers.setInterval;
export const clearInterval = timers.clearInterval;

/** Milliseconds since the epoch. */
export const now = Date.now;

/** Milliseconds of a monotonic clock. */
export const elapsed: () => number = performance.now.bind(performance);
