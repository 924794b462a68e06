// Duty: ends of locks and windows that one process stores and others compare with their own clocks.

/**
 * How far the clock of the machine that has stored an end may be ahead. An end that is further away than its length and
 * this was stored before the clock was set back, and counts as over.
 */
export const CLOCK_SKEW_MS = 60_000;

/** The time until an end, or 0 if it is over. `lengthMs`: from when it was set; undefined if that is not known. */
export function msUntil(endMs: number, lengthMs: number | undefined, now: number): number {
  const ms = endMs - now;
  return ms > 0 && ms <= (lengthMs ?? Number.POSITIVE_INFINITY) + CLOCK_SKEW_MS ? ms : 0;
}
