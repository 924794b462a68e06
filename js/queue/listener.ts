// Duty: listening to a queue: takes deliveries, runs the handler, and reports how each ended.
// Invariant: every delivery is settled exactly once: done when the handler's promise resolves, unless a
// commit has acknowledged its message before;
// failed when it rejects, when the handler throws, or when the message cannot be read; returned
// unused when the listener has stopped. The end of a listener comes after the end of its handlers, for a
// bounded time, and after their settlements are durable.

import { onAbort } from "../arguments/signal.js";
import { headersIn } from "../codec/message-context.js";
import { Writer } from "../codec/writer.js";
import { PROCESSES, type ProcessOperation } from "../instruments/channels.js";
import { type Failure, errorOf, isDoNotRetry, readFailure } from "../model/errors.js";
import {
  ACKNOWLEDGED,
  CALL_ACKNOWLEDGED,
  DEAD,
  DELIVERY,
  DONE,
  FAILED,
  LOCK_LOST,
  RETURNED,
} from "../native/contract.js";
import { putText, readU32 } from "../native/frame.js";
import { NativePromise } from "../model/native-promise.js";
import type { Receiver } from "../native/port.js";
import { LOCK_BYTES, MessageLock } from "./message-lock.js";
import { HandlerSignal, lockLost } from "./handler-signal.js";
import { clearTimeout, setImmediate, setTimeout } from "../model/clock.js";
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
  /** Longest wait for running handlers when the listener ends, in ms. */
  readonly drainMs: number;
  /** Whether the close of the handle ends the listener as a signal does: once its handlers have ended. */
  readonly closeDrains: boolean;
  /** Rejects when the message was not handled. */
  handle(message: RawMessage, lock: MessageLock, stop: HandlerSignal): Promise<void>;
  /** Whether the reason of a failure is kept with the message, and may end its retries. */
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
  #drained: Promise<void> | null = null;
  readonly #running = new Set<Promise<void>>();
  /** Messages that wait for the end of a handler, whose message its commit has acknowledged. */
  #waiting: { number: number; message: RawMessage; lock: MessageLock }[] = [];
  /** Of running handlers, by the numbers of their deliveries. */
  readonly #signals = new Map<number, { lock: MessageLock; stop: HandlerSignal }>();

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
    session.ending.add(this.#drain);
  }

  /** Takes messages until the signal is aborted or the handle is closed, and then ends. */
  async until(signal: AbortSignal | undefined): Promise<void> {
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => this.#stop());
    await this.ended;
    unfollow?.();
    // Thrown here, so that the error has the caller's stack.
    if (this.#failure !== null) throw errorOf(this.#failure);
    if (signal?.aborted || this.#options.closeDrains) await this.#settled();
  }

  /** Accepts no more messages; running handlers continue. */
  #stop(): void {
    if (this.#stopped || this.#over) return;
    this.#stopped = true;
    this.#returnWaiting();
    this.#session.native.unlisten(this.#id);
  }

  /**
   * Stops, and waits for running handlers. Those that run for longer lose their messages when the locks
   * expire. Never rejects.
   */
  readonly #drain = (): Promise<void> => (this.#drained ??= this.#drainOnce());

  async #drainOnce(): Promise<void> {
    this.#stop();
    await this.ended;
    if (this.#running.size === 0) return;
    await within(this.#options.drainMs, NativePromise.all(this.#running));
    if (this.#running.size > 0) this.#session.native.giveUp(this.#id);
  }

  /** Waits until the handlers have ended, and what they settled is durable. */
  async #settled(): Promise<void> {
    await this.#drain();
    const { closing, port } = this.#session;
    if (closing !== null) return closing;
    // After that time the locks have expired, and what is not durable is delivered again.
    await within(port.bounds.lockMs, call(this.#session, CALL_ACKNOWLEDGED));
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === LOCK_LOST && data !== null) {
      const number = data.readDoubleLE(0);
      // After the results of commits that arrived before: one of them may have acknowledged the message.
      setImmediate(() => this.#loseLock(number));
      return;
    }
    if (kind !== DELIVERY || data === null) {
      if (data !== null) this.#failure = readFailure(data);
      this.#over = true;
      this.#returnWaiting();
      this.#session.port.forget(this.#id);
      this.#session.port.settled();
      this.#forgetIfDone();
      this.#resolve();
      return;
    }
    let at = 4;
    for (let left = readU32(data, 0); left > 0; left--) {
      const number = data.readDoubleLE(at);
      const lockAt = at + NUMBER_BYTES;
      const message = readMessage(data, lockAt + LOCK_BYTES);
      at = message.end;
      const lock = new MessageLock(message.id, data, lockAt);
      if (this.#stopped || this.#session.closed) this.#settle(number, RETURNED);
      else if (this.#running.size < this.#options.credits) this.#start(number, message, lock);
      else this.#waiting.push({ number, message, lock });
    }
  }

  #returnWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { number } of waiting) this.#settle(number, RETURNED);
  }

  #loseLock(number: number): void {
    const handling = this.#signals.get(number);
    if (handling === undefined || handling.lock.acknowledged) return;
    const { stop, lock } = handling;
    if (stop.whyLost === null) stop.abort(lockLost(lock));
    else void stop.whyLost().then((reason) => stop.abort(reason));
  }

  #start(number: number, message: RawMessage, lock: MessageLock): void {
    const running = this.#deliver(number, message, lock).finally(() => {
      this.#running.delete(running);
      const next = this.#waiting.shift();
      if (next !== undefined) this.#start(next.number, next.message, next.lock);
      this.#forgetIfDone();
    });
    this.#running.add(running);
  }

  async #deliver(number: number, message: RawMessage, lock: MessageLock): Promise<void> {
    const stop = new HandlerSignal();
    this.#signals.set(number, { lock, stop });
    try {
      const run = () => this.#options.handle(message, lock, stop);
      await (PROCESSES.isObserved ? this.#observed(message, run) : run());
    } catch (error) {
      this.#settle(number, lock.acknowledged ? ACKNOWLEDGED : FAILED, error);
      return;
    } finally {
      this.#signals.delete(number);
    }
    this.#settle(number, lock.acknowledged ? ACKNOWLEDGED : DONE);
  }

  /** Runs the handler, and publishes its start and its end. */
  #observed(message: RawMessage, run: () => Promise<void>): Promise<void> {
    const { queue } = this.#options;
    const { data, start, end } = message;
    const event: ProcessOperation = {
      operation: "process",
      database: this.#session.database,
      synchronous: false,
      queue,
      headers: headersIn(data, start, end),
      messageId: String(message.id),
      attempts: message.attempts,
      enqueuedAt: new Date(message.enqueuedMs),
    };
    return PROCESSES.trace(event, run);
  }

  #settle(number: number, outcome: number, error?: unknown): void {
    if (outcome !== FAILED || !this.#options.keepsReasons) {
      this.#session.native.settle(this.#id, number, outcome, NO_BYTES, 0);
      return;
    }
    const reason = new Writer();
    putReason(reason, error);
    const kind = isDoNotRetry(error) ? DEAD : FAILED;
    this.#session.native.settle(this.#id, number, kind, reason.buf, reason.pos);
  }

  #forgetIfDone(): void {
    if (!this.#over || this.#running.size > 0) return;
    this.#session.ending.delete(this.#drain);
    if (!this.#session.closed) this.#session.native.forgetListener(this.#id);
  }
}

/** Waits until the work ends, at most this long; rejects if it does in that time. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new NativePromise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  try {
    await NativePromise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
