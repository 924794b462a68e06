// Duty: receive(), and the messages that it returns: acknowledge, reject, extend the lock.
// Invariant: a message that arrives after its call was aborted, or after the handle was closed, goes back
// unused.

import { call, callWhileClosing, writesCalledBefore } from "../session/call.js";
import { clearTimeout, setTimeout } from "../model/clock.js";
import { headersIn } from "../codec/message-context.js";
import { Writer } from "../codec/writer.js";
import { CLOSED, type Failure, bugOf, readFailure } from "../model/errors.js";
import { putText } from "../native/frame.js";
import {
  CALL_EXTEND,
  CALL_SETTLE,
  DEAD,
  DONE,
  FAILED,
  REPLIED,
  RETURNED,
} from "../native/contract.js";
import { assign } from "../model/define.js";
import { type Job, complete, jobOf, tellProgress, tellStarted } from "./jobs.js";
import { LOCK_BYTES, LockedMessage, MessageLock } from "./message-lock.js";
import { NativePromise } from "../model/native-promise.js";
import type { Receiver } from "../native/port.js";
import { checkExtend, checkNack, checkReceive } from "./queue-options.js";
import { type MessageInfo, infoOf, putReason, readMessage } from "./raw-message.js";
import type { Session } from "../session/session.js";
import { onAbort } from "../arguments/signal.js";

export class KvMessage extends LockedMessage {
  readonly #session: Session;
  readonly #job: Job;
  readonly #lock: MessageLock;

  constructor(session: Session, job: Job, lock: MessageLock, info: MessageInfo) {
    super(lock, info);
    this.#session = session;
    this.#job = job;
    this.#lock = lock;
  }

