// Duty: what is known of a message whose result is kept: entries that expire, below one prefix. Their writes,
// and the reads of them: result, progress, events.
// Invariant: the result of a handler is stored by the commit that acknowledges its message.
// Never: an entry about a message without keepResult, except for its progress.

import { checkSetExpiry } from "../arguments/expiry-options.js";
import { onAbort } from "../arguments/signal.js";
import { ownContext } from "../codec/message-context.js";
import { JOB_ENTRIES, PROGRESS_KEPT_MS } from "../model/limits.js";
import { NativePromise } from "../model/native-promise.js";
import { readable } from "../model/readable.js";
import { clearTimeout, setTimeout } from "../model/clock.js";
import { getMany } from "../read/get.js";
import type { Session } from "../session/session.js";
import type { KvChanges, KvEntryMaybe, KvKey } from "../model/types.js";
import { feed } from "../watch/feed.js";
import { watch } from "../watch/watch.js";
import { forgetPatches, putPatches } from "../records/patches.js";
import { putSet, putSetKey, putValue } from "../records/records.js";
import type { Writer } from "../codec/writer.js";
import {
  ACKS,
  MUTATIONS,
  type Segment,
  commitLate,
  giveWriter,
  segmentOf,
  takeWriter,
} from "../write/segment.js";
import { set } from "../write/writes.js";
import { type LockedMessage, lockOf, putAcknowledge } from "./message-lock.js";
import type { RawMessage } from "./raw-message.js";

/** What an entry can tell; the last part of its key. */
const EVENTS = [
  "enqueued",
  "started",
  "progress",
  "failed",
  "completed",
  "dead",
  "cancelled",
] as const;
type EventType = (typeof EVENTS)[number];
const ENDS = ["completed", "dead", "cancelled"] as const;

/** A message, as far as its entries need it. */
export interface Job {
  readonly queue: string;
  readonly id: string;
  readonly attempts: number;
  /** How long its result is kept; undefined if it is not. */
  readonly keptMs: number | undefined;
  /** The longest time of its handler, by its own option. */
  readonly timeoutMs: number | undefined;
}

export interface JobError {
  name: string;
  message: string;
}

export type JobResult =
  | { state: "completed"; value: any; at: Date }
  | { state: "dead"; error: JobError; at: Date }
  | { state: "cancelled"; at: Date };

export interface JobEvent {
  type: EventType;
  id: string;
  at: Date;
  attempts?: number;
  value?: any;
  error?: JobError;
  versionstamp: string;
}

/** A value that an entry has. */
interface EntryValue {
  at: Date;
  attempts?: number;
  value?: any;
  error?: JobError;
}

export function jobOf(queue: string, { id, attempts, data, start, end }: RawMessage): Job {
  const { keepResultMs: keptMs, timeoutMs } = ownContext(data, start, end);
  return { queue, id: String(id), attempts, keptMs, timeoutMs };
}

export const jobKey = (queue: string, ...parts: string[]): KvKey => [JOB_ENTRIES, queue, ...parts];

/** Tells that a handler has the message. The handler does not wait for it. */
export function tellStarted(session: Session, { queue, id, attempts, keptMs }: Job): void {
  if (keptMs === undefined || session.closed) return;
  const value = { at: new Date(session.now()), attempts };
  // Only an event is missing if it fails, and the handler's own commits fail too.
  set(session, jobKey(queue, id, "started"), value, { expireIn: keptMs }).catch(() => {});
}

export async function tellProgress(session: Session, job: Job, value: unknown): Promise<void> {
  const { queue, id, attempts, keptMs = PROGRESS_KEPT_MS } = job;
  const entry = { at: new Date(session.now()), attempts, value };
  await set(session, jobKey(queue, id, "progress"), entry, { expireIn: keptMs });
}

/**
 * Acknowledges the message and stores what its handler has returned, in one commit. Resolves to whether the message
 * was still the consumer's. Stores nothing on a handle that is closed: then the caller acknowledges.
 */
export async function complete(
  session: Session,
  job: Job,
  message: LockedMessage,
  value: unknown,
): Promise<boolean> {
  const { queue, id, attempts, keptMs } = job;
  if (keptMs === undefined || session.closed) return true;
  const entry = { at: new Date(session.now()), attempts, value };
  const lock = lockOf("complete", message);
  const segments = [setOf(session, jobKey(queue, id, "completed"), entry, keptMs)];
  if (!lock.acknowledged) {
    segments.unshift(recordOf(session, ACKS, (writer) => putAcknowledge(writer, lock)));
  }
  const [batch, index] = await commitLate(session, segments);
  const { ok } = batch.result(index);
  lock.acknowledged ||= ok;
  return ok;
}

function setOf(session: Session, key: KvKey, value: unknown, expireIn: number): Segment {
  const { limits } = session;
  return recordOf(session, MUTATIONS, (writer) => {
    putSet(writer, key, checkSetExpiry({ expireIn }));
    putSetKey(writer, key, limits);
    putValue(writer, key, value, limits);
  });
}

