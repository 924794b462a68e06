// Duty: waits for the only answer of an addon object without a handle: a server, a restore.

import { CLOSED, type Failure, errorOf, readFailure } from "../model/errors.js";
import { REPLIED } from "./contract.js";
import { NativePromise } from "../model/native-promise.js";
import type { Port, Receiver } from "./port.js";

/** Waits for the one event of an id. */
export class NativeAnswer implements Receiver {
  readonly id: number;
  readonly answered: Promise<void>;
  #data: Buffer = Buffer.alloc(0);
  #failure: Failure | null = null;
  #resolve!: () => void;
  readonly #thread: Port;

  constructor(thread: Port) {
    this.#thread = thread;
    this.answered = new NativePromise((resolve) => (this.#resolve = resolve));
    this.id = thread.register(this);
    thread.pending();
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === REPLIED) {
      if (data !== null) this.#data = data;
      this.end(null);
    } else {
      this.end(data === null ? CLOSED : readFailure(data));
    }
  }

  end(failure: Failure | null): void {
    this.#failure = failure;
    this.#thread.forget(this.id);
    this.#thread.settled();
    this.#resolve();
  }

  /** Throws the failure from the caller's stack. */
  answer(): Buffer {
    if (this.#failure !== null) throw errorOf(this.#failure);
    return this.#data;
  }
}
