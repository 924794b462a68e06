// Duty: a stream that is pulled from the addon, one answer for each read.
// Invariant: at most one answer is asked for, and only while somebody reads: that alone keeps the
// process alive.

import type { UnderlyingSource } from "node:stream/web";
import { errorOf, readFailure } from "./errors.js";
import { WATCH } from "./native.js";
import type { Receiver } from "./port.js";
import type { Session } from "./session.js";

export abstract class Pulled<Item> implements Receiver, UnderlyingSource<Item> {
  protected readonly session: Session;
  /** The number by which the addon knows it: to be started by whoever extends this. */
  protected readonly id: number;
  #stream!: ReadableStreamDefaultController<Item>;
  /** Resolves when what was asked for is here. */
  #arrived: (() => void) | null = null;
  #ended = false;

  constructor(session: Session) {
    this.session = session;
    this.id = session.port.register(this);
  }

  /** Asks the addon for one more answer. */
  protected abstract ask(): void;
  /** Lets the addon forget it. */
  protected abstract forget(): void;
  /** What the bytes of an answer say. */
  protected abstract decode(data: Buffer): Item;

  start(stream: ReadableStreamDefaultController<Item>): void {
    this.#stream = stream;
  }

  pull(): Promise<void> | void {
    if (this.#ended) return;
    this.session.port.pending();
    const arrived = new Promise<void>((resolve) => (this.#arrived = resolve));
    // After close() the end is on its way.
    if (!this.session.closed) this.ask();
    return arrived;
  }

  cancel(): void {
    if (this.#ended) return;
    this.#stop();
    this.#end();
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === WATCH && data !== null) {
      this.#yield(data);
      this.#settle();
      return;
    }
    if (data === null && this.session.aborted !== null) {
      this.#stream.error(this.session.aborted.reason);
    } else if (data === null) {
      this.#stream.close();
    } else {
      this.#stop();
      this.#stream.error(errorOf(readFailure(data)));
    }
    this.#end();
  }

  #yield(data: Buffer): void {
    try {
      this.#stream.enqueue(this.decode(data));
    } catch (error) {
      // A value that cannot be read ends the stream, and says so.
      this.#stop();
      this.#stream.error(error);
      this.#end();
    }
  }

  #stop(): void {
    // A closed handle has forgotten it.
    if (!this.session.closed) this.forget();
  }

  #end(): void {
    this.#ended = true;
    this.session.port.forget(this.id);
    this.#settle();
  }

  #settle(): void {
    if (this.#arrived === null) return;
    const arrived = this.#arrived;
    this.#arrived = null;
    this.session.port.settled();
    arrived();
  }
}
