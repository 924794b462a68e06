// Duty: listenQueue: takes deliveries, runs the handler, tells how each ended.
// Invariant: every delivery is settled exactly once: done when the handler's promise resolves,
// failed when it rejects, when the handler throws, or when the message cannot be read.

import { types } from "node:util";
import { decodeValue } from "./codec/value/decode.js";
import { ENCODING_CBOR } from "./codec/value/tags.js";
import { type Failure, errorOf, readFailure } from "./errors.js";
import { readU32 } from "./frame.js";
import { DELIVERY } from "./native.js";
import type { Receiver } from "./port.js";
import type { Session } from "./session.js";

/** Messages that one listener handles at a time. */
const CREDITS = 100;

/** Bytes of a delivery before its value: the message's id and the value's length. */
const DELIVERY_HEAD_BYTES = 12;

type Handler = (value: unknown) => void | Promise<void>;

export async function listenQueue(session: Session, handler: Handler): Promise<void> {
  if (session.closed) {
    // Deno's: an error after close(), the end that every listener sees after dispose.
    if (session.disposed) return;
    throw new Error("Queue already closed");
  }
  const listener = new Listener(session, handler);
  await listener.ended;
  if (listener.failure !== null) throw errorOf(listener.failure);
}

class Listener implements Receiver {
  readonly ended: Promise<void>;
  failure: Failure | null = null;
  readonly #session: Session;
  readonly #handler: Handler;
  readonly #id: number;
  #resolve!: () => void;

  constructor(session: Session, handler: Handler) {
    this.#session = session;
    this.#handler = handler;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
    session.native.listen(this.#id, CREDITS);
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind !== DELIVERY || data === null) {
      if (data !== null) this.failure = readFailure(data);
      this.#session.port.forget(this.#id);
      this.#session.port.settled();
      this.#resolve();
      return;
    }
    let at = 4;
    for (let left = readU32(data, 0); left > 0; left--) {
      const messageId = data.readDoubleLE(at);
      const start = at + DELIVERY_HEAD_BYTES;
      at = start + readU32(data, at + 8);
      void this.#deliver(messageId, data, start, at);
    }
  }

  async #deliver(messageId: number, data: Buffer, start: number, end: number): Promise<void> {
    let done = false;
    try {
      const handler = this.#handler;
      const result: unknown = handler(decodeValue(ENCODING_CBOR, data, start, end));
      // Only the handler's own promise is awaited, as Deno does: another thenable is not a promise.
      if (types.isPromise(result)) await result;
      done = true;
    } catch (error) {
      console.error("Exception in queue handler", error);
    }
    this.#session.native.settle(this.#id, messageId, done);
  }
}
