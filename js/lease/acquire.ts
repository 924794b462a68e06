// Duty: kv.lease: waits for the entry of a lease to be free, and stores it.
// Invariant: an acquisition that its caller does not get is released. The lease of a dead holder ends after its own ttl,
// whatever the clock of the database does: a clock that is set back lets its entry expire later, and a caller that waits
// shortens it.

import { randomUUID } from "node:crypto";
import { checkOptions, requireKey } from "../arguments/check.js";
import { checkDurationIn } from "../arguments/duration.js";
import { checkSignal, onAbort, raced } from "../arguments/signal.js";
import { printKey } from "../codec/key-text.js";
import { codeOf, invalid } from "../model/errors.js";
import { DURATION_MS_MAX, LEASE_TTL_MS_DEFAULT, LEASE_TTL_MS_MIN } from "../model/limits.js";
import { get } from "../read/get.js";
import { setAlarm, timeOf } from "../session/alarm.js";
import type { Session } from "../session/session.js";
import { watch } from "../watch/watch.js";
import type { KvEntry, KvEntryMaybe, KvKey } from "../model/types.js";
import { KvLease } from "./held-lease.js";
import { deleteEntry, entryOf, isLeaseValue, shortenEntry, storeEntry } from "./lease-entry.js";

const STRONG = { consistency: "strong", withExpiry: true } as const;

type Found = KvEntryMaybe<unknown> & { expireAt: Date | null };

/** How a lease is acquired. */
export interface Acquisition {
  readonly ttlMs: number;
  /** How long to wait for it; undefined: as long as it takes. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** What to do with an entry that is no lease: it ends the wait, or throws. */
  readonly other: (entry: KvEntry<unknown>) => void;
}

/** A lease; the entry that ended the wait; or null, if the time is over. */
export type Acquired = KvLease | KvEntry<unknown> | null;

export async function lease(
  session: Session,
  key: KvKey,
  options: unknown,
): Promise<KvLease | null> {
  const method = "kv.lease";
  requireKey(method, key);
  const { ttl, wait, signal } = checkOptions(method, options, ["ttl", "wait", "signal"]);
  const other = ({ key: of }: KvEntry<unknown>): void => {
    throw invalid(
      `${method}: ${printKey(of as KvKey)} holds a value that is no lease: choose another key, or delete it`,
    );
  };
  const acquired = await acquire(session, [...key], {
    ttlMs: checkTtl(`${method}: ttl`, ttl),
    waitMs: checkWait(`${method}: wait`, wait),
    signal: checkSignal(method, signal),
    other,
  });
  return acquired as KvLease | null;
}

/** The time after which a lease ends that is not renewed. */
export function checkTtl(what: string, ttl: unknown): number {
  if (ttl === undefined) return LEASE_TTL_MS_DEFAULT;
  return checkDurationIn(what, ttl, LEASE_TTL_MS_MIN, DURATION_MS_MAX);
}

function checkWait(what: string, wait: unknown): number | undefined {
  if (wait === undefined || wait === true) return undefined;
  return wait === false ? 0 : checkDurationIn(what, wait, 0, DURATION_MS_MAX);
}

export function acquire(session: Session, key: KvKey, acquisition: Acquisition): Promise<Acquired> {
  const { signal } = acquisition;
  const run = () => acquireUnder(session, key, acquisition);
  return signal === undefined ? run() : raced(signal, run, release);
}

function release(acquired: Acquired): void {
  // What is not released expires.
  if (acquired instanceof KvLease) acquired.release().catch(() => {});
}

