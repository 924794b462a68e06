// Duty: how long whoever has lost a race waits before the next try.

/** The longest pause after the first lost try, in milliseconds; it doubles with each one more. */
export const BACKOFF_MS_MIN = 2;
/** No pause is longer, in milliseconds. */
export const BACKOFF_MS_MAX = 250;

/**
 * A pause in milliseconds after `lost` lost tries (1 after the first). `random` is in [0, 1): two
 * that have lost together do not come back together.
 */
export function backoffMs(lost: number, random: number): number {
  const longest = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** (lost - 1));
  return longest * random;
}
