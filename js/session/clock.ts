// Duty: a clock that is given to a database in memory: its checks, and how the database follows it.
// Invariant: what was called before the clock moves is done at the time before.

import { shown } from "../arguments/check.js";
import { CLOSED, type Failure, bugOf, invalid, misuse, readFailure } from "../model/errors.js";
import { TIME_MS_MAX } from "../model/limits.js";
import { NativePromise } from "../model/native-promise.js";
import type { KvClock } from "../model/types.js";
import { REPLIED } from "../native/contract.js";
import type { Receiver } from "../native/port.js";
import { ringAlarms } from "./alarm.js";
import type { Session } from "./session.js";

/** The clock of an option, whose time it tells too. */
export function checkClock(clock: unknown): { clock: KvClock; nowMs: number } | undefined {
  if (clock === undefined) return undefined;
  const { now, follow } = (clock ?? {}) as { now?: unknown; follow?: unknown };
  if (typeof now !== "function" || typeof follow !== "function") {
    throw misuse(
      `clock must be a clock, as testClock() of openkv/testing makes: received ${shown(clock)}`,
    );
  }
  const nowMs: unknown = (clock as KvClock).now();
  if (Number.isInteger(nowMs) && Number(nowMs) >= 0 && Number(nowMs) <= TIME_MS_MAX) {
    return { clock: clock as KvClock, nowMs: nowMs as number };
  }
  throw invalid(`clock.now() must be whole ms since the epoch: received ${shown(nowMs)}`);
}

/**
 * Lets the database of a session have the time of a clock, until the session is closed. Resolves when it
 * has that of the present, if the clock was moved meanwhile.
 */
export async function followClock(session: Session, clock: KvClock): Promise<void> {
  session.clock = clock;
  const unfollow = clock.follow((nowMs) => moveTo(session, nowMs));
  session.ending.add(async () => unfollow());
  await moveTo(session, clock.now());
}

async function moveTo(session: Session, nowMs: number): Promise<void> {
  if (session.closed) return;
  session.flush();
  const before = session.order.beforeAll();
  if (before !== null) await before;
  if (session.closed) return;
  const setting = new Setting(session);
  setting.start(nowMs);
  await setting.done;
  if (setting.failure !== null && !session.closed) throw session.errorOf(setting.failure);
  await ringAlarms(session, nowMs);
}

/** Waits for the event that what is due is done. */
class Setting implements Receiver {
  readonly done: Promise<void>;
  failure: Failure | null = null;
  readonly #session: Session;
  readonly #id: number;
  #resolve!: () => void;

  constructor(session: Session) {
    this.#session = session;
    this.done = new NativePromise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
  }

  start(nowMs: number): void {
    try {
      this.#session.native.setClock(this.#id, nowMs);
    } catch (error) {
      this.#end(bugOf(error));
    }
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === REPLIED) this.#end(null);
    else this.#end(data === null ? CLOSED : readFailure(data));
  }

  #end(failure: Failure | null): void {
    this.failure = failure;
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }
}
