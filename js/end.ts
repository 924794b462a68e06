// Duty: when an entry that is written ends: expireIn and expireAt of every write, checked.

import { checkExpireIn, checkSetOptions, nameOf } from "./check.js";
import { now } from "./clock.js";

/** The options that say when an entry ends. */
export const END_OPTIONS = ["expireIn", "expireAt"] as const;

/** At most one of the two is there; neither: the write does not say. */
export interface End {
  /** In milliseconds from the commit. */
  readonly afterMs: number | undefined;
  /** In milliseconds since the epoch. */
  readonly atMs: number | undefined;
}

export const NO_END: End = { afterMs: undefined, atMs: undefined };

/** The last instant that a Date can name, in milliseconds since the epoch. */
const TIME_MS_MAX = 8.64e15;

export function checkEnd(given: { expireIn?: unknown; expireAt?: unknown }): End {
  const { expireIn, expireAt } = given;
  if (expireAt == null) return { afterMs: checkExpireIn(expireIn), atMs: undefined };
  if (expireIn !== undefined) throw new TypeError("give either expireIn or expireAt, not both");
  return { afterMs: undefined, atMs: checkExpireAt(expireAt) };
}

function checkExpireAt(expireAt: unknown): number {
  const ms = expireAt instanceof Date ? expireAt.getTime() : expireAt;
  if (typeof ms === "number" && ms >= -TIME_MS_MAX && ms <= TIME_MS_MAX) return Math.trunc(ms);
  const given = expireAt instanceof Date ? "an invalid Date" : told(expireAt);
  throw new TypeError(`expireAt must be a Date or ms since the epoch: received ${given}`);
}

function told(expireAt: unknown): string {
  return typeof expireAt === "number" ? String(expireAt) : nameOf(expireAt);
}

/** The options of a set. */
export function checkSetEnd(options: object | null | undefined): End {
  if (options == null) return NO_END;
  checkSetOptions(options);
  return checkEnd(options);
}

/** In milliseconds since the epoch, for a write that is committed now. */
export function endNow({ afterMs, atMs }: End): number | undefined {
  return afterMs === undefined ? atMs : endAfter(afterMs);
}

/**
 * The end of what is committed now and lives so long, in milliseconds since the epoch. Throws
 * TypeError for one that no Date can name: as in Deno, a commit's error.
 */
export function endAfter(afterMs: number): number {
  const end = now() + afterMs;
  if (end <= TIME_MS_MAX) return end;
  const most = TIME_MS_MAX - now();
  throw new TypeError(
    `Invalid mutation: expireIn is too large: ${afterMs}: at most ${most} ms end at a date; ` +
      "leave expireIn out for an entry that stays",
  );
}

/** What a record has room for until its commit, which fills in the time of an `afterMs`. */
export function endLater({ afterMs, atMs }: End): number | undefined {
  return afterMs ?? atMs;
}
