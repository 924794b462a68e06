// Duty: the options expireIn and expireAt of every write: checks, and the expiry that they mean.

import { invalid } from "../model/errors.js";
import { checkExpireIn, checkSetOptions, shown } from "./check.js";
import { now } from "../model/clock.js";
import { option } from "./options.js";
import { timeOfDate } from "../model/brands.js";
import { TIME_MS_MAX } from "../model/limits.js";

/** The options for the expiry of an entry. */
export const EXPIRY_OPTIONS = ["expireIn", "expireAt"] as const;

/** At most one of the two is set. Neither: the write leaves the expiry as its kind does. */
export interface Expiry {
  /** In milliseconds from the commit. */
  readonly afterMs: number | undefined;
  /** In milliseconds since the epoch. */
  readonly atMs: number | undefined;
}

export const NO_EXPIRY: Expiry = { afterMs: undefined, atMs: undefined };

export function checkExpiry(given: { expireIn?: unknown; expireAt?: unknown }): Expiry {
  const expireIn = option(given, "expireIn");
  const expireAt = option(given, "expireAt");
  if (expireAt == null) return { afterMs: checkExpireIn(expireIn), atMs: undefined };
  if (expireIn !== undefined) throw invalid("give either expireIn or expireAt, not both");
  return { afterMs: undefined, atMs: checkExpireAt(expireAt) };
}

function checkExpireAt(expireAt: unknown): number {
  const time = timeOfDate(expireAt);
  const ms = time ?? expireAt;
  if (typeof ms === "number" && ms >= -TIME_MS_MAX && ms <= TIME_MS_MAX) return Math.trunc(ms);
  throw invalid(`expireAt must be a Date or ms since the epoch: received ${shown(expireAt)}`);
}

/** The options of a set. */
export function checkSetExpiry(options: object | null | undefined): Expiry {
  if (options == null) return NO_EXPIRY;
  checkSetOptions(options);
  return checkExpiry(options);
}

/**
 * The expiry in the record of a write that is committed now. A local database adds `afterMs` to its
 * own time at the commit. The protocol of a remote one has only absolute times, so the clock of this
 * machine counts. Throws as {@link expiryAfter}.
 */
export function expiryNow(expiry: Expiry, remote: boolean): Expiry {
  const { afterMs } = expiry;
  if (afterMs === undefined) return expiry;
  const atMs = expiryAfter(afterMs);
  return remote ? { afterMs: undefined, atMs } : expiry;
}

/**
 * The expiry of an entry that is committed now by the clock of this machine, in milliseconds since
 * the epoch. Throws TypeError when it is later than any Date; as in Deno, that is an error of the
 * commit.
 */
export function expiryAfter(afterMs: number): number {
  const end = now() + afterMs;
  if (end <= TIME_MS_MAX) return end;
  const most = TIME_MS_MAX - now();
  throw invalid(
    `Invalid mutation: expireIn is too large: ${afterMs}: at most ${most} ms end at a date; ` +
      "leave expireIn out for an entry that stays",
  );
}
