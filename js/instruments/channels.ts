// Duty: the channels of node:diagnostics_channel on which operations are published (docs/tracing.md).
// Invariant: an operation of which no subscriber wants to know costs one look at `hasSubscribers`, and
// no memory.
// Never: the token of a server, or a password, in an event.

import {
  type Channel,
  type TracingChannel,
  channel,
  tracingChannel,
} from "node:diagnostics_channel";

/** The members that every event has. */
export interface Operation {
  /** The method: "get", "set", "commit". */
  readonly operation: string;
  /** The file, `:memory:`, or the URL of the server, without user and password. */
  readonly database: string;
  /** Whether the operation ends before its call returns. */
  readonly synchronous: boolean;
  /** A subscriber to the start may set it, to run the operation in a context of its own. */
  run?: <T>(operation: () => T) => T;
}

/** An event of a queue: a message that is enqueued, received or handled. */
export interface QueueOperation extends Operation {
  /** The name of the queue; empty: Deno's. */
  readonly queue: string;
  /**
   * The context that the message carries: headers by name. A subscriber to the start of an enqueue puts
   * them in; a handler's event has them.
   */
  headers: Record<string, string>;
}

/** The event of a handler of a queue. */
export interface ProcessOperation extends QueueOperation {
  readonly messageId: string;
  readonly attempts: number;
  readonly enqueuedAt: Date;
}

/** A handle, as its events name it. */
interface Named {
  readonly database: string;
}

/** One kind of operation: its channels are those of `tracingChannel("openkv:NAME")`. */
export class Instrument {
  /** Kept, because Bun loses a channel that nobody holds between two of its subscribers. */
  readonly #channels: TracingChannel<Operation>;
  readonly #start: Channel;

  constructor(name: string) {
    this.#channels = tracingChannel(`openkv:${name}`);
    this.#start = channel(`tracing:openkv:${name}:start`);
  }

  /** Whether a subscriber wants to know of operations that start. */
  get isObserved(): boolean {
    return this.#start.hasSubscribers;
  }

  /** Runs an operation and publishes its start and its end. */
  observe<Args extends unknown[], T>(
    session: Named,
    operation: string,
    details: object,
    run: (...args: Args) => Promise<T>,
    ...args: Args
  ): Promise<T> {
    const { database } = session;
    return this.trace({ operation, database, synchronous: false, ...details }, run, ...args);
  }

  /** As {@link observe}, with an event that the caller has made. */
  trace<Args extends unknown[], T>(
    event: Operation,
    run: (...args: Args) => Promise<T>,
    ...args: Args
  ): Promise<T> {
    return this.#channels.tracePromise(() => runIn(event, run, args), event);
  }

  /** As {@link trace}, for an operation that ends before its call returns. */
  traceSync<Args extends unknown[], T>(
    event: Operation,
    run: (...args: Args) => T,
    ...args: Args
  ): T {
    return this.#channels.traceSync(() => runIn(event, run, args), event);
  }
}

/** Runs an operation in the context that a subscriber has given it. */
function runIn<Args extends unknown[], T>(
  event: Operation,
  run: (...args: Args) => T,
  args: Args,
): T {
  const operation = (): T => run(...args);
  return event.run === undefined ? operation() : event.run(operation);
}

/** Reads of entries: get, list, count, search. */
export const READS = new Instrument("read");
/** Writes: set, delete, commit. */
export const COMMITS = new Instrument("commit");
/** `kv.transaction`, with all its attempts. */
export const TRANSACTIONS = new Instrument("transaction");
/** Messages that are put into queues. */
export const ENQUEUES = new Instrument("enqueue");
/** Messages that are taken by `receive`. */
export const RECEIVES = new Instrument("receive");
/** Handlers of messages. */
export const PROCESSES = new Instrument("process");

/** What is published of a request to a server, before it is handed over. */
export interface RequestEvent {
  readonly database: string;
  /** The headers that the request carries: subscribers put those of the active context in. */
  readonly headers: Record<string, string>;
}

/** Requests to servers. */
const REQUESTS = channel("openkv:request");

/** The headers of the context in which a request to a server begins, one in each line. */
export function requestContext(database: string): string {
  if (!REQUESTS.hasSubscribers) return "";
  const headers: Record<string, unknown> = {};
  REQUESTS.publish({ database, headers });
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}
