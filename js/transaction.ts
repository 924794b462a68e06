// Duty: kv.transaction: runs a function over a view of the database, commits what it has written
// under checks of all that it has read, and starts over when somebody else was faster.

import { backoffMs } from "./backoff.js";
import { checkOptions, nameOf } from "./check.js";
import { clearTimeout, setTimeout } from "./clock.js";
import { KvConflictError } from "./errors.js";
import type { Session } from "./session.js";
import { checkSignal } from "./signal.js";
import { Transaction, commit, end, isBroken } from "./transaction-view.js";
import type { KvTransaction, KvTransactionResult } from "./types.js";

/** Tries after the first one, when the caller does not say. */
const RETRIES_DEFAULT = 10;

export async function transaction<T>(
  session: Session,
  run: (tx: KvTransaction) => T | Promise<T>,
  options: unknown,
): Promise<KvTransactionResult<T>> {
  if (typeof run !== "function") {
    throw new TypeError(`kv.transaction: expected a function: received ${nameOf(run)}`);
  }
  const given = checkOptions("kv.transaction", options, ["maxRetries", "signal"]);
  const maxRetries = checkRetries(given.maxRetries);
  const signal = checkSignal("kv.transaction", given.signal);
  session.requireOpen();
  for (let lost = 1; ; lost++) {
    signal?.throwIfAborted();
    const tx = new Transaction(session);
    const done = await attempt(tx, run, signal);
    if (done !== null) return done;
    if (lost > maxRetries) {
      throw new KvConflictError(
        `kv.transaction: each of its ${lost} attempts met a change of what it had read ` +
          `(maxRetries: ${maxRetries}); try again later, raise maxRetries, or read less`,
      );
    }
    await pause(backoffMs(lost, Math.random()), signal);
  }
}

/** Null: somebody else was faster. */
async function attempt<T>(
  tx: Transaction,
  run: (tx: KvTransaction) => T | Promise<T>,
  signal: AbortSignal | undefined,
): Promise<KvTransactionResult<T> | null> {
  let value: T;
  try {
    value = await run(tx);
  } catch (error) {
    // What it threw over states that never were together says nothing.
    if (isBroken(tx)) return null;
    throw error;
  } finally {
    end(tx);
  }
  if (isBroken(tx)) return null;
  signal?.throwIfAborted();
  const result = await commit(tx);
  if (!result.ok) return null;
  // The same object: placeholders know the result that they are of.
  return Object.assign(result, { value });
}

function checkRetries(given: unknown): number {
  if (given === undefined) return RETRIES_DEFAULT;
  if (typeof given === "number" && given >= 0 && (Number.isInteger(given) || given === Infinity)) {
    return given;
  }
  const told = typeof given === "number" ? String(given) : nameOf(given);
  throw new TypeError(
    `kv.transaction: maxRetries must be a non-negative integer or Infinity: received ${told}`,
  );
}

/** Waits; rejects with the signal's reason when it is aborted meanwhile. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
