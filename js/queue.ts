// Duty: listening: takes deliveries, runs the handler, tells how each ended; and listenQueue.
// Invariant: every delivery is settled exactly once: done when the handler's promise resolves,
// failed when it rejects, when the handler throws, or when the message cannot be read, unseen when
// nobody takes messages any more.

import { types } from "node:util";
import { call } from "./call.js";
import { checkOptions, wrongShape } from "./check.js";
import { decodeValue } from "./codec/value/decode.js";
import { ENCODING_CBOR } from "./codec/value/tags.js";
import { Writer } from "./codec/writer.js";
import { type Failure, errorOf, readFailure } from "./errors.js";
import { putText, readU32 } from "./frame.js";
import { CALL_TOLD, DELIVERY, DONE, FAILED, RETURNED } from "./native.js";
import type { Receiver } from "./port.js";
import type { Session } from "./session.js";
import { checkSignal, onAbort } from "./signal.js";

/** Messages that one listener of Deno's queue handles at a time. */
const CREDITS = 100;

/** Bytes of a delivery before its message: the number that it is settled with. */
const NUMBER_BYTES = 8;
/** Bytes of a message before its value: id, time, attempts, the value's length. */
const MESSAGE_HEAD_BYTES = 24;

const NO_BYTES = Buffer.alloc(0);

/** A message as it crosses; its value is `data[start..end)`. */
export interface RawMessage {
  readonly id: number;
  readonly enqueuedMs: number;
  readonly attempts: number;
  readonly data: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Reads the message at `at`. */
export function readMessage(data: Buffer, at: number): RawMessage {
  const start = at + MESSAGE_HEAD_BYTES;
  return {
    id: data.readDoubleLE(at),
    enqueuedMs: data.readDoubleLE(at + 8),
    attempts: readU32(data, at + 16),
    data,
    start,
    end: start + readU32(data, at + 20),
  };
}

/** The value of a message. */
export function valueOf({ data, start, end }: RawMessage): unknown {
  return decodeValue(ENCODING_CBOR, data, start, end);
}

/** What is kept of an error; Rust cuts what is too long. */
export function putReason(writer: Writer, error: unknown): void {
  const { name, message } = reasonOf(error);
  putText(writer, name);
  putText(writer, message);
}

function reasonOf(error: unknown): { name: string; message: string } {
  try {
    if (error instanceof Error) return { name: String(error.name), message: String(error.message) };
    return { name: typeof error, message: String(error) };
  } catch {
    return { name: "Error", message: "an error that cannot be read" };
  }
}

/** A way of listening. */
export interface Listening {
  /** The queue's name; "" is Deno's. */
  readonly queue: string;
  /** Messages handled at a time. */
  readonly credits: number;
  readonly lockMs: number;
  /** Rejects when the message was not handled. */
  handle(message: RawMessage): Promise<void>;
  /** Whether why a message failed is kept. */
  readonly keepsReasons: boolean;
}

type Handler = (value: unknown) => void | Promise<void>;

export async function listenQueue(
  session: Session,
  handler: Handler,
  options: unknown,
): Promise<void> {
  // Each message would fail, again and again, until it is dropped.
  if (typeof handler !== "function") {
    throw wrongShape("function", handler, "kv.listenQueue needs a handler: (message) => { … }");
  }
  const given = checkOptions("kv.listenQueue", options, ["signal"]);
  const signal = checkSignal("kv.listenQueue", given.signal);
  if (session.closed) {
    // Deno's: an error after close(), the end that every listener sees after dispose.
    if (session.disposed) return;
    if (session.aborted !== null) throw session.aborted.reason;
    throw new Error("Queue already closed");
  }
  if (signal?.aborted) return;
  const listener = new Listener(session, {
    queue: "",
    credits: CREDITS,
    lockMs: session.port.bounds.lockMs,
    keepsReasons: false,
    async handle(message) {
      try {
        const result: unknown = handler(valueOf(message));
        // Only the handler's own promise is awaited, as Deno does: another thenable is no promise.
        if (types.isPromise(result)) await result;
      } catch (error) {
        console.error("Exception in queue handler", error);
        throw error;
      }
    },
  });
  await listener.until(signal);
}

export class Listener implements Receiver {
  /** Resolves when no more messages are taken. */
  readonly ended: Promise<void>;
  #failure: Failure | null = null;
  readonly #session: Session;
  readonly #listening: Listening;
  readonly #id: number;
  #resolve!: () => void;
  #stopped = false;
  #over = false;
  readonly #running = new Set<Promise<void>>();

  constructor(session: Session, listening: Listening) {
    this.#session = session;
    this.#listening = listening;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
    const name = new Writer();
    putText(name, listening.queue);
    const { credits, lockMs } = listening;
    session.native.listen(this.#id, credits, lockMs, name.buf, name.pos);
  }

  /** Takes no more messages; what is being handled goes on. */
  stop(): void {
    if (this.#stopped || this.#over || this.#session.closed) return;
    this.#stopped = true;
    this.#session.native.unlisten(this.#id);
  }

  /** Takes messages until the signal is aborted, and then waits for the handlers; or until close(). */
  async until(signal: AbortSignal | undefined): Promise<void> {
    const disobey = signal === undefined ? undefined : onAbort(signal, () => this.stop());
    await this.ended;
    if (signal?.aborted) await this.finished();
    disobey?.();
    this.throwFailure();
  }

  /** Waits for the handlers that run, and until a server elsewhere knows how they ended. */
  async finished(): Promise<void> {
    await this.ended;
    while (this.#running.size > 0) await Promise.all(this.#running);
    if (this.#session.remote && !this.#session.closed) await call(this.#session, CALL_TOLD);
  }

  /** Throws where the caller's own stack shows. */
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
      await this.#listening.handle(message);
    } catch (error) {
      this.#settle(number, FAILED, error);
      return;
    }
    this.#settle(number, DONE);
  }

  #settle(number: number, outcome: number, error?: unknown): void {
    if (outcome !== FAILED || !this.#listening.keepsReasons) {
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
