// Duty: the commits of a database's queues. Operations of one process that wait at the same time are executed
// one after the other on a batch, which is one commit: they cost one sync of the disk together, and conflict
// with other processes only. While a batch is being committed, the next one is decided on what it will leave.
//
// Invariant: an operation reads the head of a queue before anything else of that queue, each write of a queue
// writes its head, and a commit checks the heads that it has read. So a commit that succeeds has read one state.
// An operation takes time, ids and limits as arguments and is executed again after a conflict: it has no effect
// but its writes and its answer. A batch is sent once the one before it has succeeded, and its check names that
// one's commit; if that one has failed, the operations of both are executed again, in their order.

import type { Kv, KvKey } from "openkv";
import { nextTick } from "node:process";
import { Batch, type Change, type States } from "./bullmq-batch.js";
import type { Queues } from "./bullmq-children.js";
import type { Known } from "./bullmq-entries.js";

/** Operations of one commit at most. */
const BATCH_OPERATIONS_MAX = 256;
/** A batch takes no further operation once it has so many changes: half of what a commit of Deno KV's limits may have. */
const BATCH_CHANGES_MAX = 400;
/** A batch with at least so many operations leaves as many to the next one, which is decided during its commit. */
const HALVED_OPERATIONS_MIN = 8;
/** After this many conflicts in a row the lane waits before it tries again. */
const CONFLICTS_AT_ONCE_MAX = 4;
/** The longest wait after a conflict, in milliseconds. */
const CONFLICT_MS_MAX = 20;

/** What an operation does with the queues that it names. */
export type Operation<T> = (queues: Queues) => Known<T>;

interface Waiting {
  run: Operation<unknown>;
  /** It is a batch of its own, decided on what is committed. */
  isAlone: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Outcome {
  waiting: Waiting;
  /** It has given a job to a worker. */
  gives: boolean;
  value?: unknown;
  error?: unknown;
}

/** A batch that is decided: its operations with their outcomes, which they get once it is committed. */
interface Decided {
  batch: Batch;
  outcomes: Outcome[];
}

/** A batch whose commit is under way: if that fails, its operations that are to be executed again. */
interface Sent {
  batch: Batch;
  failed: Promise<Waiting[] | null>;
}

/** Those who wait for a queue. */
export interface Listeners {
  /** A batch in the making has a job for one who waits: who takes it at once takes it in the same commit. */
  offered(queue: string): void;
  changed(change: Change): void;
}

// Kept before a test replaces it: a lane must not stand still with the clock of a test.
const setTimer = globalThis.setTimeout;

/** The lane of a base in a database. */
export class Lane {
  readonly #kv: Kv;
  readonly #base: KvKey;
  readonly #listeners: Listeners;
  readonly #states: States = new Map();
  #waiting: Waiting[] = [];
  #running = false;
  /** Operations of the batch whose commit is under way. */
  #underWay = 0;
  /** Wakes the lane for an operation that has come, or for the end of a commit. */
  #wake: () => void = () => {};
  /** Operations that the next batch takes: fewer after a conflict, so that a process with long batches gets its turn. */
  #size = BATCH_OPERATIONS_MAX;
  #conflicts = 0;

  constructor(kv: Kv, base: KvKey, listeners: Listeners) {
    this.#kv = kv;
    this.#base = base;
    this.#listeners = listeners;
  }

