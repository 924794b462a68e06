// Duty: the commits of a database's queues. Operations of one process that wait at the same time are executed
// one after the other on a batch, which is one commit: they cost one sync of the disk together, and conflict
// with other processes only.
//
// Invariant: an operation reads the head of a queue before anything else of that queue, each write of a queue
// writes its head, and a commit checks the heads that it has read. So a commit that succeeds has read one state.
// An operation takes time, ids and limits as arguments and is executed again after a conflict: it has no effect
// but its writes and its answer.

import type { Kv, KvKey } from "openkv";
import { Batch, type QueueView, type States } from "./bullmq-batch.js";
import type { Head } from "./bullmq-job.js";

/** Operations of one commit at most. */
const BATCH_OPERATIONS_MAX = 256;
/** A batch takes no further operation once it has so many changes: half of what a commit of Deno KV's limits may have. */
const BATCH_CHANGES_MAX = 400;
/** After this many conflicts in a row the lane waits before it tries again. */
const CONFLICTS_AT_ONCE_MAX = 4;
/** The longest wait after a conflict, in milliseconds. */
const CONFLICT_MS_MAX = 20;

/** What an operation does; `queue` answers the view of a queue by its qualified name. */
export type Operation<T> = (queue: (name: string) => Promise<QueueView>) => Promise<T>;

interface Waiting {
  run: Operation<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Outcome = { waiting: Waiting; value?: unknown; error?: unknown };

/** What a commit has changed for those who wait, by the name of the queue. */
export type Changed = (queue: string, what: { jobs: boolean; events: boolean; head: Head }) => void;

// Kept before a test replaces it: a lane must not stand still with the clock of a test.
const setTimer = globalThis.setTimeout;

/** The lane of a base in a database. */
export class Lane {
  readonly #kv: Kv;
  readonly #base: KvKey;
  readonly #changed: Changed;
  readonly #states: States = new Map();
  readonly #waiting: Waiting[] = [];
  #running = false;
  /** Operations that the next batch takes: fewer after a conflict, so that a process with long batches gets its turn. */
  #size = BATCH_OPERATIONS_MAX;

  constructor(kv: Kv, base: KvKey, changed: Changed) {
    this.#kv = kv;
    this.#base = base;
    this.#changed = changed;
  }

  /** Executes an operation in a commit with others that wait. */
  write<T>(run: Operation<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run, resolve: resolve as (value: unknown) => void, reject });
      if (this.#running) return;
      this.#running = true;
      // What the same turn of the event loop adds is in the first batch.
      queueMicrotask(() => void this.#drain());
    });
  }

  /** Executes an operation that writes nothing, beside those that wait. */
  async read<T>(run: Operation<T>): Promise<T> {
    const batch = new Batch(this.#kv, this.#base, new Map());
    return await run((name) => batch.queue(name));
  }

  async #drain(): Promise<void> {
    let conflicts = 0;
    while (this.#waiting.length > 0) {
      const taken = this.#waiting.splice(0, this.#size);
      if (await this.#commit(taken)) {
        conflicts = 0;
        this.#size = Math.min(this.#size * 2, BATCH_OPERATIONS_MAX);
        continue;
      }
      this.#size = Math.max(1, Math.floor(taken.length / 2));
      conflicts += 1;
      if (conflicts > CONFLICTS_AT_ONCE_MAX) {
        const ms =
          Math.random() * Math.min(CONFLICT_MS_MAX, 2 ** (conflicts - CONFLICTS_AT_ONCE_MAX));
        await new Promise((resolve) => setTimer(resolve, ms));
      }
    }
    this.#running = false;
  }

  /** One commit of these operations; those that did not fit wait again, first in line. Answers false for a conflict. */
  async #commit(taken: Waiting[]): Promise<boolean> {
    const batch = new Batch(this.#kv, this.#base, this.#states);
    const outcomes: Outcome[] = [];
    for (const [index, waiting] of taken.entries()) {
      if (index > 0 && batch.changes > BATCH_CHANGES_MAX) {
        this.#waiting.unshift(...taken.splice(index));
        break;
      }
      batch.begin();
      try {
        outcomes.push({ waiting, value: await waiting.run((name) => batch.queue(name)) });
      } catch (error) {
        batch.undo();
        outcomes.push({ waiting, error });
      }
    }
    let ok: boolean;
    try {
      ok = await batch.commit();
    } catch (error) {
      if (taken.length === 1) {
        taken[0]?.reject(error);
        return true;
      }
      // One of them is too large, or the database is closed: each alone tells whose error it is.
      for (const [index, waiting] of taken.entries()) {
        if (!(await this.#commit([waiting]))) {
          this.#waiting.unshift(...taken.slice(index));
          return false;
        }
      }
      return true;
    }
    if (!ok) {
      this.#waiting.unshift(...taken);
      return false;
    }
    for (const outcome of outcomes) {
      if ("error" in outcome) outcome.waiting.reject(outcome.error);
      else outcome.waiting.resolve(outcome.value);
    }
    // Those that wait come after those that have made a job available.
    for (const { name, told, head } of batch.written()) this.#changed(name, { ...told, head });
    return true;
  }
}
