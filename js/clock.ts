// Duty: the timers and the clock of the runtime, as they are when this module is loaded.
// Invariant: the rest of this folder waits and tells the time through here only. Fake timers (those
// of node:test, sinon, Jest, Vitest) replace the globals and the properties of node:timers; a read
// that waited for a fake setImmediate would wait for ever, and the addon has the real clock.

import * as timers from "node:timers";

export const setImmediate = timers.setImmediate;
export const setTimeout = timers.setTimeout;
export const clearTimeout = timers.clearTimeout;
export const setInterval = timers.setInterval;
export const clearInterval = timers.clearInterval;

/** Milliseconds since the epoch. */
export const now = Date.now;
