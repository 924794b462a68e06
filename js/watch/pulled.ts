// Duty: a stream that pulls its values from the addon, one answer for each read.
// Invariant: at most one answer is requested, and only during a read. Only a read keeps the process
// and the stream alive. A stream without one that is no longer referenced is collected, and the addon
// releases it.

import { NativePromise } from "../model/native-promise.js";
import type { UnderlyingSource } from "node:stream/web";
import { errorOf, readFailure } from "../model/errors.js";
import { readable } from "../model/readable.js";
import { WATCH } from "../native/contract.js";
import type { NativeHandle } from "../native/binding.js";
import type { Port, Receiver } from "../native/port.js";
import type { Session } from "../session/session.js";
import { onAbort } from "../arguments/signal.js";

/** Releases a stream in the addon. */
type Forget = (native: NativeHandle, id: number) => void;

/** The clean-up of a stream that was collected without cancel(). It must not refer to the stream. */
interface Abandoned {
  readonly id: number;
  readonly port: Port;
  /** Weak: a handle is collected together with its streams. */
  readonly session: WeakRef<Session>;
  readonly forget: Forget;
  /** Stops following the signal that ends the stream. */
  unfollow: () => void;
}

const abandoned = new FinalizationRegistry((stream: Abandoned) => {
  const { id, port, session, forget } = stream;
  stream.unfollow();
  port.forget(id);
  const here = session.deref();
  if (here === undefined) return;
  here.streams--;
  if (!here.closed) forget(here.native, id);
});

/** The receiver of a stream's events. */
class Link implements Receiver {
  readonly #stream: WeakRef<Receiver>;
  /** The stream, during a read. */
  read: Receiver | null = null;

  constructor(stream: Receiver) {
    this.#stream = new WeakRef(stream);
  }

  receive(kind: number, data: Buffer | null): void {
    (this.read ?? this.#stream.deref())?.receive(kind, data);
  }
}

export abstract class Pulled<Item> implements Receiver, UnderlyingSource<Item> {
  protected readonly session: Session;
  /** The id of the stream in the addon. The subclass starts it. */
  protected readonly id: number;
  readonly #link: Link;
  readonly #abandoned: Abandoned;
  #stream!: ReadableStreamDefaultController<Item>;
  /** Resolves when the requested answer has arrived. */
  #arrived: (() => void) | null = null;
  #ended = false;

  constructor(session: Session, forget: Forget) {
    const { port } = session;
    this.session = session;
    this.#link = new Link(this);
    this.id = port.register(this.#link);
    const { id } = this;
    const unfollow = (): void => {};
    this.#abandoned = { id, port, session: new WeakRef(session), forget, unfollow };
    abandoned.register(this, this.#abandoned, this);
    session.streams++;
  }

  /** Asks the addon for one more answer. */
  protected abstract ask(): void;
  /** Decodes the bytes of an answer. */
  protected abstract decode(data: Buffer): Item;

  start(stream: ReadableStreamDefaultController<Item>): void {
    this.#stream = stream;
  }

  pull(): Promise<void> | void {
    if (this.#ended) return;
    this.session.port.pending();
    this.#link.read = this;
    const arrived = new NativePromise<void>((resolve) => (this.#arrived = resolve));
    // After close() the end event arrives.
    if (!this.session.closed) this.ask();
    return arrived;
  }

  cancel(): void {
    if (this.#ended) return;
    this.#stop();
    this.#end();
  }

  /** From now on the signal ends the stream; a waiting read sees the end. */
  followSignal(signal: AbortSignal): void {
    // A signal may live longer than a stream without reads.
    const here = new WeakRef(this);
    this.#abandoned.unfollow = onAbort(signal, () => here.deref()?.abort());
  }

  private abort(): void {
    if (this.#ended) return;
    this.#stop();
    this.#stream.close();
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
      // A value that cannot be decoded ends the stream with an error.
      this.#stop();
      this.#stream.error(error);
      this.#end();
    }
  }

  #stop(): void {
    // A closed handle has released it.
    if (!this.session.closed) this.#abandoned.forget(this.session.native, this.id);
  }

  #end(): void {
    this.#ended = true;
    this.#abandoned.unfollow();
    // The id may be reused before this object is collected.
    abandoned.unregister(this);
    this.session.streams--;
    this.session.port.forget(this.id);
    this.#settle();
  }

  #settle(): void {
    if (this.#arrived === null) return;
    const arrived = this.#arrived;
    this.#arrived = null;
    this.#link.read = null;
    this.session.port.settled();
    arrived();
  }
}

/** The stream of a source. It fetches nothing ahead, so a read gets the newest state. */
export function streamOf<Item>(
  source: Pulled<Item>,
  signal: AbortSignal | undefined,
): ReadableStream<Item> {
  const stream = readable<Item>(source);
  if (signal !== undefined) source.followSignal(signal);
  return stream;
}

export function endedStream<Item>(): ReadableStream<Item> {
  return readable<Item>({
    start: (stream: ReadableStreamDefaultController<Item>) => stream.close(),
  });
}