async function acquireUnder(
  session: Session,
  key: KvKey,
  { ttlMs, waitMs, signal, other }: Acquisition,
): Promise<Acquired> {
  const entry = entryOf(key, session.limits);
  const value = { lease: randomUUID(), ttl: ttlMs };
  const startMs = timeOf(session);
  /** The ttl of the holder, and when its entry expires, as they were found last. */
  const holder = { ttlMs, expireAt: null as number | null };
  /** Set before the first try whose outcome is unknown: from then on the entry may be ours. */
  let unknownMs: number | null = null;

  /** Stores the entry; null: there is one. */
  const store = async (sentMs: number): Promise<KvLease | null> => {
    const result = await storeEntry(session, key, entry, value);
    if (!result.ok) return null;
    if (!session.closed) {
      return new KvLease(session, key, entry, result.versionstamp, ttlMs, sentMs);
    }
    await deleteEntry(session, entry, result.versionstamp, true).catch(() => {}); // It expires.
    throw session.closedError();
  };

  /** Tries once. Null: the entry of another caller is there, or this caller wants it no more. */
  const attempt = async (): Promise<KvLease | null> => {
    if (signal?.aborted) return null;
    const sentMs = timeOf(session);
    const storing = store(sentMs);
    const settled = storing.catch(() => {});
    session.acquiring.add(settled);
    try {
      return await storing;
    } catch (error) {
      if (codeOf(error) !== "OUTCOME_UNKNOWN") throw error;
      unknownMs ??= sentMs;
      return null;
    } finally {
      session.acquiring.delete(settled);
    }
  };

  /** What a state of the entry means: null is to go on waiting. */
  const look = async (found: KvEntryMaybe<unknown>): Promise<Acquired> => {
    if (found.versionstamp === null) return await attempt();
    if (!isLeaseValue(found.value)) {
      other(found);
      return found;
    }
    if (unknownMs === null || found.value.lease !== value.lease) return null;
    return new KvLease(session, key, entry, found.versionstamp, ttlMs, unknownMs);
  };

  /**
   * Lets the lease of another caller expire one ttl from now, if its entry expires later than that or if nobody has
   * renewed it for a ttl. A holder that lives renews it again.
   */
  const shorten = async ({ value: of, versionstamp, expireAt }: Found): Promise<void> => {
    if (versionstamp === null || expireAt === null || !isLeaseValue(of)) return;
    const endMs = expireAt.getTime();
    const stands = holder.expireAt === endMs;
    holder.ttlMs = Math.min(Math.max(of.ttl, LEASE_TTL_MS_MIN), DURATION_MS_MAX);
    holder.expireAt = endMs;
    if (!stands && endMs - session.now() <= holder.ttlMs) return;
    try {
      await shortenEntry(session, entry, versionstamp, holder.ttlMs);
    } catch {
      // The entry expires by itself, and what fails here fails the next try too.
    }
  };

  let first: Acquired = await attempt();
  if (first === null) {
    const found: Found = await get(session, key, STRONG);
    first = await look(found);
    if (first === null) await shorten(found);
  }
  const waits = waitMs !== 0 && !signal?.aborted;
  return first ?? (waits ? await wait() : null);

  /** Looks at each state of the entry until the time is over. */
  async function wait(): Promise<Acquired> {
    const stop = new AbortController();
    const unfollow = signal === undefined ? () => {} : onAbort(signal, () => stop.abort());
    const leftMs = waitMs === undefined ? null : waitMs - (timeOf(session) - startMs);
    const cancel =
      leftMs === null ? () => {} : setAlarm(session, Math.max(leftMs, 0), () => stop.abort());
    const unguard = guard();
    try {
      for (;;) {
        const acquired = await follow(stop.signal);
        if (acquired !== undefined) return acquired;
      }
    } finally {
      unguard();
      cancel();
      unfollow();
    }
  }

  /** Looks at the entry whenever its holder should have renewed it. A watch does not tell of renewals. */
  function guard(): () => void {
    let isOver = false;
    let cancel = (): void => {};
    const wait = (): void => {
      cancel = setAlarm(session, holder.ttlMs, async () => {
        // What fails here fails the watch too.
        const found: Found | null = await get(session, key, STRONG).catch(() => null);
        // Once the wait is over, this may be the entry of the caller's own lease, or of a later one.
        if (isOver) return;
        if (found !== null) await shorten(found);
        if (!isOver) wait();
      });
    };
    wait();
    return () => {
      isOver = true;
      cancel();
    };
  }

  /**
   * Looks at the states of a watch until one ends the wait, and until a try has failed: undefined then. After that the
   * watch may have seen the last state already: a lease that another process acquires and releases between two looks
   * leaves the key as it was. A new watch begins with the state of its beginning, and no lease has the versionstamp of
   * another one.
   */
  async function follow(stop: AbortSignal): Promise<Acquired | undefined> {
    const states = watch(session, [key], { signal: stop }).getReader();
    try {
      for (;;) {
        const { done, value: state } = await states.read();
        if (done) {
          if (!stop.aborted) session.requireOpen();
          return null;
        }
        const acquired = await look(state[0]);
        if (acquired !== null) return acquired;
        if (state[0].versionstamp === null) return undefined;
      }
    } finally {
      await states.cancel();
    }
  }
}
