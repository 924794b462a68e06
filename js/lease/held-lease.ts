// Duty: a lease that a caller holds: it is renewed while it is held, and its signal is aborted when it is not any more.
// Invariant: by the clock of this process the lease ends no later than its entry does by that of the database:
// time counts from before the commit that set the expiry. A clock that jumps ends the entry only, and then the checks
// of the token fail.

import { misuse, KvError } from "../model/errors.js";
import { defineProperty } from "../model/define.js";
import { shown } from "../arguments/check.js";
import { printKey } from "../codec/key-text.js";
import { setAlarm, timeOf } from "../session/alarm.js";
import type { Session } from "../session/session.js";
import type { KvKey } from "../model/types.js";
import { deleteEntry, renewEntry } from "./lease-entry.js";

const ASYNC_DISPOSE: symbol = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

/** A lease is renewed this many times before it would end. */
const RENEWALS = 3;
/** After a failure it is tried again this many times until it ends. */
const RETRIES = 10;

let tokenIn: (lease: object) => { key: KvKey; token: string } | undefined;

export class KvLease {
  readonly key: KvKey;
  readonly token: string;
  readonly signal: AbortSignal;
  readonly #session: Session;
  readonly #entry: Buffer;
  readonly #ttlMs: number;
  readonly #controller = new AbortController();
  /** The time before the last commit that set the expiry. */
  #renewedMs: number;
  #renewing = false;
  #ended = false;
  #cancel: () => void = () => {};

  /** `entry`: the encoded key. `sentMs`: the time before the commit that acquired it. */
  constructor(
    session: Session,
    key: KvKey,
    entry: Buffer,
    token: string,
    ttlMs: number,
    sentMs: number,
  ) {
    this.key = key;
    this.token = token;
    this.signal = this.#controller.signal;
    this.#session = session;
    this.#entry = entry;
    this.#ttlMs = ttlMs;
    this.#renewedMs = sentMs;
    session.ending.add(this.#atClose);
    this.#wait(sentMs + ttlMs / RENEWALS);
  }

  /** Lets go of it. Whether it was still held. */
  async release(): Promise<boolean> {
    if (this.#ended) return false;
    this.end();
    const result = await deleteEntry(this.#session, this.#entry, this.token);
    return result.ok;
  }

  /** Ends the renewals, and leaves the entry as it is. */
  end(reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancel();
    this.#session.ending.delete(this.#atClose);
    this.#controller.abort(reason);
  }

  /** The handle is being closed: what is called now is the last that it hands over. */
  readonly #atClose = async (): Promise<void> => {
    this.end();
    try {
      await deleteEntry(this.#session, this.#entry, this.token, true);
    } catch {
      // The entry expires.
    }
  };

  /** The alarm is at `atMs`, but not after the end of the lease. */
  #wait(atMs: number): void {
    const endMs = this.#renewedMs + this.#ttlMs;
    const ms = Math.max(Math.min(atMs, endMs) - timeOf(this.#session), 0);
    this.#cancel = setAlarm(this.#session, ms, () => this.#ring());
  }

  #ring(): Promise<void> | void {
    if (this.#ended) return;
    const nowMs = timeOf(this.#session);
    if (nowMs - this.#renewedMs >= this.#ttlMs) {
      this.#lose(`it was not renewed within its ttl of ${this.#ttlMs} ms`);
    } else if (this.#renewing) {
      this.#wait(Number.POSITIVE_INFINITY);
    } else {
      return this.#renew(nowMs);
    }
  }

  async #renew(sentMs: number): Promise<void> {
    this.#renewing = true;
    // Until the answer, only the end of the lease matters.
    this.#wait(Number.POSITIVE_INFINITY);
    let next = sentMs + this.#ttlMs / RETRIES;
    try {
      const result = await renewEntry(this.#session, this.#entry, this.token, this.#ttlMs);
      if (this.#ended) return;
      if (!result.ok) return this.#lose("its entry has expired, or was changed");
      this.#renewedMs = sentMs;
      next = sentMs + this.#ttlMs / RENEWALS;
    } catch (error) {
      if (this.#ended) return;
      if (this.#session.closed) return this.end(error);
      // It is tried again until the lease ends.
    } finally {
      this.#renewing = false;
    }
    this.#cancel();
    this.#wait(next);
  }

  #lose(why: string): void {
    this.end(lost("kv.lease", this.key, why));
  }

  static {
    tokenIn = (lease) => (#session in lease ? lease : undefined);
    defineProperty(this.prototype, ASYNC_DISPOSE, {
      async value(this: KvLease): Promise<void> {
        await this.release();
      },
      writable: true,
      configurable: true,
    });
  }
}

export interface KvLease {
  [Symbol.asyncDispose](): Promise<void>;
}

/** The error of a lease that another caller may have. */
export function lost(method: string, key: KvKey, why: string): KvError {
  return new KvError(
    "CONFLICT",
    `${method}: the lease of ${printKey(key)} is lost, so another caller may have it: ${why}`,
  );
}

/** The key and the token of a lease that a caller gives to `method`. */
export function requireLease(method: string, lease: unknown): { key: KvKey; token: string } {
  const found = typeof lease === "object" && lease !== null ? tokenIn(lease) : undefined;
  if (found !== undefined) return found;
  throw misuse(`${method}: lease must be one that kv.lease() gave: received ${shown(lease)}`);
}
