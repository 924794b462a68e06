// Duty: watch: a stream of the states of some keys; it pulls one state at a time from the addon.

import { checkWatchOptions, noKeys, overLimit } from "../arguments/check.js";
import { option } from "../arguments/options.js";
import { decodeKey } from "../codec/key.js";
import { Writer } from "../codec/writer.js";
import { readU32 } from "../native/frame.js";
import { Pulled, endedStream, streamOf } from "./pulled.js";
import { skipAnswer } from "../session/read-batch.js";
import { beforeKeys, pointAnswer, putKey } from "../read/reads.js";
import type { Session } from "../session/session.js";
import { checkSignal } from "../arguments/signal.js";
import type { KvEntryMaybe, KvKey } from "../model/types.js";

type State = KvEntryMaybe<unknown>[];

export function watch(
  session: Session,
  keys: readonly KvKey[],
  options: { raw?: boolean | undefined; signal?: AbortSignal | undefined },
): ReadableStream<State> {
  const raw = checkWatchOptions(options);
  const signal = checkSignal("kv.watch", option(options, "signal"));
  if (!Array.isArray(keys)) throw noKeys("kv.watch", keys);
  // Read once: a getter of a key can change the array, and its iterator may yield other keys.
  const count = keys.length;
  if (count > session.limits.watchedKeysMax) {
    throw overLimit("Too many keys", "watchedKeysMax", session.limits, count);
  }
  const writer = new Writer();
  for (let i = 0; i < count; i++) putKey(session, writer, keys[i]);
  session.requireOpen();
  if (count === 0 || signal?.aborted) return endedStream();
  return streamOf(new Watcher(session, count, writer, raw), signal);
}

class Watcher extends Pulled<State> {
  readonly #request: Writer;
  /** The first state is requested. */
  #begun = false;
  readonly #count: number;

  constructor(session: Session, count: number, request: Writer, raw: boolean) {
    super(session, (native, id) => native.watchCancel(id));
    this.#request = request;
    this.#count = count;
    session.native.watch(this.id, count, request.buf, request.pos, raw);
  }

  protected ask(): void {
    const before = this.#begun ? null : beforeKeys(this.session, this.#request);
    this.#begun = true;
    if (before === null) this.session.native.watchNext(this.id);
    // After close() the end event arrives.
    else void before.then(() => this.session.closed || this.session.native.watchNext(this.id));
  }

  protected decode(data: Buffer): State {
    const state: State = [];
    const { buf } = this.#request;
    let at = 0;
    let keyAt = 0;
    for (let i = 0; i < this.#count; i++) {
      const keyStart = keyAt + 4;
      keyAt = keyStart + readU32(buf, keyAt);
      const key = decodeKey(buf, keyStart, keyAt);
      state.push(pointAnswer(data, at, key, key));
      at = skipAnswer(data, at);
    }
    return state;
  }
}