  /** Executes an operation in a commit with others that wait; or alone, if it reads more than it names. */
  write<T>(run: Operation<T>, isAlone = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run, isAlone, resolve: resolve as (value: unknown) => void, reject });
      this.#wake();
      if (this.#running) return;
      this.#running = true;
      void this.#drain();
    });
  }

  /** Executes an operation that writes nothing, beside those that wait. */
  async read<T>(run: Operation<T>): Promise<T> {
    const batch = new Batch(this.#kv, this.#base, new Map());
    return await run((name) => batch.queue(name));
  }

  async #drain(): Promise<void> {
    let sent: Sent | null = null;
    while (sent !== null || this.#waiting.length > 0) {
      const decided = await this.#decide();
      const failed: Waiting[] | null = sent === null ? null : await sent.failed;
      if (failed !== null) {
        this.#states.clear();
        this.#waiting.unshift(...failed, ...decided.outcomes.map(({ waiting }) => waiting));
        sent = null;
        await this.#giveWay();
        continue;
      }
      sent?.batch.settle();
      const { batch, outcomes } = decided;
      sent = outcomes.length === 0 ? null : { batch, failed: this.#commit(decided) };
    }
    this.#running = false;
  }

  /** Executes operations on a batch until it is full, or until none waits and no commit is under way. */
  async #decide(): Promise<Decided> {
    const batch = new Batch(this.#kv, this.#base, this.#states);
    const queues = (name: string) => batch.queue(name);
    const outcomes: Outcome[] = [];
    for (;;) {
      while (this.#takes(batch, outcomes)) {
        const waiting = this.#waiting.shift() as Waiting;
        batch.begin();
        try {
          const value = await waiting.run(queues);
          outcomes.push({ waiting, gives: batch.gives, value });
        } catch (error) {
          batch.undo();
          outcomes.push({ waiting, gives: false, error });
        }
      }
      if (this.#waiting.length > 0) break;
      if (this.#underWay > 0) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        if (this.#underWay === 0 && outcomes.length > 0) break;
      } else {
        for (const name of batch.offered()) this.#listeners.offered(name);
        // What the same callback of the event loop adds comes into the same batch.
        await new Promise<void>((resolve) => nextTick(resolve));
        if (this.#waiting.length === 0) break;
      }
    }
    batch.begin();
    // What it cannot do the next batch does.
    await batch.trim().catch(() => batch.undo());
    return { batch, outcomes };
  }

  /** Whether a batch with these operations takes the next one that waits. */
  #takes(batch: Batch, { length, [0]: first }: Outcome[]): boolean {
    const [next] = this.#waiting;
    if (next === undefined) return false;
    if (next.isAlone && this.#underWay > 0) return false;
    if (length === 0) return true;
    const all = this.#underWay + length + this.#waiting.length;
    return (
      !next.isAlone &&
      first?.waiting.isAlone !== true &&
      batch.changes <= BATCH_CHANGES_MAX &&
      length < this.#size &&
      (length < HALVED_OPERATIONS_MIN || length < all / 2)
    );
  }

  /** Commits a batch and answers its operations. If it fails, returns those that are to be executed again. */
  async #commit({ batch, outcomes }: Decided): Promise<Waiting[] | null> {
    this.#underWay = outcomes.length;
    try {
      const changes = await batch.commit();
      if (changes === null) {
        this.#conflicts += 1;
        this.#size = Math.max(1, Math.floor(outcomes.length / 2));
        return outcomes.map(({ waiting }) => waiting);
      }
      this.#conflicts = 0;
      this.#size = Math.min(this.#size * 2, BATCH_OPERATIONS_MAX);
      // Callers who have added jobs go on before these are handled.
      const isLater = ({ gives }: Outcome): boolean => gives && changes.some(({ jobs }) => jobs);
      for (const outcome of outcomes) if (!isLater(outcome)) answer(outcome);
      const later = outcomes.filter(isLater);
      if (later.length > 0) nextTick(() => later.forEach(answer));
      // Those that wait come after those that have made a job available.
      for (const change of changes) this.#listeners.changed(change);
      return null;
    } catch (error) {
      const [{ waiting }] = outcomes as [Outcome];
      if (outcomes.length > 1) {
        // One of them is too large, or the database is closed: each alone tells whose error it is.
        return outcomes.map(({ waiting }) => ({ ...waiting, isAlone: true }));
      }
      waiting.reject(error);
      return [];
    } finally {
      this.#underWay = 0;
      this.#wake();
    }
  }

  /** After many conflicts in a row another process gets its turn. */
  async #giveWay(): Promise<void> {
    if (this.#conflicts <= CONFLICTS_AT_ONCE_MAX) return;
    const most = Math.min(CONFLICT_MS_MAX, 2 ** (this.#conflicts - CONFLICTS_AT_ONCE_MAX));
    await new Promise((resolve) => setTimer(resolve, Math.random() * most));
  }
}

function answer(outcome: Outcome): void {
  if ("error" in outcome) outcome.waiting.reject(outcome.error);
  else outcome.waiting.resolve(outcome.value);
}
