// Duty: how long whoever has lost a race waits before the next try.

/** Bounds of the pauses, in milliseconds. */
export interface RetryDelay {
  /** The longest pause after the first lost try; it doubles with each one more. */
  readonly initialMs: number;
  /** No pause is longer. */
  readonly maxMs: number;
}

export const RETRY_DELAY_DEFAULT: RetryDelay = { initialMs: 2, maxMs: 250 };

/** The largest bound that a caller can ask for, in milliseconds: an hour. */
export const RETRY_DELAY_MS_MAX = 3_600_000;

/**
 * A pause in milliseconds after `lost` lost tries (1 after the first). `random` is in [0, 1): two
 * that have lost together do not come back together.
 */
export function backoffMs(lost: number, random: number, { initialMs, maxMs }: RetryDelay): number {
  // With 0 and a power without end the product is no number.
  const longest = initialMs === 0 ? 0 : Math.min(maxMs, initialMs * 2 ** (lost - 1));
  return longest * random;
}
