// Duty: listening to a queue: takes deliveries, runs the handler, and reports how each ended.
// Invariant: every delivery is settled exactly once: done when the handler's promise resolves;
// failed when it rejects, when the handler throws, or when the message cannot be read; returned
// unused when the listener has stopped.

import { onAbort } from "../arguments/signal.js";
import { Writer } from "../codec/writer.js";
import { type Failure, errorOf, readFailure } from "../model/errors.js";
import { CALL_ACKNOWLEDGED, DELIVERY, DONE, FAILED, RETURNED } from "../native/contract.js";
import { putText, readU32 } from "../native/frame.js";
import { NativePromise } from "../model/native-promise.js";
import type { Receiver } from "../native/port.js";
import { call } from "../session/call.js";
import type { Session } from "../session/session.js";
import { type RawMessage, putReason, readMessage } from "./raw-message.js";

/** Size of the part of a delivery before its message: the number to settle it with. */
const NUMBER_BYTES = 8;
const NO_BYTES = Buffer.alloc(0);

/** The queue of a listener and its handler. */
export interface ListenerOptions {
  /** The queue's name; "" is Deno's. */
  readonly queue: string;
  /** Messages handled at a time. */
  readonly credits: number;
  readonly lockMs: number;
  /** Rejects when the message was not handled. */
  handle(message: RawMessage): Promise<void>;
  /** Whether the reason of a failure is kept with the message. */
  readonly keepsReasons: boolean;
}

export class Listener implements Receiver {
  /** Resolves when no more messages are taken. */
  readonly ended: Promise<void>;
  #failure: Failure | null = null;
  readonly #session: Session;
  readonly #options: ListenerOptions;
  readonly #id: number;
  #resolve!: () => void;
  #stopped = false;
  #over = false;
  readonly #running = new Set<Promise<void>>();

  constructor(session: Session, options: ListenerOptions) {
    this.#session = session;
    this.#options = options;
    this.ended = new NativePromise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
    const name = new Writer();
    putText(name, options.queue);
    const { credits, lockMs } = options;
    session.native.listen(this.#id, credits, lockMs, name.buf, name.pos);
  }

  /** Accepts no more messages; running handlers continue. */
  stop(): void {
    if (this.#stopped || this.#over || this.#session.closed) return;
    this.#stopped = true;
    this.#session.native.unlisten(this.#id);
  }

  /** Takes messages until the signal is aborted, and then waits for the handlers; or until close(). */
  async until(signal: AbortSignal | undefined): Promise<void> {
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => this.stop());
    await this.ended;
    if (signal?.aborted) await this.finished();
    unfollow?.();
    this.throwFailure();
  }

  /** Waits for running handlers; of a remote database also until the server knows their outcomes. */
  async finished(): Promise<void> {
    await this.ended;
    while (this.#running.size > 0) await NativePromise.all(this.#running);
    if (this.#session.remote && !this.#session.closed) await call(this.#session, CALL_ACKNOWLEDGED);
  }

  /** Throws the failure from the caller's stack. */
  throwFailure(): void {
    if (this.#failure !== null) throw errorOf(this.#failure);
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind !== DELIVERY || data === null) {
      if (data !== null) this.#failure = readFailure(data);
      this.#over = true;
      this.#session.port.forget(this.#id);
      this.#session.port.settled();
      this.#forgetIfDone();
      this.#resolve();
      return;
    }
    let at = 4;
    for (let left = readU32(data, 0); left > 0; left--) {
      const number = data.readDoubleLE(at);
      const message = readMessage(data, at + NUMBER_BYTES);
      at = message.end;
      if (this.#stopped || this.#session.closed) this.#settle(number, RETURNED);
      else this.#start(number, message);
    }
  }

  #start(number: number, message: RawMessage): void {
    const running = this.#deliver(number, message).finally(() => {
      this.#running.delete(running);
      this.#forgetIfDone();
    });
    this.#running.add(running);
  }

  async #deliver(number: number, message: RawMessage): Promise<void> {
    try {
      await this.#options.handle(message);
    } catch (error) {
      this.#settle(number, FAILED, error);
      return;
    }
    this.#settle(number, DONE);
  }

  #settle(number: number, outcome: number, error?: unknown): void {
    if (outcome !== FAILED || !this.#options.keepsReasons) {
      this.#session.native.settle(this.#id, number, outcome, NO_BYTES, 0);
      return;
    }
    const reason = new Writer();
    putReason(reason, error);
    this.#session.native.settle(this.#id, number, outcome, reason.buf, reason.pos);
  }

  #forgetIfDone(): void {
    if (!this.#over || this.#running.size > 0 || this.#session.closed) return;
    this.#session.native.forgetListener(this.#id);
  }
}
