// Duty: kv.once: runs a function under a lease of its key, and puts its result in place of the lease.
// Invariant: the result is stored by a commit that checks the lease, so a run that has lost it stores nothing.

import { AtomicOperation } from "../atomic/atomic.js";
import { checkOptions, requireKey, shown } from "../arguments/check.js";
import { checkDuration } from "../arguments/duration.js";
import { checkSignal, raced } from "../arguments/signal.js";
import { printKey } from "../codec/key-text.js";
import { invalid, misuse } from "../model/errors.js";
import { type Acquired, acquire, checkTtl } from "../lease/acquire.js";
import { KvLease, lost } from "../lease/held-lease.js";
import { get } from "../read/get.js";
import type { Session } from "../session/session.js";
import type { KvEntry, KvKey } from "../model/types.js";

const STRONG = { consistency: "strong" } as const;

/** The value of the entry of a result. */
interface Kept {
  readonly result: unknown;
}

export async function once<T>(
  session: Session,
  key: KvKey,
  run: (lease: KvLease) => T | Promise<T>,
  options: unknown,
): Promise<T> {
  const method = "kv.once";
  requireKey(method, key);
  if (typeof run !== "function") {
    throw misuse(`${method}: expected a function: received ${shown(run)}`);
  }
  const given = checkOptions(method, options, ["ttl", "leaseTtl", "signal"]);
  const ttlMs = given.ttl === undefined ? undefined : checkDuration(`${method}: ttl`, given.ttl);
  const leaseMs = checkTtl(`${method}: leaseTtl`, given.leaseTtl);
  const signal = checkSignal(method, given.signal);
  const of = [...key];
  const read = () => get(session, of, STRONG);
  const known = await (signal === undefined ? read() : raced(signal, read));
  if (isKept(known.value)) return known.value.result as T;
  const acquired = (await acquire(session, of, {
    ttlMs: leaseMs,
    waitMs: undefined,
    signal,
    other: requireKept,
  })) as NonNullable<Acquired>;
  if (!(acquired instanceof KvLease)) return (acquired.value as Kept).result as T;
  return await runUnder(session, acquired, run, ttlMs);
}

async function runUnder<T>(
  session: Session,
  lease: KvLease,
  run: (lease: KvLease) => T | Promise<T>,
  ttlMs: number | undefined,
): Promise<T> {
  let kept = false;
  try {
    const result = await run(lease);
    const expiry = ttlMs === undefined ? undefined : { expireIn: ttlMs };
    const operation = new AtomicOperation(session).checkLease(lease);
    kept = (await operation.set(lease.key, { result }, expiry).commit()).ok;
    if (!kept) {
      const why = "the result was not kept";
      throw lease.signal.aborted ? lease.signal.reason : lost("kv.once", lease.key, why);
    }
    return result;
  } finally {
    if (kept) lease.end();
    else await lease.release().catch(() => {}); // It expires.
  }
}

function isKept(value: unknown): value is Kept {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "result");
}

function requireKept({ key, value }: KvEntry<unknown>): void {
  if (isKept(value)) return;
  throw invalid(
    `kv.once: ${printKey(key as KvKey)} holds a value that kv.once has not stored: choose another key, or delete it`,
  );
}
