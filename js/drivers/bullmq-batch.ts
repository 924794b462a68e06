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
import {
  emptyHead,
  type Head,
  type Job,
  type JobState,
  type SetName,
  setOf,
} from "./bullmq-job.js";

/** Entries that the first read of a range asks for. */
const WINDOW_FIRST = 64;
/** Events that a queue keeps by default, as BullMQ documents it. */
export const EVENTS_MAX_DEFAULT = 10_000;
/** Events over its bound that a queue may have before old ones are deleted: a deletion per commit costs more. */
const EVENTS_OVER_MAX = 256;
/** Bytes of events in one entry, roughly. */
const EVENT_ENTRY_CHARS_MAX = 16_384;

/** One event: its number and its fields. */
export type QueueEvent = [number: number, fields: Record<string, string>];

export interface Row<T = unknown> {
  order: KvKeyPart[];
  value: T;
}

/** The writes below one key, over what the database has. */
class Bucket {
  readonly key: KvKey;
  readonly writes = new Map<string, Row<unknown>>();
  forward: Row[] = [];
  backward: Row[] = [];
  forwardDone = false;
  backwardDone = false;

  constructor(key: KvKey) {
    this.key = key;
  }
}

/** What undoes a write of the operation under way. */
type Undo = () => void;

export class Batch {
  readonly #kv: Kv;
  readonly #base: KvKey;
  readonly #buckets = new Map<string, Bucket>();
  readonly #reads = new Map<string, unknown>();
  readonly #views = new Map<string, QueueView>();
  #undo: Undo[] = [];
  /** Changes so far. */
  changes = 0;

  constructor(kv: Kv, base: KvKey) {
    this.#kv = kv;
    this.#base = base;
  }

  /** The view of a queue, with its head read. */
  async queue(name: string): Promise<QueueView> {
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const entry = await this.#kv.get<Head>([...this.#base, name, "head"]);
    const view = new QueueView(
      this,
      name,
      entry.value ?? emptyHead(Date.now()),
      entry.versionstamp,
    );
    this.#views.set(name, view);
    return view;
  }

