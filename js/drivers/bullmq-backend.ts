// Duty: BullMQ's IQueueBackend for one queue: each method that changes it is an operation on a batch, with the time of
// the call. bullmq-queries.ts has those that only read.

import type {
  FinishedStatus,
  IQueueBackend,
  JobJson,
  JobProgress,
  JobsOptions,
  KeepJobs,
  MinimalJob,
  MoveToDelayedOpts,
  MoveToWaitingChildrenOpts,
  ParentKeyOpts,
  QueueBaseOptions,
  RepeatableOptions,
  RetryJobOpts,
  RetryOptions,
  WorkerOptions,
} from "bullmq";
import { keyPart } from "./key-part.js";
import { type Addition, add, type Release, releaseAll } from "./bullmq-addition.js";
import type { QueueView } from "./bullmq-batch.js";
import { copyOf } from "./bullmq-job.js";
import { leaveParent, type Queues } from "./bullmq-children.js";
import type { Manner } from "./bullmq-lane.js";
import { forget } from "./bullmq-winner.js";
import type { SharedPlace } from "./bullmq-place.js";
import { Queries } from "./bullmq-queries.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";
import * as removal from "./bullmq-removal.js";
import * as schedulers from "./bullmq-scheduler.js";
import * as states from "./bullmq-states.js";

/** What BullMQ sets as the jobs taken when a worker asks for a pause of the queue. */
const TAKEN_ALL = Number.MAX_SAFE_INTEGER;
/** Jobs that one commit adds: more are added by several, one after the other. */
const ADDED_MAX = 1000;
const LOCK_MS_DEFAULT = 30_000;
const STALLED_INTERVAL_MS_DEFAULT = 30_000;
const STALLED_MAX_DEFAULT = 1;
/** The major version of BullMQ whose interface this is. */
const BULLMQ_MAJOR = 6;

/** The answer of an operation that ends a job. */
type Finished = Awaited<ReturnType<IQueueBackend["moveToCompleted"]>>;

/** A queue of BullMQ in a database of openkv. */
export class OpenKvQueueBackend extends Queries implements IQueueBackend {
  readonly #opts: QueueBaseOptions<any> & Partial<WorkerOptions>;

  constructor(
    shared: SharedPlace,
    queueName: string,
    opts: QueueBaseOptions<any>,
    clientSuffix: string | null,
  ) {
    super(shared, queueName, (opts as { prefix?: string }).prefix, clientSuffix);
    this.#opts = opts as QueueBaseOptions<any> & Partial<WorkerOptions>;
  }

  forQueue(queueName: string, prefix?: string): IQueueBackend {
    const opts = { ...this.#opts, prefix: prefix ?? this.prefix };
    return new OpenKvQueueBackend(this.shared, queueName, opts, null).borrow(this);
  }

  #write<T>(run: (view: QueueView, queues: Queues) => Promise<T>, manner?: Manner): Promise<T> {
    return this.write((queues) => {
      const view = queues(this.qualifiedName);
      return "then" in view ? view.then((read) => run(read, queues)) : run(view, queues);
    }, manner);
  }

  // Adding

