// Duty: watch over a selector with `initial`: the entries as they are, then the changes after them.
// Invariant: every commit that the entries do not show is yielded as a change, in order; a change that
// they show is not.

import { invalid, misuse } from "../model/errors.js";
import { checkOptions, shown } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { encodeKey } from "../codec/key.js";
import { readStamp } from "../native/frame.js";
import { CALL_FEED_POSITION, STAMP_BYTES } from "../native/contract.js";
import { FEED_OPTIONS, checkFeed, feed } from "./feed.js";
import { readable } from "../model/readable.js";
import { endedStream } from "./pulled.js";
import { KvListIterator, forKv } from "../read/list.js";
import { call } from "../session/call.js";
import type { Session } from "../session/session.js";
import type { KvChange, KvChanges, KvEntry, KvKey, KvListSelector } from "../model/types.js";

/** Entries of a batch of the initial state. */
const INITIAL_BATCH_ENTRIES = 100;

/** A feed from the start of a database: what a reader that has not seen all entries goes on from. */
const NOTHING_SEEN = "0".repeat(STAMP_BYTES);

type Listed = KvEntry<unknown> & { expireAt?: Date | null };

export function changes(
  session: Session,
  given: KvListSelector,
  options: unknown,
): ReadableStream<KvChanges> {
  const { since, initial } = checkOptions("kv.watch", options, FEED_OPTIONS);
  if (initial !== undefined && typeof initial !== "boolean") {
    throw invalid(`kv.watch: initial must be a boolean: received ${shown(initial)}`);
  }
  if (initial !== true) return feed(session, given, options);
  if (since !== undefined) {
    throw misuse(
      "kv.watch: initial begins with the present entries, since after a commit: give one of them",
    );
  }
  const { selector, signal } = checkFeed(session, given, options);
  if (signal?.aborted) return endedStream();
  return readable(new Present(session, selector, signal));
}

class Present {
  readonly #session: Session;
  readonly #selector: KvListSelector;
  readonly #signal: AbortSignal | undefined;
  #list: KvListIterator<unknown, Listed> | null = null;
  /** The commit after which the feed goes on; null before the first read. */
  #position: string | null = null;
  #feed: ReadableStreamDefaultReader<KvChanges> | null = null;
  #cancelled = false;
  /** The listed entries that are newer than the position: bytes of the key → versionstamp. */
  readonly #shown = new Map<string, string>();
  /** The newest versionstamp among them. */
  #newest = "";

  constructor(session: Session, selector: KvListSelector, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#selector = selector;
    this.#signal = signal;
  }

  async pull(stream: ReadableStreamDefaultController<KvChanges>): Promise<void> {
    try {
      const batch = this.#feed === null ? await this.#present() : await this.#changed(this.#feed);
      if (batch === null) stream.close();
      else stream.enqueue(batch);
    } catch (error) {
      // As the stream of a feed does.
      if (this.#signal?.aborted || (this.#session.closed && this.#session.aborted === null)) {
        stream.close();
      } else {
        throw error;
      }
    }
  }

  async cancel(): Promise<void> {
    this.#cancelled = true;
    await this.#feed?.cancel();
  }

  /** The next entries of the list. */
  async #present(): Promise<KvChanges> {
    if (this.#position === null) {
      const answer = await call(this.#session, CALL_FEED_POSITION, undefined, this.#signal);
      this.#position = readStamp(answer, 0);
    }
    const position = this.#position;
    this.#list ??= new KvListIterator(
      this.#session,
      this.#selector,
      { withExpiry: true },
      forKv(this.#signal),
    );
    const found: KvChange<unknown>[] = [];
    while (found.length < INITIAL_BATCH_ENTRIES) {
      const { done, value } = await this.#list.next();
      if (done === true) return this.#last(found, position);
      found.push(this.#show(value, position));
    }
    return { changes: found, versionstamp: NOTHING_SEEN, initial: "more" };
  }

  /** The last entries. The feed begins, unless the stream was cancelled during the read. */
  #last(found: KvChange<unknown>[], position: string): KvChanges {
    const options = { since: position, signal: this.#signal };
    if (!this.#cancelled) {
      this.#feed = feed(this.#session, this.#selector, options).getReader();
    }
    this.#list = null;
    return { changes: found, versionstamp: position, initial: "last" };
  }

  #show({ key, value, versionstamp, expireAt }: Listed, position: string): KvChange<unknown> {
    if (versionstamp > position) {
      this.#shown.set(bytesOf(key), versionstamp);
      if (versionstamp > this.#newest) this.#newest = versionstamp;
    }
    const set = { type: "set", key, value, versionstamp } as const;
    return expireAt == null ? set : { ...set, expireAt };
  }

  /** The next changes that the list has not shown; null at the end of the feed. */
  async #changed(reader: ReadableStreamDefaultReader<KvChanges>): Promise<KvChanges | null> {
    for (;;) {
      const { done, value: batch } = await reader.read();
      if (done) return null;
      if (this.#shown.size === 0) return batch;
      const unseen = batch.changes.filter(({ key, versionstamp }) => {
        const shown = this.#shown.get(bytesOf(key));
        return shown === undefined || versionstamp > shown;
      });
      if (batch.versionstamp >= this.#newest) this.#shown.clear();
      if (unseen.length > 0) return { ...batch, changes: unseen };
    }
  }
}

function bytesOf(key: readonly unknown[]): string {
  const writer = new Writer(64);
  encodeKey(writer, key as KvKey);
  return writer.buf.toString("latin1", 0, writer.pos);
}
