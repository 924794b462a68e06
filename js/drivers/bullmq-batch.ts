// Duty: one commit in the making: what its operations have read and written, and the entries of a queue.
//
// The entries of a queue are below [...base, name]:
//   "head"                     counters, meta fields, the rate limit: every commit checks and writes it
//   "mark"                     changes when a job may have become available: what waiting workers watch
//   "job", id                  a job
//   "set", state, ...order     the id of a job in this state, in the order in which they are taken
//   "child", parent, status, key   a child of a parent, in one of four states
//   "log", job, number         a row of a log
//   "event", last              the events of one commit, by the number of the last of them
//   "dedup" | "next", id       the job that a deduplication id stands for, and the one that comes after it
//   "scheduler", id            a job scheduler, and "due", next, id its place in their order
//   "metrics", kind            points per minute
//   "stalled"                  the jobs that were active at the last look for stalled ones

import type { AtomicOperation, Kv, KvKey, KvKeyPart } from "openkv";
import { keyPart } from "./key-part.js";
import { type Before, Entries, type Known, nameOf, type Row } from "./bullmq-entries.js";
import {
  emptyHead,
  type Head,
  isMaxed,
  type Job,
  type JobState,
  type SetName,
  setOf,
} from "./bullmq-job.js";

/** Queues whose state is kept for the next commit. */
const STATES_MAX = 256;
/** A job with longer data is read again when it is needed. */
const JOB_CHARS_KEPT_MAX = 4096;
/** Events that a queue keeps by default, as BullMQ documents it. */
export const EVENTS_MAX_DEFAULT = 10_000;
/** Events over its bound that a queue may have before old ones are deleted: a deletion per commit costs more. */
const EVENTS_OVER_MAX = 256;
/** Entries of events that one commit deletes. */
const EVENT_ENTRIES_TRIMMED_MAX = 256;
/** Bytes of events in one entry, roughly. */
const EVENT_ENTRY_CHARS_MAX = 16_384;

/** One event: its number and its fields. An entry has the JSON of several, without a gap between their numbers. */
export type QueueEvent = [number: number, fields: Record<string, string>];

/** A queue as a batch leaves it, for the next one. */
interface State {
  /** That of its head, with which all of it holds. Undefined while the commit that writes it is under way. */
  versionstamp: string | null | undefined;
  head: Head;
  /** The entries below each kind, or below more parts, by name. */
  readonly entries: Map<string, Entries>;
}

/** The queues as the last batches of this process leave them. If one of these fails, none of them holds. */
export type States = Map<string, State>;

/** What a commit has changed of a queue for those who wait. */
export interface Change {
  queue: string;
  jobs: boolean;
  events: boolean;
  /** The last numbers that order jobs, and events. */
  seq: number;
  event: number;
}

export class Batch {
  readonly kv: Kv;
  readonly base: KvKey;
  readonly #states: States;
  readonly #views = new Map<string, QueueView>();
  /** What the operation has changed. */
  #before: Before[] = [];
  /** Changes so far. */
  changes = 0;
  /** The operation has looked for a job for a worker; and has given it one. */
  seeks = false;
  gives = false;

  constructor(kv: Kv, base: KvKey, states: States) {
    this.kv = kv;
    this.base = base;
    this.#states = states;
  }

  /** The view of a queue, with its head read, or as the batch leaves it whose commit is under way. */
  queue(name: string): Known<QueueView> {
    return this.#views.get(name) ?? this.#look(name);
  }

