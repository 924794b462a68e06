// Duty: the signal of a message in a handler, which says that the handler should stop: its time is over, or
// the lock of its message is lost.

import { assign } from "../model/define.js";
import { NativePromise } from "../model/native-promise.js";
import { clearTimeout, setTimeout } from "../model/clock.js";
import { LockedMessage, type MessageLock } from "./message-lock.js";
import { type Job, tellProgress } from "./jobs.js";
import type { MessageInfo } from "./raw-message.js";
import type { Session } from "../session/session.js";

/** Its AbortSignal is made when a handler first reads it. */
export class HandlerSignal {
  #controller: AbortController | null = null;
  #reason: Error | null = null;
  /** Called when a handler first reads the signal. */
  onRequested: (() => void) | null = null;
  /** Finds out why the lock of the message is lost; `null` if it cannot have been cancelled. */
  whyLost: (() => Promise<Error>) | null = null;

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      this.onRequested?.();
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}

/** A message as the handler of `listen` gets it. */
export class HandledMessage extends LockedMessage {
  readonly #session: Session;
  readonly #job: Job;
  readonly #signal: HandlerSignal;

  constructor(
    session: Session,
    job: Job,
    lock: MessageLock,
    info: MessageInfo,
    signal: HandlerSignal,
  ) {
    super(lock, info);
    this.#session = session;
    this.#job = job;
    this.#signal = signal;
  }

  progress(value: unknown): Promise<void> {
    return tellProgress(this.#session, this.#job, value);
  }

  get signal(): AbortSignal {
    return this.#signal.signal;
  }
}

/** The reason of the signal when the lock of a message is lost. */
export function lockLost({ id }: MessageLock): Error {
  const message = `the lock of message ${id} is lost, so another consumer may have it`;
  return assign(new Error(message), "name", "LockLost");
}

/** The reason of the signal when the message is cancelled. */
export function cancelled({ id }: MessageLock): Error {
  return assign(new Error(`message ${id} is cancelled`), "name", "Cancelled");
}

/**
 * Runs a handler. If it takes longer than `timeoutMs`, its signal aborts and the promise rejects; the
 * handler's own end has no effect then.
 */
export async function withinTime(
  run: () => unknown,
  timeoutMs: number | undefined,
  signal: HandlerSignal,
): Promise<unknown> {
  if (timeoutMs === undefined) return await run();
  let timer: NodeJS.Timeout | undefined;
  const late = new NativePromise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = `the handler took longer than its timeout of ${timeoutMs} ms`;
      const reason = assign(new Error(message), "name", "TimeoutError");
      signal.abort(reason);
      reject(reason);
    }, timeoutMs);
  });
  try {
    return await NativePromise.race([(async () => await run())(), late]);
  } finally {
    clearTimeout(timer);
  }
}
