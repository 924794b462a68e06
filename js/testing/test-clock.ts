// Duty: testClock(): a clock for tests, which a database in memory has instead of the machine's.

import type { KvClock } from "openkv";

/** A clock that a test moves. */
export interface TestClock extends KvClock {
  /**
   * Moves the clock forward by whole milliseconds. Resolves when every database that has it has done what
   * is due at the new time: expired entries are gone, messages that are due are on their way to their
   * handlers, locks and retries have run out.
   */
  advance(ms: number): Promise<void>;
}

/**
 * A clock that stands still until `advance` moves it: for `openKv(":memory:", { clock })`. It starts at
 * `start`, a Date or ms since the epoch; default: the present.
 *
 * @example
 * const clock = testClock();
 * const kv = await openKv(":memory:", { clock });
 * await kv.set(["session"], 1, { expireIn: 60_000 });
 * await clock.advance(60_000);
 * (await kv.get(["session"])).value; // null
 */
export function testClock(start: Date | number = Date.now()): TestClock {
  let nowMs = Number(start);
  if (!Number.isInteger(nowMs) || nowMs < 0) {
    throw new RangeError(`testClock: start must be a Date, or whole ms since the epoch: ${start}`);
  }
  const followers = new Set<(nowMs: number) => Promise<void>>();
  return {
    now: () => nowMs,
    follow(move) {
      followers.add(move);
      return () => void followers.delete(move);
    },
    async advance(ms) {
      if (!Number.isSafeInteger(ms) || ms < 0) {
        throw new RangeError(`clock.advance: ms must be a whole number, not negative: ${ms}`);
      }
      nowMs += ms;
      await Promise.all([...followers].map((move) => move(nowMs)));
    },
  };
}
