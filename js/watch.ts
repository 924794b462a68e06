// Duty: watch: a stream of the states of some keys, pulled from the addon one state at a time.
// Invariant: at most one state is asked for, and only while somebody reads: that alone keeps the
// process alive.

import type { UnderlyingSource } from "node:stream/web";
import { checkWatchOptions, overLimit, wrongShape } from "./check.js";
import { decodeKey } from "./codec/key.js";
import { Writer } from "./codec/writer.js";
import { errorOf, readFailure } from "./errors.js";
import { readU32 } from "./frame.js";
import { WATCH } from "./native.js";
import type { Receiver } from "./port.js";
import { skipAnswer } from "./read-batch.js";
import { pointAnswer, putKey } from "./reads.js";
import type { Session } from "./session.js";
import type { KvEntryMaybe, KvKey } from "./types.js";

type State = KvEntryMaybe<unknown>[];

export function watch(
  session: Session,
  keys: readonly KvKey[],
  options: { raw?: boolean },
): ReadableStream<State> {
  const raw = checkWatchOptions(options);
  if (!Array.isArray(keys)) throw wrongShape("array", keys);
  if (keys.length > session.limits.watchedKeysMax) {
    throw overLimit("Too many keys", "watchedKeysMax", session.limits, keys.length);
  }
  const writer = new Writer();
  for (const key of keys) putKey(session, writer, key);
  session.requireOpen();
  if (keys.length === 0) return new ReadableStream({ start: (stream) => stream.close() });
  const watcher = new Watcher(session, keys.length, writer, raw);
  // Nothing is fetched ahead: whoever reads gets the newest state, not one that waited.
  return new ReadableStream(watcher, { highWaterMark: 0 });
}

class Watcher implements Receiver, UnderlyingSource<State> {
  readonly #session: Session;
  readonly #request: Buffer;
  readonly #count: number;
  readonly #id: number;
  #stream!: ReadableStreamDefaultController<State>;
  /** Resolves when the state that was asked for is here. */
  #arrived: (() => void) | null = null;
  #ended = false;

  constructor(session: Session, count: number, request: Writer, raw: boolean) {
    this.#session = session;
    this.#request = request.buf;
    this.#count = count;
    this.#id = session.port.register(this);
    session.native.watch(this.#id, count, request.buf, request.pos, raw);
  }

  start(stream: ReadableStreamDefaultController<State>): void {
    this.#stream = stream;
  }

  pull(): Promise<void> | void {
    if (this.#ended) return;
    const { port, native } = this.#session;
    port.pending();
    const arrived = new Promise<void>((resolve) => (this.#arrived = resolve));
    // After close() the end is on its way.
    if (!this.#session.closed) native.watchNext(this.#id);
    return arrived;
  }

  cancel(): void {
    if (this.#ended) return;
    if (!this.#session.closed) this.#session.native.watchCancel(this.#id);
    this.#end();
  }

  receive(kind: number, data: Buffer | null): void {
    if (kind === WATCH && data !== null) {
      this.#yield(data);
      this.#settle();
      return;
    }
    if (data === null) this.#stream.close();
    else this.#stream.error(errorOf(readFailure(data)));
    this.#end();
  }

  #yield(data: Buffer): void {
    try {
      this.#stream.enqueue(this.#stateOf(data));
    } catch (error) {
      // A value that cannot be read ends the watch, and says so.
      this.#session.native.watchCancel(this.#id);
      this.#stream.error(error);
      this.#end();
    }
  }

  #stateOf(data: Buffer): State {
    const state: State = [];
    let at = 0;
    let keyAt = 0;
    for (let i = 0; i < this.#count; i++) {
      const keyStart = keyAt + 4;
      keyAt = keyStart + readU32(this.#request, keyAt);
      const key = decodeKey(this.#request, keyStart, keyAt);
      state.push(pointAnswer(data, at, key, key));
      at = skipAnswer(data, at);
    }
    return state;
  }

  #end(): void {
    this.#ended = true;
    this.#session.port.forget(this.#id);
    this.#settle();
  }

  #settle(): void {
    if (this.#arrived === null) return;
    const arrived = this.#arrived;
    this.#arrived = null;
    this.#session.port.settled();
    arrived();
  }
}
