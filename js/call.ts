// Duty: calls: a request of one verb with its frame, and the one answer to it.

import { Writer } from "./codec/writer.js";
import { CLOSED, type Failure, bugOf, readFailure } from "./errors.js";
import { REPLIED } from "./native.js";
import type { Receiver } from "./port.js";
import type { Session } from "./session.js";

const NO_BYTES = Buffer.alloc(0);

/** Asks for what a verb of js/native/contract.md does; resolves to the bytes of the answer. */
export async function call(session: Session, verb: number, frame?: Writer): Promise<Buffer> {
  session.requireOpen();
  const pending = new PendingCall(session);
  pending.start(verb, frame);
  await pending.answered;
  return pending.answer();
}

/** As {@link call}, behind all writes that were called before: for what reads more than a range. */
export async function callBehindWrites(
  session: Session,
  verb: number,
  frame?: Writer,
): Promise<Buffer> {
  session.requireOpen();
  const before = session.order.beforeAll();
  if (before !== null) await before;
  return await call(session, verb, frame);
}

class PendingCall implements Receiver {
  readonly answered: Promise<void>;
  #data: Buffer = NO_BYTES;
  #failure: Failure | null = null;
  #resolve!: () => void;
  readonly #id: number;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.answered = new Promise((resolve) => (this.#resolve = resolve));
    this.#id = session.port.register(this);
    session.port.pending();
  }

  start(verb: number, frame: Writer | undefined): void {
    // What was called before comes first.
    this.#session.flush();
    try {
      this.#session.native.call(this.#id, verb, frame?.buf ?? NO_BYTES, frame?.pos ?? 0);
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
    this.#failure = failure;
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }

  /** Throws where the caller's own stack shows. */
  answer(): Buffer {
    if (this.#failure !== null) throw this.#session.errorOf(this.#failure);
    return this.#data;
  }
}