  async addJob(json: JobJson, jobId: string, parentKeyOpts: ParentKeyOpts = {}): Promise<string> {
    const now = Date.now();
    return await this.#write((view, queues) =>
      add(queues, view, { json, jobId, parentKeyOpts }, now),
    );
  }

  async addJobs(
    entries: { job: JobJson; jobId: string; parentKeyOpts?: ParentKeyOpts }[],
  ): Promise<string[]> {
    const now = Date.now();
    const ids: string[] = [];
    for (let from = 0; from < entries.length; from += ADDED_MAX) {
      const part = entries.slice(from, from + ADDED_MAX);
      const added = await this.#write(async (view, queues) => {
        const ofPart: string[] = [];
        for (const { job, jobId, parentKeyOpts = {} } of part) {
          ofPart.push(await add(queues, view, { json: job, jobId, parentKeyOpts }, now));
        }
        return ofPart;
      });
      ids.push(...added);
    }
    return ids;
  }

  async addFlow(
    entries: {
      jobData: JobJson;
      jobId: string;
      parentKeyOpts: ParentKeyOpts;
      prefix: string;
      queueName: string;
    }[],
  ): Promise<[Error | null, string | number][]> {
    const now = Date.now();
    try {
      return await this.write(async (queues) => {
        const answers: [Error | null, string | number][] = [];
        const later: Release[] = [];
        for (const { jobData, jobId, parentKeyOpts, prefix, queueName } of entries) {
          const view = await queues(`${prefix}:${queueName}`);
          const addition: Addition = { json: jobData, jobId, parentKeyOpts };
          answers.push(await codeOf(add(queues, view, addition, now, later)));
        }
        await releaseAll(later, now);
        return answers;
      });
    } catch (error) {
      return entries.map(() => [error as Error, 0]);
    }
  }

  // Jobs of workers

  #taker(token: string, name = this.#opts.name): states.Taker {
    const { lockDuration = LOCK_MS_DEFAULT, limiter } = this.#opts;
    return { token, name, lockMs: lockDuration, limiter };
  }

  async moveToActive(token: string, name?: string): Promise<any[]> {
    const taker = this.#taker(token, name);
    // Executed again, it may take a job that has become due since: the time is that of the taking.
    const take = (view: QueueView) => states.takeNext(view, taker, Date.now());
    return await this.attempt(() => this.#write(take, "asks"));
  }

  async moveToCompleted<T = any, R = any, N extends string = string>(
    job: MinimalJob<T, R, N>,
    returnValue: R,
    removeOnComplete: boolean | number | KeepJobs,
    token: string,
    fetchNext: boolean,
  ): Promise<Finished> {
    const keep = keepOf(removeOnComplete, this.#opts.removeOnComplete);
    const value = JSON.stringify(returnValue === undefined ? null : returnValue);
    return await this.#finish(
      job,
      { kind: "completed", value, keep, fields: undefined },
      token,
      fetchNext,
    );
  }

  async moveToFailed<T = any, R = any, N extends string = string>(
    job: MinimalJob<T, R, N>,
    failedReason: string,
    removeOnFail: boolean | number | KeepJobs,
    token: string,
    fetchNext: boolean,
    fields?: Record<string, any>,
  ): Promise<Finished> {
    const keep = keepOf(removeOnFail, this.#opts.removeOnFail);
    return await this.#finish(
      job,
      { kind: "failed", value: failedReason, keep, fields },
      token,
      fetchNext,
    );
  }

  async #finish(
    { id }: MinimalJob<any, any, any>,
    end: Pick<states.Finish, "kind" | "value" | "keep" | "fields">,
    token: string,
    fetchNext: boolean,
  ): Promise<Finished> {
    const now = Date.now();
    const points = this.#opts.metrics?.maxDataPoints ?? 0;
    const fetches = fetchNext && this.closing === undefined;
    const result = await this.#write(async (view, queues) => {
      await states.finish(queues, view, { ...end, jobId: id as string, token, points, now });
      const next = fetches ? await states.takeNext(view, this.#taker(token), now) : undefined;
      if (!next?.[0]) states.tellDrained(view);
      return next;
    });
    return { result, finishedOn: now };
  }

  async moveToDelayed(
    jobId: string,
    timestamp: number,
    delay: number,
    token = "0",
    opts: MoveToDelayedOpts = {},
  ): Promise<any[]> {
    const { skipAttempt = false, fieldsToUpdate: fields, fetchNext } = opts;
    const fetches = fetchNext && this.closing === undefined;
    const now = Date.now();
    return await this.#write(async (view) => {
      await states.delay(view, { jobId, token, now: timestamp, ms: delay, skipAttempt, fields });
      const next = fetches ? await states.takeNext(view, this.#taker(token), now) : undefined;
      return next?.[0] ? next : [];
    });
  }

  async moveToWaitingChildren(
    jobId: string,
    token: string,
    opts: MoveToWaitingChildrenOpts = {},
  ): Promise<boolean> {
    const now = Date.now();
    return await this.#write((view) => states.awaitChildren(view, jobId, token, opts.child, now));
  }

  async moveJobFromActiveToWait(jobId: string, token = "0"): Promise<number> {
    const now = Date.now();
    return await this.#write((view) => states.giveBack(view, jobId, token, now));
  }

  async retryJob(
    jobId: string,
    lifo: boolean,
    token = "0",
    opts: RetryJobOpts = {},
  ): Promise<void> {
    const now = Date.now();
    await this.#write((view) => states.retry(view, jobId, lifo, token, opts.fieldsToUpdate, now));
  }

  async retryFinishedJob<T = any, R = any, N extends string = string>(
    job: MinimalJob<T, R, N>,
    state: "failed" | "completed",
    opts: RetryOptions = {},
  ): Promise<void> {
    const retry = {
      state,
      lifo: job.opts?.lifo ?? false,
      resetMade: opts.resetAttemptsMade ?? false,
      resetStarted: opts.resetAttemptsStarted ?? false,
    };
    await this.#write((view, queues) =>
      states.retryFinished(queues, view, job.id as string, retry),
    );
  }

  async promote(jobId: string): Promise<void> {
    await this.#write((view) => states.promote(view, jobId));
  }

  async moveStalledJobsToWait(): Promise<string[]> {
    const { maxStalledCount = STALLED_MAX_DEFAULT, stalledInterval = STALLED_INTERVAL_MS_DEFAULT } =
      this.#opts;
    const now = Date.now();
    const recovered = await this.#write((view) =>
      states.recover(view, maxStalledCount, stalledInterval, now),
    );
    this.tellPresence(stalledInterval);
    return recovered;
  }

  async extendLock(jobId: string, token: string, duration: number): Promise<number> {
    const now = Date.now();
    return (await this.#write((view) => states.extend(view, jobId, token, duration, now))) ? 1 : 0;
  }

  async extendLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const now = Date.now();
    return await this.#write(async (view) => {
      const lost: string[] = [];
      for (const [index, id] of jobIds.entries()) {
        if (!(await states.extend(view, id, tokens[index] ?? "", duration, now))) lost.push(id);
      }
      return lost;
    });
  }

  // Jobs of administrators

  async retryFinishedJobs(
    state: FinishedStatus = "failed",
    count: number = states.MOVED_MAX,
    timestamp: number = Date.now(),
  ): Promise<number> {
    const step = Math.min(count, states.MOVED_MAX);
    return (await this.#write((view) => states.moveToWait(view, state, step, timestamp))) ? 1 : 0;
  }

  async promoteJobs(count: number = states.MOVED_MAX): Promise<number> {
    const step = Math.min(count, states.MOVED_MAX);
    return (await this.#write((view) => states.moveToWait(view, "delayed", step, Infinity)))
      ? 1
      : 0;
  }

  async pause(pause: boolean): Promise<void> {
    await this.#write(async (view) => {
      const { meta } = view.change();
      if (pause) meta["paused"] = "1";
      else {
        delete meta["paused"];
        view.mark();
      }
      view.event(pause ? "paused" : "resumed");
    });
  }

  async drain(delayed: boolean): Promise<void> {
    while (await this.#write((view, queues) => removal.drain(queues, view, delayed)));
  }

  async cleanJobsByState(state: string, timestamp: number, limit = 0): Promise<string[]> {
    const now = Date.now();
    const removed: string[] = [];
    for (let more = true; more; ) {
      const selection = { type: state, until: timestamp, most: limit, before: removed.length, now };
      const step = await this.#write((view, queues) => removal.clean(queues, view, selection));
      removed.push(...step.ids);
      more = step.more;
    }
    return removed;
  }

  async obliterate({ force, count }: { force: boolean; count: number }): Promise<number> {
    const now = Date.now();
    // It reads whole kinds of entries, of which others are written by their jobs.
    const answer = await this.#write(
      (view, queues) => removal.obliterate(queues, view, count, force, now),
      "alone",
    );
    if ("more" in answer) return answer.more ? 1 : 0;
    throw new Error(
      answer.kept === "jobs are active"
        ? "Cannot obliterate queue with active jobs"
        : "Cannot obliterate non-paused queue",
    );
  }

  /** A job and its place are written by one commit: there are no orphans. */
  async removeOrphanedJobs(_count?: number, _limit?: number): Promise<number> {
    return 0;
  }

  async updateData<T = any, R = any, N extends string = string>(
    job: MinimalJob<T, R, N>,
    data: T,
  ): Promise<void> {
    await this.#change(job.id as string, "updateData", (stored) => {
      stored.data = JSON.stringify(data === undefined ? {} : data);
    });
  }

  async updateProgress(jobId: string, progress: JobProgress): Promise<void> {
    await this.#change(jobId, "updateProgress", (stored, view) => {
      stored.progress = copyOf(progress);
      view.event("progress", { jobId, data: JSON.stringify(progress) });
    });
  }

  async #change(
    jobId: string,
    command: string,
    change: (job: NonNullable<Awaited<ReturnType<QueueView["job"]>>>, view: QueueView) => void,
  ): Promise<void> {
    await this.#write(async (view) => {
      const job = await view.job(jobId);
      if (job === undefined) throw refusal(REFUSAL.missingJob, { command, jobId });
      change(job, view);
      view.save(job);
    });
  }

  async addLog(jobId: string, logRow: string, keepLogs?: number): Promise<number> {
    return await this.#write(async (view) => {
      const job = await view.job(jobId);
      if (job === undefined) throw refusal(REFUSAL.missingJob, { command: "addLog", jobId });
      const { first, next } = job.logs ?? { first: 0, next: 0 };
      view.setIn(["log", keyPart(jobId)], [next], logRow);
      trimLog(view, job, { first, next: next + 1 }, keepLogs);
      return job.logs === undefined ? 0 : job.logs.next - job.logs.first;
    });
  }

  async clearLogs(jobId: string, keepLogs = 0): Promise<void> {
    await this.#write(async (view) => {
      const job = await view.job(jobId);
      if (job?.logs !== undefined) trimLog(view, job, job.logs, keepLogs);
    });
  }

  async changeDelay(jobId: string, delay: number): Promise<void> {
    const now = Date.now();
    await this.#write((view) => states.changeDelay(view, jobId, delay, now));
  }

  async changePriority(jobId: string, priority = 0, lifo = false): Promise<void> {
    await this.#write((view) => states.changePriority(view, jobId, priority, lifo));
  }

  async remove(jobId: string, removeChildren: boolean): Promise<number> {
    const now = Date.now();
    const removed = await this.#write((view, queues) =>
      removal.remove(queues, view, jobId, removeChildren, now),
    );
    return removed ? 1 : 0;
  }

  async removeUnprocessedChildren(jobId: string): Promise<void> {
    const now = Date.now();
    await this.#write((view, queues) => removal.removeUnprocessed(queues, view, jobId, now));
  }

  async removeChildDependency(jobId: string, parentKey: string): Promise<boolean> {
    const command = "removeChildDependency";
    return await this.#write(async (view, queues) => {
      const job = await view.job(jobId);
      if (job === undefined) throw refusal(REFUSAL.missingJob, { command, jobId });
      const cut = parentKey.lastIndexOf(":");
      const parent = await (await queues(parentKey.slice(0, cut))).job(parentKey.slice(cut + 1));
      if (parent === undefined) throw refusal(REFUSAL.missingParent, { command, jobId, parentKey });
      const { left } = await leaveParent(queues, view, job, false);
      if (!left) return false;
      delete job.parent;
      delete job.parentKey;
      view.save(job);
      return true;
    });
  }

  async removeDeduplicationKey(deduplicationId: string, jobId: string): Promise<number> {
    const now = Date.now();
    return (await this.#write((view) => forget(view, deduplicationId, jobId, now))) ? 1 : 0;
  }

  async deleteDeduplicationKey(deduplicationId: string): Promise<number> {
    return (await this.#write((view) => forget(view, deduplicationId, null, null))) ? 1 : 0;
  }

  // Schedulers

  async addJobScheduler(
    id: string,
    next: number,
    data: string,
    templateOpts: JobsOptions,
    opts: RepeatableOptions,
    jobOpts: JobsOptions,
    _producerId?: string,
  ): Promise<[string, number]> {
    const schedule = { id, next, data, templateOpts, opts, jobOpts, now: Date.now() };
    return await this.#write((view, queues) => schedulers.schedule(queues, view, schedule));
  }

  async updateJobSchedulerNextMillis(
    id: string,
    next: number,
    data: string,
    jobOpts: JobsOptions,
    producerId?: string,
  ): Promise<string | null> {
    const schedule = { id, next, data, jobOpts, producerId, now: Date.now() };
    return await this.#write((view, queues) => schedulers.scheduleNext(queues, view, schedule));
  }

  async removeJobScheduler(id: string): Promise<number> {
    return (await this.#write((view, queues) => schedulers.unschedule(queues, view, id))) ? 0 : 1;
  }

  // Fields of the queue

  async setQueueMeta(values: Record<string, string | number>): Promise<number> {
    const version = /^bullmq:(\d+)\./.exec(String(values["version"] ?? ""));
    if (version !== null && Number(version[1]) !== BULLMQ_MAJOR) {
      throw new TypeError(
        `openkv/bullmq is for BullMQ ${BULLMQ_MAJOR}, and ${values["version"]} is installed: install bullmq@${BULLMQ_MAJOR}`,
      );
    }
    const texts = Object.entries(values).map(([field, value]) => [field, String(value)] as const);
    return await this.#write(async (view) => {
      const { meta } = view.head;
      const changed = texts.filter(([field, value]) => meta[field] !== value);
      if (changed.length === 0) return texts.length;
      for (const [field, value] of changed) view.change().meta[field] = value;
      if (changed.some(([field]) => field === "concurrency" || field === "max")) view.mark();
      return texts.length;
    });
  }

  async removeQueueMetaFields(fields: string[]): Promise<number> {
    return await this.#write(async (view) => {
      const found = fields.filter((field) => view.head.meta[field] !== undefined);
      for (const field of found) delete view.change().meta[field];
      if (found.length > 0) view.mark();
      return found.length;
    });
  }

  async setRateLimit(expireTimeMs: number): Promise<void> {
    const until = Date.now() + expireTimeMs;
    await this.#write(async (view) => {
      view.change().limit = { taken: TAKEN_ALL, until, ms: expireTimeMs };
    });
  }

  async removeRateLimitKey(): Promise<number> {
    return await this.#write(async (view) => {
      if (view.head.limit === null) return 0;
      view.change().limit = null;
      view.mark();
      return 1;
    });
  }

  /** Only Redis has had such a key. */
  async removeDeprecatedPriorityKey(): Promise<number> {
    return 0;
  }

  async trimEvents(maxLength: number): Promise<number> {
    return await this.#write((view) => view.trimEvents(maxLength));
  }

  async publishEvent(fields: Record<string, string | number>, maxEvents: number): Promise<string> {
    const { event, ...rest } = fields;
    return await this.#write(async (view) => {
      const { meta } = view.change();
      meta["opts.maxLenEvents"] ??= String(maxEvents);
      return String(view.event(String(event), rest));
    });
  }
}

/** What is kept of finished jobs by the option of a job, or else by that of the worker. */
function keepOf(
  option: boolean | number | KeepJobs | undefined,
  ofWorker: KeepJobs | undefined,
): states.Keep {
  if (option === undefined) return ofWorker ?? {};
  if (typeof option === "object") return option;
  if (typeof option === "number") return option < 0 ? {} : { count: option };
  return option ? { count: 0 } : {};
}

/** The answer for a job of a tree: a refusal is its code. */
async function codeOf(adding: Promise<string>): Promise<[Error | null, string | number]> {
  try {
    return [null, await adding];
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== "number") throw error;
    return [null, code];
  }
}

/** Deletes old rows of a log, and saves the job. */
function trimLog(
  view: QueueView,
  job: NonNullable<Awaited<ReturnType<QueueView["job"]>>>,
  { first, next }: { first: number; next: number },
  keep: number | undefined,
): void {
  const from = keep === undefined ? first : Math.max(first, next - keep);
  for (let row = first; row < from; row += 1) view.deleteIn(["log", keyPart(job.id)], [row]);
  job.logs = { first: from, next };
  view.save(job);
}
