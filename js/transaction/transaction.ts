// Duty: kv.transaction: runs a function on a view of the database, commits its writes under checks
// of its reads, and retries after a conflict.

import {
  RETRY_DELAY_DEFAULT,
  TRANSACTION_RETRY_DELAY_MS_MAX,
  type RetryDelay,
  backoffMs,
} from "./backoff.js";
import { checkOptions, shown } from "../arguments/check.js";
import { inMs, textAdvice } from "../arguments/duration.js";
import { clearTimeout, setTimeout } from "../model/clock.js";
import { type Conflict, KvConflictError, invalid, misuse } from "../model/errors.js";
import { printKey } from "../codec/key-text.js";
import { assign } from "../model/define.js";
import { NativePromise } from "../model/native-promise.js";
import { notUnique } from "../session/violations.js";
import type { Session } from "../session/session.js";
import { checkSignal, raced } from "../arguments/signal.js";
import { Transaction, commit, conflictOf, end, isBroken } from "./transaction-view.js";
import type { KvCommitRefusal, KvTransaction, KvTransactionResult } from "../model/types.js";

/** Default number of retries. */
const RETRIES_DEFAULT = 10;

export async function transaction<T>(
  session: Session,
  run: (tx: KvTransaction) => T | Promise<T>,
  options: unknown,
): Promise<KvTransactionResult<T>> {
  if (typeof run !== "function") {
    throw misuse(`kv.transaction: expected a function: received ${shown(run)}`);
  }
  const given = checkOptions("kv.transaction", options, ["maxRetries", "retryDelay", "signal"]);
  const maxRetries = checkRetries(given.maxRetries);
  const retryDelay = checkRetryDelay(given.retryDelay);
  const signal = checkSignal("kv.transaction", given.signal);
  session.requireOpen();
  for (let lost = 1; ; lost++) {
    signal?.throwIfAborted();
    const tx = new Transaction(session);
    const done = await attempt(tx, run, signal);
    if (isResult(done)) return done;
    // A lost lock does not come back.
    if (done.messages.length > 0) {
      throw new KvConflictError(
        `kv.transaction: the lock of message ${done.messages.join(", ")} is lost, so another consumer ` +
          "may have it: nothing was written",
        done,
      );
    }
    if (lost > maxRetries) {
      throw new KvConflictError(
        `kv.transaction: each of its ${lost} attempts met a change of what it had read ` +
          `(maxRetries: ${maxRetries})${describeConflict(done)}; try again later, raise maxRetries, or read less`,
        done,
      );
    }
    await pause(backoffMs(lost, Math.random(), retryDelay), signal);
  }
}

/** One attempt: its result, or the changes of other writers that it conflicts with. */
async function attempt<T>(
  tx: Transaction,
  run: (tx: KvTransaction) => T | Promise<T>,
  signal: AbortSignal | undefined,
): Promise<KvTransactionResult<T> | Conflict> {
  let value: T;
  try {
    value = await run(tx);
  } catch (error) {
    // An error after inconsistent reads may be caused by them, so it counts as a conflict.
    if (isBroken(tx)) return conflictOf(tx, []);
    // The function may have failed because of the signal.
    signal?.throwIfAborted();
    throw error;
  } finally {
    end(tx);
  }
  if (isBroken(tx)) return conflictOf(tx, []);
  signal?.throwIfAborted();
  const result = await commit(tx);
  if (!result.ok) {
    const { failed, violations } = result as KvCommitRefusal;
    // Another try would write the same.
    if (violations !== undefined) throw notUnique(violations);
    return conflictOf(tx, failed);
  }
  // Keeps the object, because placeholders find their UUID by it.
  return assign(result, "value", value);
}

function isResult<T>(done: KvTransactionResult<T> | Conflict): done is KvTransactionResult<T> {
  return Object.hasOwn(done, "ok");
}

/** The last conflict, as text. */
function describeConflict({ keys, ranges }: Conflict): string {
  const more = keys.length + ranges.length - 1;
  if (more < 0) return "";
  const first = keys.length > 0 ? `key ${printKey(keys[0])}` : "a range that it has listed";
  return `, last of ${first}${more > 0 ? ` and ${more} more` : ""}`;
}

function checkRetryDelay(given: unknown): RetryDelay {
  if (given === undefined) return RETRY_DELAY_DEFAULT;
  const method = "kv.transaction: retryDelay";
  const { initial, max } = checkOptions(method, given, ["initial", "max"]);
  const maxMs = checkMs(`${method}.max`, max);
  const initialMs = checkMs(`${method}.initial`, initial);
  if (initialMs !== undefined && maxMs !== undefined && initialMs > maxMs) {
    throw invalid(`${method}: initial (${initialMs}) is above max (${maxMs})`);
  }
  const otherwise = RETRY_DELAY_DEFAULT;
  return {
    initialMs: initialMs ?? Math.min(otherwise.initialMs, maxMs ?? otherwise.initialMs),
    maxMs: maxMs ?? Math.max(otherwise.maxMs, initialMs ?? 0),
  };
}

function checkMs(what: string, given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const ms = inMs(given);
  if (typeof ms === "number" && ms >= 0 && ms <= TRANSACTION_RETRY_DELAY_MS_MAX) return ms;
  throw invalid(
    `${what} must be milliseconds from 0 to ${TRANSACTION_RETRY_DELAY_MS_MAX}: ` +
      `received ${shown(given)}${textAdvice(given)}`,
  );
}

function checkRetries(given: unknown): number {
  if (given === undefined) return RETRIES_DEFAULT;
  if (typeof given === "number" && given >= 0 && (Number.isInteger(given) || given === Infinity)) {
    return given;
  }
  throw invalid(
    `kv.transaction: maxRetries must be a non-negative integer or Infinity: received ${shown(given)}`,
  );
}

/** Waits; rejects with the reason of the signal if that is aborted, before or meanwhile. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new NativePromise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  try {
    await (signal === undefined ? over : raced(signal, () => over));
  } finally {
    clearTimeout(timer);
  }
}
