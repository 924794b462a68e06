// Duty: a stream that is pulled from the addon, one answer for each read.
// Invariant: at most one answer is asked for, and only while somebody reads: that alone keeps the
// process alive, and a stream that its user has dropped. Without a read such a stream is collected,
// and the addon forgets it.

import type { UnderlyingSource } from "node:stream/web";
import { errorOf, readFailure } from "./errors.js";
import { WATCH } from "./native.js";
import type { NativeHandle } from "./native/binding.js";
import type { Port, Receiver } from "./port.js";
import type { Session } from "./session.js";
import { onAbort } from "./signal.js";

/** Has the addon forget a stream. */
type Forget = (native: NativeHandle, id: number) => void;

/** What there is to do when a stream was dropped without cancel(). It must not hold the stream. */
interface Abandoned {
  readonly id: number;
  readonly port: Port;
  /** Weak: a handle that was dropped as well takes its streams with it. */
  readonly session: WeakRef<Session>;
  readonly forget: Forget;
  /** Forgets the signal that ends the stream. */
  disobey: () => void;
}

const abandoned = new FinalizationRegistry((stream: Abandoned) => {
  const { id, port, session, forget } = stream;
  stream.disobey();
  port.forget(id);
  const here = session.deref();
  if (here !== undefined && !here.closed) forget(here.native, id);
});

/** What the port knows of a stream. */
class Link implements Receiver {
  readonly #stream: WeakRef<Receiver>;
  /** The stream, while somebody reads from it. */
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
  /** The number by which the addon knows it: to be started by whoever extends this. */
  protected readonly id: number;
  readonly #link: Link;
  readonly #abandoned: Abandoned;
  #stream!: ReadableStreamDefaultController<Item>;
  /** Resolves when what was asked for is here. */
  #arrived: (() => void) | null = null;
  #ended = false;

  constructor(session: Session, forget: Forget) {
    const { port } = session;
    this.session = session;
    this.#link = new Link(this);
    this.id = port.register(this.#link);
    const { id } = this;
    const disobey = (): void => {};
    this.#abandoned = { id, port, session: new WeakRef(session), forget, disobey };
    abandoned.register(this, this.#abandoned, this);
  }

  /** Asks the addon for one more answer. */
  protected abstract ask(): void;
  /** What the bytes of an answer say. */
  protected abstract decode(data: Buffer): Item;

  start(stream: ReadableStreamDefaultController<Item>): void {
    this.#stream = stream;
  }

  pull(): Promise<void> | void {
    if (this.#ended) return;
    this.session.port.pending();
    this.#link.read = this;
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

  /** From now on the signal ends the stream; what waits in a read sees the end. */
  obey(signal: AbortSignal): void {
    // A signal may outlive streams that nobody reads.
    const here = new WeakRef(this);
    this.#abandoned.disobey = onAbort(signal, () => here.deref()?.abort());
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
      // A value that cannot be read ends the stream, and says so.
      this.#stop();
      this.#stream.error(error);
      this.#end();
    }
  }

  #stop(): void {
    // A closed handle has forgotten it.
    if (!this.session.closed) this.#abandoned.forget(this.session.native, this.id);
  }

  #end(): void {
    this.#ended = true;
    this.#abandoned.disobey();
    // The number may be another's before this is collected.
    abandoned.unregister(this);
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

/** The stream of a source. Nothing is fetched ahead: whoever reads gets what is new then. */
export function streamOf<Item>(
  source: Pulled<Item>,
  signal: AbortSignal | undefined,
): ReadableStream<Item> {
  const stream = new ReadableStream<Item>(source, { highWaterMark: 0 });
  if (signal !== undefined) source.obey(signal);
  return stream;
}

export function endedStream<Item>(): ReadableStream<Item> {
  return new ReadableStream({ start: (stream) => stream.close() });
}