  /** Begins an operation. */
  begin(): void {
    this.#undo = [];
    for (const view of this.#views.values()) view.begin();
  }

  /** Takes back what the operation has written. */
  undo(): void {
    for (const undo of this.#undo.reverse()) undo();
    this.#undo = [];
    for (const view of this.#views.values()) view.undo();
  }

  written(): QueueView[] {
    return [...this.#views.values()].filter((view) => view.isWritten);
  }

  async get<T>(bucket: KvKey, order: KvKeyPart[]): Promise<T | undefined> {
    const found = this.#bucket(bucket);
    const name = nameOf(order);
    const written = found.writes.get(name);
    if (written !== undefined) return written.value as T | undefined;
    const whole = `${nameOf(found.key)}${name}`;
    if (this.#reads.has(whole)) return this.#reads.get(whole) as T | undefined;
    const { value } = await this.#kv.get<T>([...this.#base, ...bucket, ...order]);
    this.#reads.set(whole, value ?? undefined);
    return value ?? undefined;
  }

  set(bucket: KvKey, order: KvKeyPart[], value: unknown): void {
    const found = this.#bucket(bucket);
    const name = nameOf(order);
    const before = found.writes.get(name);
    found.writes.set(name, { order, value });
    if (before === undefined) this.changes += 1;
    this.#undo.push(() => {
      if (before !== undefined) found.writes.set(name, before);
      else {
        found.writes.delete(name);
        this.changes -= 1;
      }
    });
  }

  delete(bucket: KvKey, order: KvKeyPart[]): void {
    this.set(bucket, order, undefined);
  }

  /** The entries of a bucket in their order, up to `limit` of them. */
  async list<T>(bucket: KvKey, limit: number, reverse = false): Promise<Row<T>[]> {
    const found = this.#bucket(bucket);
    const sign = reverse ? -1 : 1;
    const own = [...found.writes.values()];
    const needed = limit + own.length;
    await this.#fill(found, needed, reverse);
    const rows = (reverse ? found.backward : found.forward).filter(
      ({ order }) => !found.writes.has(nameOf(order)),
    );
    const added = own.filter(({ value }) => value !== undefined);
    if (added.length > 0) {
      rows.push(...added);
      rows.sort((a, b) => sign * compare(a.order, b.order));
    }
    return rows.slice(0, limit) as Row<T>[];
  }

  /** Reads the first `needed` entries of a bucket that the database has. */
  async #fill(bucket: Bucket, needed: number, reverse: boolean): Promise<void> {
    const have = reverse ? bucket.backward : bucket.forward;
    if ((reverse ? bucket.backwardDone : bucket.forwardDone) || have.length >= needed) return;
    const limit = Math.max(WINDOW_FIRST, needed * 2);
    const prefix = [...this.#base, ...bucket.key];
    const options = Number.isFinite(limit) ? { limit, reverse } : { reverse };
    const entries = await this.#kv.list({ prefix }, options).toArray();
    const rows = entries.map(({ key, value }) => ({ order: key.slice(prefix.length), value }));
    if (reverse) {
      bucket.backward = rows;
      bucket.backwardDone = rows.length < limit;
    } else {
      bucket.forward = rows;
      bucket.forwardDone = rows.length < limit;
    }
  }

  #bucket(key: KvKey): Bucket {
    const name = nameOf(key);
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = new Bucket(key);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  /** Commits the writes, if there are any. Answers false for a conflict. */
  async commit(): Promise<boolean> {
    const written = this.written();
    if (written.length === 0) return true;
    for (const view of written) await view.finish();
    const atomic: AtomicOperation<boolean> = this.#kv.atomic();
    for (const view of this.#views.values()) {
      const key = [...this.#base, view.name, "head"];
      atomic.check({ key, versionstamp: view.versionstamp });
      if (!view.isWritten) continue;
      if (view.isDestroyed) atomic.delete(key);
      else atomic.set(key, view.head);
      if (view.told.jobs) atomic.set([...this.#base, view.name, "mark"], view.head.seq);
    }
    for (const { key, writes } of this.#buckets.values()) {
      for (const { order, value } of writes.values()) {
        const whole = [...this.#base, ...key, ...order];
        if (value === undefined) atomic.delete(whole);
        else atomic.set(whole, value);
      }
    }
    return (await atomic.commit()).ok;
  }
}

/** A queue in a batch. */
export class QueueView {
  readonly batch: Batch;
  readonly name: string;
  readonly versionstamp: string | null;
  head: Head;
  /** What has changed for those who wait. */
  told = { jobs: false, events: false };
  isWritten = false;
  isDestroyed = false;
  #events: QueueEvent[] = [];
  #before: {
    head: Head;
    told: { jobs: boolean; events: boolean };
    events: number;
    written: boolean;
  };

  constructor(batch: Batch, name: string, head: Head, versionstamp: string | null) {
    this.batch = batch;
    this.name = name;
    this.head = head;
    this.versionstamp = versionstamp;
    this.#before = this.#state();
  }

  begin(): void {
    this.#before = this.#state();
  }

  undo(): void {
    const { head, told, events, written } = this.#before;
    this.head = head;
    this.told = told;
    this.isWritten = written;
    this.isDestroyed = false;
    this.#events.length = events;
  }

  #state() {
    const { counts, meta, limit } = this.head;
    return {
      head: {
        ...this.head,
        counts: { ...counts },
        meta: { ...meta },
        limit: limit && { ...limit },
      },
      told: { ...this.told },
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
    this.told.jobs = true;
  }

  event(name: string, fields: Record<string, string | number | undefined> = {}): number {
    const head = this.change();
    head.event += 1;
    this.told.events = true;
    const told: Record<string, string> = { event: name };
    for (const [field, value] of Object.entries(fields)) {
      if (value !== undefined) told[field] = String(value);
    }
    this.#events.push([head.event, told]);
    return head.event;
  }

  /** The number that orders what comes next. */
  next(): number {
    return ++this.change().seq;
  }

  async get<T>(kind: string, ...order: KvKeyPart[]): Promise<T | undefined> {
    return await this.batch.get<T>([this.name, kind], order);
  }

  set(value: unknown, kind: string, ...order: KvKeyPart[]): void {
    this.change();
    this.batch.set([this.name, kind], order, value);
  }

  delete(kind: string, ...order: KvKeyPart[]): void {
    this.change();
    this.batch.delete([this.name, kind], order);
  }

  /** The entries below these parts. */
  async list<T>(parts: KvKeyPart[], limit: number = Infinity, reverse = false): Promise<Row<T>[]> {
    return await this.batch.list<T>([this.name, ...parts], limit, reverse);
  }

  setIn(parts: KvKeyPart[], order: KvKeyPart[], value: unknown): void {
    this.change();
    this.batch.set([this.name, ...parts], order, value);
  }

  deleteIn(parts: KvKeyPart[], order: KvKeyPart[]): void {
    this.change();
    this.batch.delete([this.name, ...parts], order);
  }

  async job(id: string): Promise<Job | undefined> {
    const job = await this.get<Job>("job", keyPart(id));
    // A copy, so that an operation that fails leaves what others of the batch read.
    return job && { ...job };
  }

  save(job: Job): void {
    this.set(job, "job", keyPart(job.id));
  }

  /** The ids of the jobs in a state, in the order in which they are taken. */
  async ids(name: SetName, limit: number = Infinity, reverse = false): Promise<Row<string>[]> {
    return await this.list<string>(["set", name], limit, reverse);
  }

  /** Moves a job into a state, and saves it. */
  place(job: Job, state: JobState, order: number[]): void {
    this.take(job);
    job.state = state;
    job.order = order;
    this.#count(job, 1);
    this.setIn(["set", setOf(state)], order, job.id);
    this.save(job);
  }

  /** Takes a job out of its state. It is saved by the caller, or deleted. */
  take(job: Job): void {
    if (job.state === null) return;
    // A place of the global concurrency becomes free.
    if (job.state === "active" && this.isMaxed) this.mark();
    this.deleteIn(["set", setOf(job.state)], job.order);
    this.#count(job, -1);
    job.state = null;
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
    const most = this.head.meta["concurrency"];
    return most !== undefined && this.head.counts.active >= Number(most);
  }

  /** Writes what the operations together have made: the events, and the deletion of old ones. */
  async finish(): Promise<void> {
    if (this.isDestroyed || this.#events.length === 0) return;
    let chunk: QueueEvent[] = [];
    let chars = 0;
    const flush = (): void => {
      const last = chunk.at(-1);
      if (last !== undefined) this.set(chunk, "event", last[0]);
      chunk = [];
      chars = 0;
    };
    for (const event of this.#events) {
      const size = Object.values(event[1]).reduce((sum, text) => sum + text.length, 0);
      if (chars + size > EVENT_ENTRY_CHARS_MAX) flush();
      chunk.push(event);
      chars += size;
    }
    flush();
    const most = Number(this.head.meta["opts.maxLenEvents"] ?? EVENTS_MAX_DEFAULT);
    if (this.head.event - this.head.trimmed > most + EVENTS_OVER_MAX) await this.trimEvents(most);
  }

  /** Deletes old events, whole entries of them, until about so many are left; answers how many it deleted. */
  async trimEvents(most: number): Promise<number> {
    const last = this.head.event - most;
    let deleted = 0;
    for (const { order, value } of await this.list<QueueEvent[]>(["event"], EVENTS_OVER_MAX)) {
      if ((order[0] as number) > last) break;
      deleted += value.length;
      this.deleteIn(["event"], order);
      this.change().trimmed = order[0] as number;
    }
    return deleted;
  }
}

function nameOf(parts: KvKey): string {
  let name = "";
  for (const part of parts) {
    const kind = typeof part === "string" ? "s" : typeof part === "number" ? "n" : "b";
    name += `\0${kind}${String(part)}`;
  }
  return name;
}

/** The order of keys: numbers and texts of one kind at each place. */
function compare(a: KvKey, b: KvKey): number {
  for (const [index, part] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (part === other) continue;
    if (typeof part !== typeof other)
      return typeof part === "object"
        ? -1
        : typeof part === "string" && typeof other !== "object"
          ? -1
          : 1;
    return (part as string) < (other as string) ? -1 : 1;
  }
  return a.length - b.length;
}