  async #look(name: string): Promise<QueueView> {
    let state = this.#states.get(name);
    if (state === undefined || state.versionstamp !== undefined) {
      const { value, versionstamp } = await this.kv.get<Head>([...this.base, name, "head"]);
      if (state === undefined || state.versionstamp !== versionstamp) {
        state = { versionstamp, head: value ?? emptyHead(Date.now()), entries: new Map() };
      }
    }
    const view = new QueueView(this, name, state);
    this.#views.set(name, view);
    return view;
  }

  /** Begins an operation. */
  begin(): void {
    this.#before.length = 0;
    this.seeks = false;
    this.gives = false;
    for (const view of this.#views.values()) view.begin();
  }

  /** Takes back what the operation has written. */
  undo(): void {
    for (const before of this.#before.reverse()) {
      before.entries.undo(before);
      if (before.written === undefined) this.changes -= 1;
    }
    this.#before.length = 0;
    for (const view of this.#views.values()) view.undo();
  }

  /** An operation of its own: deletes old events. */
  async trim(): Promise<void> {
    for (const view of this.#views.values()) await view.trim();
  }

  /** The queues that have got a job for a waiting worker, each once. */
  offered(): string[] {
    const offering = [...this.#views.values()].filter(
      (view) => view.changed.jobs && !view.isOffered,
    );
    for (const view of offering) view.isOffered = true;
    return offering.map(({ name }) => name);
  }

  put(entries: Entries, order: KvKeyPart[], value: unknown): void {
    const before = entries.put(order, value);
    if (before.written === undefined) this.changes += 1;
    this.#before.push(before);
  }

  /**
   * Commits the writes, if there are any, and leaves the queues to the next batch at once. Answers what has changed,
   * or null for a conflict.
   */
  async commit(): Promise<Change[] | null> {
    const views = [...this.#views.values()];
    const written = views.filter((view) => view.isWritten);
    for (const view of written) view.writeEvents();
    const checked = written.length === 0 ? [] : views;
    const atomic: AtomicOperation<boolean> = this.kv.atomic();
    const changes: Change[] = [];
    for (const { name, state } of checked) {
      atomic.check({ key: [...this.base, name, "head"], versionstamp: state.versionstamp ?? null });
    }
    for (const { name, state, head, changed, isDestroyed } of written) {
      const key = [...this.base, name, "head"];
      if (isDestroyed) atomic.delete(key);
      else atomic.set(key, head);
      if (changed.jobs) atomic.set([...this.base, name, "mark"], head.seq);
      for (const entries of state.entries.values()) entries.send(atomic);
      state.versionstamp = undefined;
      changes.push({ queue: name, ...changed, seq: head.seq, event: head.event });
    }
    this.#leave(views);
    if (written.length === 0) return [];
    const outcome = await atomic.commit();
    if (!outcome.ok) return null;
    for (const { state } of written) state.versionstamp = outcome.versionstamp;
    return changes;
  }

  #leave(views: QueueView[]): void {
    for (const { name, state, head, isDestroyed } of views) {
      state.head = head;
      this.#states.delete(name);
      if (!isDestroyed) this.#states.set(name, state);
    }
    for (const name of this.#states.keys()) {
      if (this.#states.size <= STATES_MAX) break;
      this.#states.delete(name);
    }
  }

  /** Lets go of what the next batches are not likely to need, once this one is committed and before the next is. */
  settle(): void {
    for (const { state } of this.#views.values()) {
      for (const [kind, entries] of state.entries) {
        // Each job may have entries of its own below other kinds.
        const isKept = kind === JOBS || KEPT.has(kind) || entries.written.size > 0;
        if (isKept) entries.settle(kind === JOBS ? isJobKept : isNothingKept);
        else state.entries.delete(kind);
      }
    }
  }
}

/** The name of the entries that are jobs. */
const JOBS = "job";
/** The names of the entries of the sets. */
const SET_NAMES: Record<SetName, string> = {
  wait: setName("wait"),
  active: setName("active"),
  delayed: setName("delayed"),
  completed: setName("completed"),
  failed: setName("failed"),
  "waiting-children": setName("waiting-children"),
};
/** Entries of which the first are kept. */
const KEPT = new Set(Object.values(SET_NAMES));

function setName(name: SetName): string {
  return nameOf(["set", name]) as string;
}

function copied(job: Job | undefined): Job | undefined {
  return job && { ...job };
}

/** Whether a job is likely to be needed soon: a worker of this process may have it. */
function isJobKept(value: unknown): boolean {
  const job = value as Job | undefined;
  return job?.state === "active" && job.data.length <= JOB_CHARS_KEPT_MAX;
}

const isNothingKept = (): boolean => false;

/** A queue in a batch. */
export class QueueView {
  readonly batch: Batch;
  readonly name: string;
  readonly state: State;
  head: Head;
  /** Whether it has changed jobs or events for waiting workers and listeners. */
  changed = { jobs: false, events: false };
  /** The jobs were offered to waiting workers while the batch was made. */
  isOffered = false;
  isWritten = false;
  isDestroyed = false;
  /** The JSON of each. */
  #events: string[] = [];
  #before: {
    head: Head;
    changed: { jobs: boolean; events: boolean };
    events: number;
    written: boolean;
  };

  constructor(batch: Batch, name: string, state: State) {
    this.batch = batch;
    this.name = name;
    this.state = state;
    this.head = state.head;
    this.#before = this.#copy();
  }

  /** Whether there is no such queue yet. */
  get isNew(): boolean {
    return this.state.versionstamp === null;
  }

  begin(): void {
    this.#before = this.#copy();
  }

  undo(): void {
    const { head, changed, events, written } = this.#before;
    this.head = head;
    this.changed = changed;
    this.isWritten = written;
    this.isDestroyed = false;
    this.#events.length = events;
  }

  #copy() {
    const { counts, meta, limit } = this.head;
    return {
      head: {
        ...this.head,
        counts: { ...counts },
        meta: { ...meta },
        limit: limit && { ...limit },
      },
      changed: { ...this.changed },
      events: this.#events.length,
      written: this.isWritten,
    };
  }

  /** The head, to be changed. */
  change(): Head {
    this.isWritten = true;
    this.isDestroyed = false;
    return this.head;
  }

  /** Tells those who wait that there may be a job. */
  mark(): void {
    this.change();
    this.changed.jobs = true;
  }

  event(name: string, fields: Record<string, string | number | undefined> = {}): number {
    const head = this.change();
    head.event += 1;
    this.changed.events = true;
    const event: Record<string, string> = { event: name };
    for (const field of Object.keys(fields)) {
      const value = fields[field];
      if (value !== undefined) event[field] = String(value);
    }
    this.#events.push(JSON.stringify([head.event, event] satisfies QueueEvent));
    return head.event;
  }

  /** The number that orders what comes next. */
  next(): number {
    return ++this.change().seq;
  }

  get<T>(kind: string, ...order: KvKeyPart[]): Known<T | undefined> {
    return this.#of(kind).get<T>(order);
  }

  set(value: unknown, kind: string, ...order: KvKeyPart[]): void {
    this.change();
    this.batch.put(this.#of(kind), order, value);
  }

  delete(kind: string, ...order: KvKeyPart[]): void {
    this.set(undefined, kind, ...order);
  }

  /** The first entries below these parts; or the last ones, the last one first, without the writes of this commit. */
  list<T>(parts: KvKeyPart[], limit: number = Infinity, reverse = false): Known<Row<T>[]> {
    const entries = this.#below(parts);
    return reverse ? entries.last<T>(limit) : entries.list<T>(limit);
  }

  getIn<T>(parts: KvKeyPart[], order: KvKeyPart[]): Known<T | undefined> {
    return this.#below(parts).get<T>(order);
  }

  setIn(parts: KvKeyPart[], order: KvKeyPart[], value: unknown): void {
    this.change();
    this.batch.put(this.#below(parts), order, value);
  }

  deleteIn(parts: KvKeyPart[], order: KvKeyPart[]): void {
    this.setIn(parts, order, undefined);
  }

  #below(parts: KvKeyPart[]): Entries {
    return this.#of(nameOf(parts) as string, parts);
  }

  #of(name: string, parts: KvKeyPart[] = [name]): Entries {
    let entries = this.state.entries.get(name);
    if (entries === undefined) {
      entries = new Entries(this.batch.kv, [...this.batch.base, this.name, ...parts]);
      this.state.entries.set(name, entries);
    }
    return entries;
  }

  /** A job: a copy, so that an operation that fails leaves what others of the batch read. */
  job(id: string): Known<Job | undefined> {
    const job = this.#of(JOBS).get<Job>([keyPart(id)]);
    return job !== undefined && "then" in job ? job.then(copied) : copied(job);
  }

  save(job: Job): void {
    this.set(job, JOBS, keyPart(job.id));
  }

  /** The ids of the jobs in a state, in the order in which they are taken. */
  ids(name: SetName, limit: number = Infinity): Known<Row<string>[]> {
    return this.#of(SET_NAMES[name], ["set", name]).list<string>(limit);
  }

  /** The id of the first of them. */
  first(name: SetName): Known<Row<string> | undefined> {
    return this.#of(SET_NAMES[name], ["set", name]).first<string>();
  }

  /** Moves a job into a state, and saves it. */
  place(job: Job, state: JobState, order: number[]): void {
    this.take(job);
    job.state = state;
    job.order = order;
    if (state === "active") this.batch.gives = true;
    this.#count(job, 1);
    this.#put(state, order, job.id);
    this.save(job);
  }

  /** Takes a job out of its state. It is saved by the caller, or deleted. */
  take(job: Job): void {
    if (job.state === null) return;
    // A place of the global concurrency becomes free.
    if (job.state === "active" && this.isMaxed) this.mark();
    this.#put(job.state, job.order, undefined);
    this.#count(job, -1);
    job.state = null;
  }

  #put(state: JobState, order: number[], id: string | undefined): void {
    const name = setOf(state);
    this.change();
    this.batch.put(this.#of(SET_NAMES[name], ["set", name]), order, id);
  }

  #count(job: Job, by: number): void {
    const { counts } = this.change();
    if (job.state !== null) counts[job.state] += by;
  }

  /** Whether workers get no job for now: the queue is paused, or as many are active as may be. */
  get isPaused(): boolean {
    return this.head.meta["paused"] !== undefined;
  }

  get isMaxed(): boolean {
    return isMaxed(this.head);
  }

  /** Writes the events that the operations together have made. */
  writeEvents(): void {
    if (this.isDestroyed) return;
    let last = this.head.event - this.#events.length;
    let chunk: string[] = [];
    let chars = 0;
    const write = (): void => this.set(`[${chunk.join(",")}]`, "event", last);
    for (const text of this.#events) {
      if (chars > 0 && chars + text.length > EVENT_ENTRY_CHARS_MAX) {
        write();
        chunk = [];
        chars = 0;
      }
      chunk.push(text);
      chars += text.length;
      last += 1;
    }
    if (chars > 0) write();
  }

  /** Deletes old events once there are by so many more than are kept that it pays. */
  async trim(): Promise<void> {
    const { event, trimmed, meta } = this.head;
    const most = Number(meta["opts.maxLenEvents"] ?? EVENTS_MAX_DEFAULT);
    if (this.isWritten && !this.isDestroyed && event - trimmed > most + EVENTS_OVER_MAX) {
      await this.trimEvents(most);
    }
  }

  /** Deletes old events, whole entries of them, until about so many are left; answers how many it deleted. */
  async trimEvents(most: number): Promise<number> {
    const { event, trimmed } = this.head;
    const below = [...this.batch.base, this.name, "event"];
    // An entry has the events from the one before it, and those up to `trimmed` are deleted.
    const range = { start: [...below, trimmed + 1], end: [...below, event - most + 1] };
    const options = { limit: EVENT_ENTRIES_TRIMMED_MAX, keysOnly: true } as const;
    for (const { key } of await this.batch.kv.list(range, options).toArray()) {
      const last = key.at(-1) as number;
      this.delete("event", last);
      this.change().trimmed = last;
    }
    return this.head.trimmed - trimmed;
  }
}