  progress(value: unknown): Promise<void> {
    return tellProgress(this.#session, this.#job, value);
  }

  async ack(result?: unknown): Promise<boolean> {
    this.#session.requireOpen();
    if (this.#job.keptMs !== undefined && !this.#lock.acknowledged) {
      return await complete(this.#session, this.#job, this, result);
    }
    return await settle(this.#session, this.#lock, DONE);
  }

  async nack(options?: unknown): Promise<boolean> {
    const { delayMs, error, retries } = checkNack(options, this.#session.limits);
    this.#session.requireOpen();
    return await settle(this.#session, this.#lock, retries ? FAILED : DEAD, delayMs, error);
  }

  async extend(ms: number): Promise<boolean> {
    const lockMs = checkExtend(ms, this.#session.port.bounds);
    const frame = headOf(this.#lock);
    frame.f64(lockMs);
    return (await call(this.#session, CALL_EXTEND, frame))[0] === 1;
  }
}

function headOf(lock: MessageLock): Writer {
  const frame = new Writer(SETTLE_BYTES);
  lock.put(frame);
  return frame;
}

/** Room for a settlement without a reason. */
const SETTLE_BYTES = 64;

const NO_REASON: unknown = assign(new Error("nack() was called without an error"), "name", "Nack");

async function settle(
  session: Session,
  lock: MessageLock,
  outcome: number,
  delayMs = -1,
  error?: unknown,
): Promise<boolean> {
  const frame = headOf(lock);
  frame.u8(outcome);
  if (outcome === FAILED) frame.f64(delayMs);
  if (outcome === FAILED || outcome === DEAD) {
    putReason(frame, error === undefined ? NO_REASON : error);
  }
  return (await callWhileClosing(session, CALL_SETTLE, frame))[0] === 1;
}

export async function receive(
  session: Session,
  queue: string,
  options: unknown,
  headers?: Record<string, string>,
): Promise<KvMessage | null> {
  const { lockMs, waitMs, signal } = checkReceive(options, session.port.bounds);
  session.requireOpen();
  signal?.throwIfAborted();
  // A receiver that waits also gets messages that are committed later. One that does not wait must
  // see all messages that were enqueued before.
  const before = waitMs === 0 ? writesCalledBefore(session, signal) : null;
  if (before !== null) {
    await before;
    session.requireOpen();
    signal?.throwIfAborted();
  }
  const pending = new PendingReceive(session);
  session.ending.add(pending.end);
  try {
    pending.start(queue, lockMs, waitMs, signal);
    await pending.answered;
    const data = pending.answer();
    const message = await taken(session, queue, data, signal);
    if (headers !== undefined && data !== null) Object.assign(headers, headersOf(data));
    return message;
  } finally {
    session.ending.delete(pending.end);
    pending.ended();
  }
}

/** The context that the message of an answer carries. */
function headersOf(data: Buffer): Record<string, string> {
  const { start, end } = readMessage(data, LOCK_BYTES);
  return headersIn(data, start, end);
}

/** The message of an answer, unless no caller waits for it any more. */
async function taken(
  session: Session,
  queue: string,
  data: Buffer | null,
  signal: AbortSignal | undefined,
): Promise<KvMessage | null> {
  if (data === null) {
    session.requireOpen();
    signal?.throwIfAborted();
    return null;
  }
  const raw = readMessage(data, LOCK_BYTES);
  const messageLock = new MessageLock(raw.id, data, 0);
  if (session.closed || signal?.aborted) {
    // If that fails, the lock expires by itself.
    await settle(session, messageLock, RETURNED).catch(() => false);
    session.requireOpen();
    signal?.throwIfAborted();
  }
  let info: MessageInfo;
  try {
    info = infoOf(raw);
  } catch (error) {
    // No handler can read it, so the delivery fails as after an error of a handler.
    await settle(session, messageLock, FAILED, -1, error);
    throw error;
  }
  const job = jobOf(queue, raw);
  tellStarted(session, job);
  return new KvMessage(session, job, messageLock, info);
}

class PendingReceive implements Receiver {
  readonly answered: Promise<void>;
  /** Resolves when the message, if any, has its receiver or is back in the queue. */
  readonly #over: Promise<void>;
  /** The caller has the answer. */
  ended!: () => void;
  readonly #session: Session;
  readonly #id: number;
  #data: Buffer | null = null;
  #failure: Failure | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** Stops following the signal. */
  #unfollow = (): void => {};
  #resolve!: () => void;

  constructor(session: Session) {
    this.#session = session;
    this.answered = new NativePromise((resolve) => (this.#resolve = resolve));
    this.#over = new NativePromise((resolve) => (this.ended = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
  }

  start(queue: string, lockMs: number, waitMs: number, signal: AbortSignal | undefined): void {
    const session = this.#session;
    // Sends earlier calls first.
    session.flush();
    const name = new Writer(SETTLE_BYTES);
    putText(name, queue);
    const { context, native } = session;
    try {
      if (context !== "") native.trace(context);
      native.receive(this.#id, lockMs, waitMs === 0, name.buf, name.pos);
      if (context !== "") native.trace("");
    } catch (error) {
      this.#end(bugOf(error));
      return;
    }
    if (waitMs > 0) this.#timer = setTimeout(this.#cancel, waitMs);
    if (signal !== undefined) this.#unfollow = onAbort(signal, this.#cancel);
  }

  /** A message that the addon has already claimed is still delivered. */
  readonly #cancel = (): void => this.#session.native.receiveCancel(this.#id);

  /** Ends the wait. */
  readonly end = (): Promise<void> => {
    this.#cancel();
    return this.#over;
  };

  receive(kind: number, data: Buffer | null): void {
    if (kind === REPLIED) {
      this.#data = data;
      this.#end(null);
    } else {
      this.#end(data === null ? CLOSED : readFailure(data));
    }
  }

  #end(failure: Failure | null): void {
    this.#failure = failure;
    clearTimeout(this.#timer);
    this.#unfollow();
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }

  /** Throws the failure from the caller's stack. */
  answer(): Buffer | null {
    if (this.#failure !== null) throw this.#session.errorOf(this.#failure);
    return this.#data;
  }
}
