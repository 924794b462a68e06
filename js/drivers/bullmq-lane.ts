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
import { hasJob } from "./bullmq-job.js";

/** Operations of one commit at most. */
const BATCH_OPERATIONS_MAX = 256;
/** A batch takes no further operation once it has so many changes: half of what a commit of Deno KV's limits may have. */
const BATCH_CHANGES_MAX = 400;
/** A batch with at least so many operations leaves as many to the next one, which is decided during its commit. */
const HALVED_OPERATIONS_MIN = 8;
/** After a conflict so many batches are decided one after the other only: their commits leave time for another process. */
const BATCHES_AFTER_CONFLICT = 16;
/** After this many conflicts in a row the lane waits before it tries again. */
const CONFLICTS_AT_ONCE_MAX = 4;
/** The longest wait after a conflict, in milliseconds. */
const CONFLICT_MS_MAX = 20;

/** What an operation does with the queues that it names. */
export type Operation<T> = (queues: Queues) => Known<T>;

/**
 * How an operation joins a batch. One that is `alone` has a batch of its own, which is decided on what is committed. One
 * that `asks` gives a job to a worker, or has no effect: it is executed again if its batch adds a job.
 */
export type Manner = "joined" | "alone" | "asks";

interface Waiting {
  run: Operation<unknown>;
  manner: Manner;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Outcome {
  waiting: Waiting;
  /** It has looked for a job for a worker; and has given it one. */
  seeks: boolean;
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
  /** Batches to come that wait for the commit before them. */
  #inTurn = 0;

  constructor(kv: Kv, base: KvKey, listeners: Listeners) {
    this.#kv = kv;
    this.#base = base;
    this.#listeners = listeners;
  }

  /** Executes an operation in a commit with others that wait. */
  write<T>(run: Operation<T>, manner: Manner = "joined"): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run, manner, resolve: resolve as (value: unknown) => void, reject });
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

  /** Whether a queue has a job for a worker by the last batch, which has the jobs that came since the request of the worker. */
  hasJob(queue: string): boolean {
    const state = this.#states.get(queue);
    return state !== undefined && hasJob(state.head);
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
          outcomes.push({ waiting, seeks: batch.seeks, gives: batch.gives, value });
        } catch (error) {
          batch.undo();
          outcomes.push({ waiting, seeks: false, gives: false, error });
        }
      }
      if (this.#waiting.length > 0) break;
      if (this.#underWay > 0) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        if (this.#underWay === 0 && outcomes.length > 0) break;
      } else {
        if (this.#offer(batch, outcomes)) continue;
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

  /** Offers the jobs of a batch to workers, once. Returns whether a worker whose request found none has to repeat it. */
  #offer(batch: Batch, outcomes: Outcome[]): boolean {
    const offered = batch.offered();
    if (offered.length === 0) return false;
    for (const name of offered) this.#listeners.offered(name);
    const inVain = outcomes.filter(({ waiting, gives }) => waiting.manner === "asks" && !gives);
    for (const outcome of inVain) outcomes.splice(outcomes.indexOf(outcome), 1);
    this.#waiting.push(...inVain.map(({ waiting }) => waiting));
    return inVain.length > 0;
  }

  /** Whether a batch with these operations takes the next one that waits. */
  #takes(batch: Batch, { length, [0]: first }: Outcome[]): boolean {
    const [next] = this.#waiting;
    if (next === undefined) return false;
    if (this.#underWay > 0 && (next.manner === "alone" || this.#inTurn > 0)) return false;
    if (length === 0) return true;
    const all = this.#underWay + length + this.#waiting.length;
    const isHalf = length >= HALVED_OPERATIONS_MIN && length >= all / 2 && this.#inTurn === 0;
    const isFull = length >= this.#size || batch.changes > BATCH_CHANGES_MAX || isHalf;
    return !isFull && next.manner !== "alone" && first?.waiting.manner !== "alone";
  }

  /** Commits a batch and answers its operations. If it fails, returns those that are to be executed again. */
  async #commit({ batch, outcomes }: Decided): Promise<Waiting[] | null> {
    this.#underWay = outcomes.length;
    try {
      const changes = await batch.commit();
      if (changes === null) {
        this.#conflicts += 1;
        this.#inTurn = BATCHES_AFTER_CONFLICT;
        this.#size = Math.max(1, Math.floor(outcomes.length / 2));
        return outcomes.map(({ waiting }) => waiting);
      }
      this.#conflicts = 0;
      this.#inTurn = Math.max(0, this.#inTurn - 1);
      this.#size = Math.min(this.#size * 2, BATCH_OPERATIONS_MAX);
      for (const outcome of outcomes) if (!outcome.seeks) answer(outcome);
      // Callers who have added jobs, by this commit or the one before it, go on before these are handled. All workers
      // wait for that: one who hears of a rate limit before another gets its job lets that job wait for the limit.
      const seeking = outcomes.filter(({ seeks }) => seeks);
      if (seeking.length > 0) nextTick(() => seeking.forEach(answer));
      // Those that wait come after those that have made a job available.
      for (const change of changes) this.#listeners.changed(change);
      return null;
    } catch (error) {
      const [{ waiting }] = outcomes as [Outcome];
      if (outcomes.length > 1) {
        // One of them is too large, or the database is closed: each alone tells whose error it is.
        return outcomes.map(({ waiting }) => ({ ...waiting, manner: "alone" as const }));
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
