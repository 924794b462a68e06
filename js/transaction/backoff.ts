// Duty: the pause before a transaction is retried after a conflict.

/** Bounds of the pauses, in milliseconds. */
export interface RetryDelay {
  /** The longest pause after the first conflict; it doubles with each further one. */
  readonly initialMs: number;
  /** The longest pause of all. */
  readonly maxMs: number;
}

export const RETRY_DELAY_DEFAULT: RetryDelay = { initialMs: 2, maxMs: 250 };

/** The largest bound that a caller can set, in milliseconds: an hour. */
export const TRANSACTION_RETRY_DELAY_MS_MAX = 3_600_000;

/**
 * A pause in milliseconds after `lost` conflicts (1 after the first). `random` is in [0, 1), so that
 * two transactions do not retry at the same time.
 */
export function backoffMs(lost: number, random: number, { initialMs, maxMs }: RetryDelay): number {
  // 0 times an infinite power would be NaN.
  const longest = initialMs === 0 ? 0 : Math.min(maxMs, initialMs * 2 ** (lost - 1));
  return longest * random;
}
