// Duty: waiting in tests: for a time, for a condition, and no longer than a guard allows.

import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

/** Far more than anything takes that a test waits for: it ends what hangs, and measures nothing. */
export const HANG_MS = 60_000;
const LOOK_EVERY_MS = 5;

/**
 * Waits until `isSo()`, which may be asynchronous, is true; answers its value. Names `what`, a text or a function that
 * makes one, when it is not in time.
 */
export async function until(isSo, what, ms = HANG_MS) {
  const end = performance.now() + ms;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (performance.now() > end) {
      const told = typeof what === "function" ? what() : what;
      throw new Error(`not so within ${ms} ms: ${told}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/**
 * `promise`, or a rejection that names `what` after `ms`.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {string} what
 * @returns {Promise<T>}
 */
export function guard(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing happened within ${ms} ms: ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
