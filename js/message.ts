// Duty: messages in their receiver's hands: receive, and how each is settled.
// Invariant: a message that arrives when nobody wants it any more goes back unseen.

import { call } from "./call.js";
import { clearTimeout, setTimeout } from "./clock.js";
import { Writer } from "./codec/writer.js";
import { CLOSED, type Failure, bugOf, readFailure } from "./errors.js";
import { putText } from "./frame.js";
import { CALL_EXTEND, CALL_SETTLE, DONE, FAILED, REPLIED, RETURNED } from "./native.js";
import type { Receiver } from "./port.js";
import { checkExtend, checkNack, checkReceive } from "./queue-options.js";
import { type RawMessage, putReason, readMessage, valueOf } from "./queue.js";
import type { Session } from "./session.js";
import { onAbort } from "./signal.js";

/** Bytes of a received message before the message itself: its lock. */
const LOCK_BYTES = 8;

/** What a message is to whoever handles it. */
export interface MessageInfo {
  readonly id: string;
  readonly value: any;
  readonly attempts: number;
  readonly enqueuedAt: Date;
}

export function infoOf(raw: RawMessage): MessageInfo {
  return {
    id: String(raw.id),
    value: valueOf(raw),
    attempts: raw.attempts,
    enqueuedAt: new Date(raw.enqueuedMs),
  };
}

export class KvMessage implements MessageInfo {
  readonly id: string;
  readonly value: any;
  readonly attempts: number;
  readonly enqueuedAt: Date;
  readonly #session: Session;
  readonly #held: Held;

  constructor(session: Session, held: Held, info: MessageInfo) {
    this.#session = session;
    this.#held = held;
    this.id = info.id;
    this.value = info.value;
    this.attempts = info.attempts;
    this.enqueuedAt = info.enqueuedAt;
  }

  ack(): Promise<boolean> {
    return settle(this.#session, this.#held, DONE);
  }

  async nack(options?: unknown): Promise<boolean> {
    const { delayMs, error } = checkNack(options, this.#session.limits);
    return await settle(this.#session, this.#held, FAILED, delayMs, error);
  }

  async extend(ms: number): Promise<boolean> {
    const lockMs = checkExtend(ms, this.#session.port.bounds);
    const frame = headOf(this.#held);
    frame.f64(lockMs);
    return (await call(this.#session, CALL_EXTEND, frame))[0] === 1;
  }
}

/** What names a received message: its number and its lock. */
interface Held {
  readonly id: number;
  readonly lock: Buffer;
}

function headOf({ id, lock }: Held): Writer {
  const frame = new Writer(SETTLE_BYTES);
  frame.f64(id);
  frame.ensure(LOCK_BYTES);
  frame.buf.set(lock, frame.pos);
  frame.pos += LOCK_BYTES;
  return frame;
}

/** Room for a settlement without a reason. */
const SETTLE_BYTES = 64;

const NO_REASON: unknown = Object.assign(new Error("nack() was called without an error"), {
  name: "Nack",
});

async function settle(
  session: Session,
  held: Held,
  outcome: number,
  delayMs = -1,
  error?: unknown,
): Promise<boolean> {
  const frame = headOf(held);
  frame.u8(outcome);
  if (outcome === FAILED) {
    frame.f64(delayMs);
    putReason(frame, error === undefined ? NO_REASON : error);
  }
  return (await call(session, CALL_SETTLE, frame))[0] === 1;
}

export async function receive(
  session: Session,
  queue: string,
  options: unknown,
): Promise<KvMessage | null> {
  const { lockMs, waitMs, signal } = checkReceive(options, session.port.bounds);
  session.requireOpen();
  signal?.throwIfAborted();
  const before = session.order.beforeAll();
  if (before !== null) {
    await before;
    session.requireOpen();
    signal?.throwIfAborted();
  }
  const pending = new PendingReceive(session);
  pending.start(queue, lockMs, waitMs, signal);
  await pending.answered;
  const data = pending.answer();
  if (data === null) {
    signal?.throwIfAborted();
    return null;
  }
  const raw = readMessage(data, LOCK_BYTES);
  const held = { id: raw.id, lock: data.subarray(0, LOCK_BYTES) };
  session.requireOpen();
  if (signal?.aborted) {
    // Where that cannot be told, its lock runs out.
    await settle(session, held, RETURNED).catch(() => false);
    signal.throwIfAborted();
  }
  let info: MessageInfo;
  try {
    info = infoOf(raw);
  } catch (error) {
    // Nobody can handle it.
    await settle(session, held, FAILED, -1, error);
    throw error;
  }
  return new KvMessage(session, held, info);
}

class PendingReceive implements Receiver {
  readonly answered: Promise<void>;
  readonly #session: Session;
  readonly #id: number;
  #data: Buffer | null = null;
  #failure: Failure | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** Forgets the signal. */
  #disobey = (): void => {};
  #resolve!: () => void;

  constructor(session: Session) {
    this.#session = session;
    this.answered = new Promise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
  }

  start(queue: string, lockMs: number, waitMs: number, signal: AbortSignal | undefined): void {
    const session = this.#session;
    // What was called before comes first.
    session.flush();
    const name = new Writer(SETTLE_BYTES);
    putText(name, queue);
    try {
      session.native.receive(this.#id, lockMs, waitMs === 0, name.buf, name.pos);
    } catch (error) {
      this.#end(bugOf(error));
      return;
    }
    if (waitMs > 0) this.#timer = setTimeout(this.#cancel, waitMs);
    if (signal !== undefined) this.#disobey = onAbort(signal, this.#cancel);
  }

  /** A message that is on its way already arrives all the same. */
  readonly #cancel = (): void => {
    if (!this.#session.closed) this.#session.native.receiveCancel(this.#id);
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
    this.#disobey();
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }

  /** Throws where the caller's own stack shows. */
  answer(): Buffer | null {
    if (this.#failure !== null) throw this.#session.errorOf(this.#failure);
    return this.#data;
  }
}
