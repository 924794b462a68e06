// Duty: the writes of one microtask: their records in call order, one crossing, one event, and
// each caller takes its own outcome.
// Invariant: a record that fails to encode leaves nothing behind, and a write made by a getter
// while a record is being encoded goes into a batch of its own, behind this one.

import { Writer } from "./codec/writer.js";
import {
  CLOSED,
  type Failure,
  bugOf,
  closedError,
  errorOf,
  failureBytes,
  readFailure,
} from "./errors.js";
import { readStamp } from "./frame.js";
import { CHECK_FAILED, COMMITTED, OP_END, SETTLED, STAMP_BYTES } from "./native.js";
import type { Receiver } from "./port.js";
import type { Session } from "./session.js";

/** A frame this long crosses at once, so that writing it overlaps with encoding the next. */
const FRAME_BYTES_MAX = 256 * 1024;
/** A writer larger than this is not kept for the next batch. */
const SPARE_BYTES_MAX = 1024 * 1024;

let spare: Writer | null = null;

export class WriteBatch implements Receiver {
  readonly writer: Writer;
  /** Resolves when the outcomes are here. Never rejects. */
  readonly settled: Promise<void>;
  /** A record is being encoded. */
  busy = false;
  #mark = 0;
  #count = 0;
  #crossed = false;
  #outcomes: (string | null | Failure)[] = [];
  #id = 0;
  #resolve!: () => void;
  readonly #session: Session;
  /** The batch that must cross first: it was busy when this one was started. */
  readonly #after: WriteBatch | null;

  constructor(session: Session, after: WriteBatch | null) {
    this.#session = session;
    this.#after = after;
    this.writer = spare ?? new Writer();
    this.writer.pos = 0;
    spare = null;
    this.settled = new Promise((resolve) => (this.#resolve = resolve));
    void Promise.resolve().then(() => this.flush());
  }

  /** Whether another write may join. */
  get accepts(): boolean {
    return !this.busy && !this.#crossed && (this.writer.pos < FRAME_BYTES_MAX || this.waits);
  }

  /** Whether an earlier batch has not crossed yet, so that this one must not. */
  get waits(): boolean {
    return this.#after !== null && !this.#after.#crossed;
  }

  /** Starts a write; its records go to {@link writer}. Answers where it starts. */
  begin(): number {
    this.busy = true;
    return (this.#mark = this.writer.pos);
  }

  /** Forgets what was written since {@link begin}. */
  abort(): void {
    this.busy = false;
    this.writer.pos = this.#mark;
    this.writer.fills = null;
  }

  /** Ends the write. Answers the number of its outcome. */
  commit(): number {
    // Only close() makes a busy batch cross: a getter of the value called it.
    if (this.#crossed) throw closedError();
    this.writer.u8(OP_END);
    this.busy = false;
    return this.#count++;
  }

  /** The number of the outcome of the write that was committed last. */
  get last(): number {
    return this.#count - 1;
  }

  /** Crosses now; nothing joins any more. */
  flush(): void {
    if (this.#crossed) return;
    if (this.waits) this.#after!.flush();
    this.#crossed = true;
    const session = this.#session;
    const { writer } = this;
    session.leave(this);
    if (this.#count > 0) {
      session.port.pending();
      this.#id = session.port.register(this);
      try {
        const end = this.busy ? this.#mark : writer.pos;
        session.native.write(this.#id, this.#count, writer.buf, end);
      } catch (error) {
        this.#fail(bugOf(error));
      }
    }
    if (!this.busy && writer.buf.length <= SPARE_BYTES_MAX) spare = writer;
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind !== SETTLED || data === null) {
      this.#fail(data === null ? CLOSED : readFailure(data));
      return;
    }
    let at = 0;
    for (let i = 0; i < this.#count; i++) {
      const status = data[at++];
      if (status === COMMITTED) {
        this.#outcomes.push(readStamp(data, at));
        at += STAMP_BYTES;
      } else if (status === CHECK_FAILED) {
        this.#outcomes.push(null);
      } else {
        this.#outcomes.push(readFailure(data, at));
        at += failureBytes(data, at);
      }
    }
    this.#settle();
  }

  #fail(failure: Failure): void {
    this.#outcomes = new Array(this.#count).fill(failure);
    this.#settle();
  }

  #settle(): void {
    this.#session.port.forget(this.#id);
    this.#session.port.settled();
    this.#resolve();
  }

  /** The versionstamp of write `index`, null when a check failed. Throws what went wrong. */
  outcome(index: number): string | null {
    const outcome = this.#outcomes[index];
    if (outcome === null || typeof outcome === "string") return outcome;
    throw errorOf(outcome);
  }
}
