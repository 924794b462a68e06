// Duty: calls: a request of one command with its frame, and the one answer to it.

import { NativePromise } from "../model/native-promise.js";
import type { Writer } from "../codec/writer.js";
import { CLOSED, type Failure, bugOf, readFailure } from "../model/errors.js";
import { REPLIED } from "../native/contract.js";
import type { Receiver } from "../native/port.js";
import type { Session } from "./session.js";
import { onAbort, raced } from "../arguments/signal.js";

const NO_BYTES = Buffer.alloc(0);

/**
 * Runs a command of js/native/contract.md; resolves to the bytes of the answer. If the signal is
 * already aborted, the call is not sent; if it aborts later, the addon cancels the work.
 */
export async function call(
  session: Session,
  command: number,
  frame?: Writer,
  signal?: AbortSignal,
): Promise<Buffer> {
  session.requireOpen();
  return await callWhileClosing(session, command, frame, signal);
}

/** As {@link call}; a handle that is closing still takes CALL_SETTLE. */
export async function callWhileClosing(
  session: Session,
  command: number,
  frame?: Writer,
  signal?: AbortSignal,
): Promise<Buffer> {
  if (signal?.aborted) throw signal.reason;
  const pending = new PendingCall(session);
  pending.start(command, frame, signal);
  await pending.answered;
  return pending.answer();
}

/** As {@link call}, after all writes that were called before; for reads of more than one range. */
export async function callBehindWrites(
  session: Session,
  command: number,
  frame?: Writer,
  signal?: AbortSignal,
): Promise<Buffer> {
  const before = writesCalledBefore(session, signal);
  if (before !== null) await before;
  return await call(session, command, frame, signal);
}

/** Resolves when all writes that were called before are answered, and rejects when the signal is aborted; null: there are none. */
export function writesCalledBefore(
  session: Session,
  signal?: AbortSignal,
): Promise<unknown> | null {
  session.requireOpen();
  const before = session.order.beforeAll();
  return before === null || signal === undefined ? before : raced(signal, () => before);
}

class PendingCall implements Receiver {
  readonly answered: Promise<void>;
  #data: Buffer = NO_BYTES;
  #failure: Failure | null = null;
  #resolve!: () => void;
  /** Removes the listener of the signal. */
  #unfollow: (() => void) | null = null;
  readonly #id: number;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.answered = new NativePromise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
  }

  start(command: number, frame: Writer | undefined, signal: AbortSignal | undefined): void {
    const { native } = this.#session;
    const buf = frame?.buf ?? NO_BYTES;
    const length = frame?.pos ?? 0;
    // Sends earlier calls first.
    this.#session.flush();
    const { context } = this.#session;
    try {
      if (context !== "") native.trace(context);
      if (signal === undefined) {
        native.call(this.#id, command, buf, length);
      } else {
        native.callCancellable(this.#id, command, buf, length);
        this.#unfollow = onAbort(signal, () => native.cancel(this.#id));
      }
      if (context !== "") native.trace("");
    } catch (error) {
      this.#end(bugOf(error));
    }
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === REPLIED) {
      this.#data = data ?? NO_BYTES;
      this.#end(null);
    } else {
      this.#end(data === null ? CLOSED : readFailure(data));
    }
  }

  #end(failure: Failure | null): void {
    this.#unfollow?.();
    this.#failure = failure;
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }

  /** Throws on the caller's stack. */
  answer(): Buffer {
    if (this.#failure !== null) throw this.#session.errorOf(this.#failure);
    return this.#data;
  }
}