/** The record that `put` writes. */
function recordOf(session: Session, rank: number, put: (writer: Writer) => void): Segment {
  const writer = takeWriter(session.packs);
  const start = writer.pos;
  try {
    put(writer);
    if (writer.patches !== null) putPatches(writer);
    return segmentOf(writer, start, rank);
  } catch (error) {
    writer.pos = start;
    writer.fills = null;
    forgetPatches(writer);
    throw error;
  } finally {
    giveWriter(writer);
  }
}

const FIELD_OF_ENDS = { completed: "value", dead: "error", cancelled: undefined } as const;

/** The last end among the entries of one message. */
function lastEnd(entries: readonly KvEntryMaybe<any>[]): JobResult | null {
  let found: JobResult | null = null;
  let newest = "";
  for (const [index, { value, versionstamp }] of entries.entries()) {
    if (versionstamp === null || versionstamp <= newest) continue;
    newest = versionstamp;
    const state = ENDS[index]!;
    const field = FIELD_OF_ENDS[state];
    const entry = value as EntryValue;
    found = { state, at: entry.at, ...(field && { [field]: entry[field] }) } as JobResult;
  }
  return found;
}

/** How a message has ended; with `waitMs` as soon as it has. Null if it has not, or nothing is kept. */
export async function result(
  session: Session,
  queue: string,
  id: string,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<JobResult | null> {
  signal?.throwIfAborted();
  const keys = ENDS.map((end) => jobKey(queue, id, end));
  if (waitMs === 0) return lastEnd(await getMany(session, keys));
  const reader = watch(session, keys, {}).getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    stop();
  }, waitMs);
  const unfollow = signal && onAbort(signal, stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      const end = done ? null : lastEnd(value);
      if (end !== null || isOver) return end;
      if (done) {
        session.requireOpen();
        return null;
      }
    }
  } finally {
    clearTimeout(timer);
    unfollow?.();
    stop();
  }
}

/** The last progress that a handler of the message has reported. */
export async function progressOf(session: Session, queue: string, id: string): Promise<any> {
  const [{ value }] = await getMany(session, [jobKey(queue, id, "progress")]);
  return (value as EntryValue | null)?.value;
}

/** What happens to the messages of a queue whose results are kept, in the order of the commits. */
export function events(
  session: Session,
  queue: string,
  since: string | undefined,
  signal: AbortSignal | undefined,
): ReadableStream<JobEvent> {
  const options = { ...(since !== undefined && { since }), ...(signal && { signal }) };
  const changes = feed(session, { prefix: jobKey(queue) }, options).getReader();
  return readable<JobEvent>({
    async pull(stream) {
      for (let enqueued = 0; enqueued === 0; ) {
        const { done, value } = await changes.read();
        if (done) return stream.close();
        for (const event of eventsOf(value)) {
          stream.enqueue(event);
          enqueued++;
        }
      }
    },
    cancel: (reason) => changes.cancel(reason),
  });
}

function* eventsOf({ changes }: KvChanges): Generator<JobEvent> {
  for (const { type, key, value, versionstamp } of changes) {
    const [, , id, event] = key as string[];
    if (type !== "set" || !EVENTS.includes(event as EventType)) continue;
    yield { type: event as EventType, id: id!, ...(value as EntryValue), versionstamp };
  }
}

/**
 * Aborts the signals of handlers whose messages are cancelled. It looks when a handler first asks for its
 * signal, and whenever a message of the queue is cancelled while such handlers run.
 */
export class Cancellations {
  readonly #session: Session;
  readonly #queue: string;
  /** By the ids of the messages. */
  readonly #handlers = new Map<string, () => void>();
  #stop: (() => void) | null = null;

  constructor(session: Session, queue: string) {
    this.#session = session;
    this.#queue = queue;
  }

  /** From now on `abort` is called once when the message is cancelled. */
  add(id: string, abort: () => void): void {
    if (this.#session.closed) return;
    this.#handlers.set(id, abort);
    if (this.#stop === null) this.#watch();
    else void this.#look(id);
  }

  delete(id: string): void {
    if (!this.#handlers.delete(id) || this.#handlers.size > 0) return;
    this.#stop?.();
    this.#stop = null;
  }

  #watch(): void {
    const reader = watch(this.#session, [jobKey(this.#queue, "cancelled")], {}).getReader();
    let isOver = false;
    this.#stop = () => {
      isOver = true;
      reader.cancel().catch(() => {});
    };
    const follow = async (): Promise<void> => {
      for (;;) {
        const { done } = await reader.read();
        if (done || isOver) return;
        await NativePromise.all([...this.#handlers.keys()].map((id) => this.#look(id)));
      }
    };
    // Without the watch a handler learns of it when its lock is not renewed.
    follow().catch(() => {});
  }

  /** Whether the message is cancelled, as far as the database can be read. */
  async has(id: string): Promise<boolean> {
    try {
      const [{ versionstamp }] = await getMany(this.#session, [
        jobKey(this.#queue, id, "cancelled"),
      ]);
      return versionstamp !== null;
    } catch {
      return false;
    }
  }

  async #look(id: string): Promise<void> {
    if (await this.has(id)) this.#handlers.get(id)?.();
  }
}
