// Duty: the transitions of jobs between states, as BullMQ's workers request them.

import { keyPart } from "./key-part.js";
import type { QueueView } from "./bullmq-batch.js";
import {
  childAgain,
  childCompleted,
  childFailed,
  childrenIn,
  nodeKey,
  parentOf,
  type Queues,
} from "./bullmq-children.js";
import { msUntil } from "./deadline.js";
import { finishDeduplication } from "./bullmq-deduplication.js";
import { toDelayed, toWait } from "./bullmq-order.js";
import { isLocked, type Job, jsonOf, unlock } from "./bullmq-job.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";
import { erase } from "./bullmq-removal.js";

/** Delayed jobs that one call moves to the waiting ones. */
const PROMOTED_MAX = 200;
/** Finished jobs that one call deletes because they are too old or too many. */
const EXPIRED_MAX = 100;
/** Jobs that one operation of an administrator moves; BullMQ asks again for more. */
export const MOVED_MAX = 200;
const MINUTE_MS = 60_000;
const SECOND_MS = 1000;

/** What a worker is for its jobs. */
export interface Taker {
  token: string;
  name?: string | undefined;
  lockMs: number;
  limiter?: { max?: number; duration?: number } | undefined;
}

/** The next job, its id, the time until the rate limit allows one, and when the next delayed one is due. */
export type Taken = [ReturnType<typeof jsonOf> | null, string, number, number];

/** What is kept of finished jobs. */
export interface Keep {
  count?: number | undefined;
  age?: number | undefined;
  limit?: number | undefined;
}

/** Moves jobs that are due to the waiting ones. */
export async function promoteDue(view: QueueView, now: number): Promise<void> {
  if (view.head.counts.delayed === 0) return;
  const first = await view.first("delayed");
  if (first === undefined || (first.order[0] as number) > now) return;
  for (const { order, value } of await view.ids("delayed", PROMOTED_MAX)) {
    if ((order[0] as number) > now) break;
    const job = await view.job(value);
    if (job === undefined) {
      view.deleteIn(["set", "delayed"], order);
      continue;
    }
    job.delay = 0;
    toWait(view, job, false);
    view.event("waiting", { jobId: job.id, prev: "delayed" });
  }
}

/** The time until the rate limit allows another job, or 0. */
export function limitMs(view: QueueView, most: number | undefined, now: number): number {
  const { limit } = view.head;
  return most === undefined || limit === null || limit.taken < most ? 0 : windowMs(view, now);
}

/** The time until the window of the rate limit ends, or 0 without one. */
export function windowMs({ head: { limit } }: QueueView, now: number): number {
  return limit === null ? 0 : msUntil(limit.until, limit.ms, now);
}

/** Gives the next job to a worker. */
export async function takeNext(view: QueueView, taker: Taker, now: number): Promise<Taken> {
  view.batch.seeks = true;
  const { counts, meta } = view.head;
  if (counts.delayed > 0) await promoteDue(view, now);
  const most = meta["max"] === undefined ? taker.limiter?.max : Number(meta["max"]);
  const wait = limitMs(view, most, now);
  if (wait > 0) return [null, "", wait, 0];
  if (view.isPaused || view.isMaxed) return [null, "", 0, 0];
  for (;;) {
    const next = await view.first("wait");
    if (next === undefined) break;
    const job = await view.job(next.value);
    if (job === undefined) {
      view.deleteIn(["set", "wait"], next.order);
      continue;
    }
    if (most !== undefined) consume(view, taker.limiter?.duration ?? Number(meta["duration"]), now);
    if (taker.token !== "0") {
      job.token = taker.token;
      job.lockMs = taker.lockMs;
      job.lockedUntil = now + taker.lockMs;
    }
    job.processedOn = now;
    job.attemptsStarted += 1;
    if (taker.name) job.processedBy = taker.name;
    view.place(job, "active", [view.next()]);
    view.event("active", { jobId: job.id, prev: "waiting" });
    return [jsonOf(job), job.id, 0, 0];
  }
  return [null, "", 0, counts.delayed > 0 ? await nextDue(view) : 0];
}

/** When the next delayed job is due, or 0. */
export async function nextDue(view: QueueView): Promise<number> {
  if (view.head.counts.delayed === 0) return 0;
  const next = await view.first("delayed");
  return (next?.order[0] as number | undefined) ?? 0;
}

function consume(view: QueueView, duration: number, now: number): void {
  const head = view.change();
  if (head.limit === null || windowMs(view, now) === 0) {
    const ms = Math.floor(Math.abs(duration));
    head.limit = { taken: 1, until: now + ms, ms };
  } else {
    head.limit.taken += 1;
  }
}

/** The job that a worker holds by this token, without its lock; what the worker tells of it is in `fields`. */
async function held(
  view: QueueView,
  jobId: string,
  token: string,
  command: string,
  fields?: Record<string, unknown>,
): Promise<Job> {
  return release(await view.job(jobId), jobId, token, command, fields);
}

function release(
  job: Job | undefined,
  jobId: string,
  token: string,
  command: string,
  fields: Record<string, unknown> | undefined,
): Job {
  const about = { command, jobId, state: "active" };
  if (job === undefined) throw refusal(REFUSAL.missingJob, about);
  if (token !== "0" && job.token !== token) {
    throw refusal(job.token === undefined ? REFUSAL.missingLock : REFUSAL.otherLock, about);
  }
  if (job.state !== "active") throw refusal(REFUSAL.notInState, about);
  unlock(job);
  if (fields === undefined) return job;
  for (const name of ["failedReason", "stacktrace"] as const) {
    if (fields[name] !== undefined) job[name] = String(fields[name]);
  }
  return job;
}

export interface Finish {
  jobId: string;
  kind: "completed" | "failed";
  /** JSON of the result, or the reason of the failure. */
  value: string;
  keep: Keep;
  token: string;
  fields: Record<string, unknown> | undefined;
  /** Points of the metrics that are kept, or 0. */
  points: number;
  now: number;
}

/** Ends a job that a worker holds. */
export async function finish(queues: Queues, view: QueueView, end: Finish): Promise<void> {
  const { jobId, kind, value, keep, now } = end;
  const command = "moveToFinished";
  const stored = await view.job(jobId);
  if (kind === "completed" && stored?.children !== undefined) {
    const about = { command, jobId, state: "active" };
    if (stored.children.unprocessed > 0) throw refusal(REFUSAL.pendingChildren, about);
    if (stored.children.failed > 0) throw refusal(REFUSAL.failedChildren, about);
  }
  const job = release(stored, jobId, end.token, command, end.fields);
  job.attemptsMade += 1;
  job.finishedOn = now;
  if (kind === "completed") job.returnvalue = value;
  else {
    job.failedReason = value;
    delete job.deferredFailure;
  }
  view.place(job, kind, [now, view.next()]);
  if (job.deduplicationId) await finishDeduplication(queues, view, job, now);
  const hasParent = parentOf(job) !== null;
  if (hasParent && kind === "completed") await childCompleted(queues, view, job, now);
  else if (hasParent) await childFailed(queues, view, job, value, now);
  if (keep.count === 0) await erase(queues, view, job, false);
  else if (keep.count !== undefined || keep.age !== undefined) {
    await dropOld(queues, view, kind, keep, now);
  }
  const outcome = kind === "completed" ? { returnvalue: value } : { failedReason: value };
  view.event(kind, { jobId, ...outcome, prev: "active" });
  if (kind === "failed" && job.attemptsMade >= (job.opts.attempts ?? 0)) {
    view.event("retries-exhausted", { jobId, attemptsMade: job.attemptsMade });
  }
  if (end.points > 0) await measure(view, kind, end.points, now);
}

/** Tells that no job is left, if none is. */
export function tellDrained(view: QueueView): void {
  const { wait, prioritized, active } = view.head.counts;
  if (active === 0 && ((wait === 0 && prioritized === 0) || view.isPaused)) view.event("drained");
}

/** Deletes finished jobs that are older, or more, than are kept. */
async function dropOld(
  queues: Queues,
  view: QueueView,
  kind: "completed" | "failed",
  keep: Keep,
  now: number,
): Promise<void> {
  const { age, count, limit = EXPIRED_MAX } = keep;
  if (age !== undefined && age >= 0) {
    const first = await view.first(kind);
    if (first !== undefined && (first.order[0] as number) <= now - age * SECOND_MS) {
      for (const { order, value } of await view.ids(kind, Math.min(limit, EXPIRED_MAX))) {
        if ((order[0] as number) > now - age * SECOND_MS) break;
        await eraseById(queues, view, value);
      }
    }
  }
  if (count !== undefined && count > 0) {
    const over = view.head.counts[kind] - count;
    if (over <= 0) return;
    for (const { value } of await view.ids(kind, Math.min(over, EXPIRED_MAX))) {
      await eraseById(queues, view, value);
    }
  }
}

async function eraseById(queues: Queues, view: QueueView, id: string): Promise<void> {
  const job = await view.job(id);
  if (job !== undefined) await erase(queues, view, job, false);
}

/** The finished jobs of each minute. */
export interface Metrics {
  count: number;
  since: number;
  counted: number;
  points: number[];
}

/** Counts a finished job. */
async function measure(view: QueueView, kind: string, most: number, now: number): Promise<void> {
  const before = await view.get<Metrics>("metrics", kind);
  if (before === undefined) {
    view.set({ count: 1, since: now, counted: 0, points: [] } satisfies Metrics, "metrics", kind);
    return;
  }
  const metrics = { ...before, count: before.count + 1 };
  const minutes = Math.floor(now / MINUTE_MS) - Math.floor(before.since / MINUTE_MS);
  if (minutes > 0) {
    const empty = Array.from<number>({ length: Math.min(minutes, most) - 1 }).fill(0);
    metrics.points = [...empty, before.count - before.counted, ...before.points].slice(0, most);
    metrics.counted = before.count;
    metrics.since = now;
  }
  view.set(metrics, "metrics", kind);
}

/** Puts a job that a worker holds off until later. */
export async function delay(
  view: QueueView,
  move: {
    jobId: string;
    token: string;
    now: number;
    ms: number;
    skipAttempt: boolean;
    fields: Record<string, unknown> | undefined;
  },
): Promise<void> {
  const job = await held(view, move.jobId, move.token, "moveToDelayed", move.fields);
  if (!move.skipAttempt) job.attemptsMade += 1;
  job.delay = move.ms;
  toDelayed(view, job, move.now + Math.max(move.ms, 0));
}

/** Makes a job that a worker holds wait for its children, or for one of them. Answers false if it has nothing to wait for. */
export async function awaitChildren(
  view: QueueView,
  jobId: string,
  token: string,
  child: { id: string; queue: string } | undefined,
  now: number,
): Promise<boolean> {
  const command = "moveToWaitingChildren";
  const about = { command, jobId, state: "active" };
  const stored = await view.job(jobId);
  if (stored === undefined) throw refusal(REFUSAL.missingJob, about);
  if ((stored.children?.failed ?? 0) > 0) throw refusal(REFUSAL.failedChildren, about);
  const waits =
    child === undefined
      ? (stored.children?.unprocessed ?? 0) > 0
      : (await view.getIn(childrenIn(jobId, "unprocessed"), [
          keyPart(nodeKey(child.queue, child.id)),
        ])) !== undefined;
  if (!waits) return false;
  const job = await held(view, jobId, token, command);
  view.place(job, "waiting-children", [now, view.next()]);
  view.event("waiting-children", { jobId, prev: "active" });
  return true;
}

/** Gives a job back that a worker holds, in front of the others. Answers the time until the rate limit allows one. */
export async function giveBack(
  view: QueueView,
  jobId: string,
  token: string,
  now: number,
): Promise<number> {
  const job = await held(view, jobId, token, "moveJobFromActiveToWait");
  toWait(view, job, true);
  view.event("waiting", { jobId, prev: "active" });
  return windowMs(view, now);
}

/** Makes a job that a worker holds wait for another attempt. */
export async function retry(
  view: QueueView,
  jobId: string,
  lifo: boolean,
  token: string,
  fields: Record<string, unknown> | undefined,
  now: number,
): Promise<void> {
  await promoteDue(view, now);
  const job = await held(view, jobId, token, "retryJob", fields);
  job.attemptsMade += 1;
  toWait(view, job, lifo && job.priority === 0);
  view.event("waiting", { jobId, prev: "active" });
}

/** Extends the lock of a job. Answers false if this token does not hold it. */
export async function extend(
  view: QueueView,
  jobId: string,
  token: string,
  lockMs: number,
  now: number,
): Promise<boolean> {
  const job = await view.job(jobId);
  if (job === undefined || job.token !== token || job.state !== "active") return false;
  job.lockMs = lockMs;
  job.lockedUntil = now + lockMs;
  view.save(job);
  return true;
}

/** What the last look for stalled jobs has seen. */
interface Seen {
  at: number;
  ids: string[];
}

/**
 * Gives jobs back whose worker is gone: those that were active at the last look already, and that nobody holds
 * now. Answers their ids. There is a look once in `everyMs` over all workers.
 */
export async function recover(
  view: QueueView,
  stalledMax: number,
  everyMs: number,
  now: number,
): Promise<string[]> {
  const seen = await view.get<Seen>("stalled");
  if (seen !== undefined && now >= seen.at && now < seen.at + everyMs) return [];
  const recovered: string[] = [];
  for (const id of seen?.ids ?? []) {
    const job = await view.job(id);
    if (job === undefined || job.state !== "active" || isLocked(job, now)) continue;
    unlock(job);
    job.stalledCounter += 1;
    const scheduled =
      job.repeatJobKey !== undefined &&
      (await view.get("scheduler", keyPart(job.repeatJobKey))) !== undefined;
    if (job.stalledCounter > stalledMax && !scheduled) {
      job.deferredFailure = "job stalled more than allowable limit";
    }
    toWait(view, job, true, 0);
    view.event("waiting", { jobId: id, prev: "active" });
    view.event("stalled", { jobId: id });
    recovered.push(id);
  }
  const active = await view.ids("active");
  if (active.length > 0 || (seen?.ids.length ?? 0) > 0) {
    view.set({ at: now, ids: active.map(({ value }) => value) } satisfies Seen, "stalled");
  }
  return recovered;
}

/** Makes a finished job wait again. */
export async function retryFinished(
  queues: Queues,
  view: QueueView,
  jobId: string,
  retry: {
    state: "completed" | "failed";
    lifo: boolean;
    resetMade: boolean;
    resetStarted: boolean;
  },
): Promise<void> {
  const about = { command: "reprocessJob", jobId, state: retry.state };
  const job = await view.job(jobId);
  if (job === undefined) throw refusal(REFUSAL.missingJob, about);
  if (job.state !== retry.state) throw refusal(REFUSAL.notInState, about);
  if (retry.resetMade) job.attemptsMade = 0;
  if (retry.resetStarted) job.attemptsStarted = 0;
  forgetEnd(job, retry.state);
  toWait(view, job, retry.lifo, 0);
  await childAgain(queues, view, job, retry.state);
  view.event("waiting", { jobId, prev: retry.state });
}

function forgetEnd(job: Job, state: "completed" | "failed"): void {
  delete job.finishedOn;
  delete job.processedOn;
  if (state === "completed") delete job.returnvalue;
  else delete job.failedReason;
}

/** Makes up to `count` jobs of a state wait that came into it by `until`. Answers whether there may be more. */
export async function moveToWait(
  view: QueueView,
  state: "completed" | "failed" | "delayed",
  count: number,
  until: number,
): Promise<boolean> {
  const rows = await view.ids(state, count);
  let moved = 0;
  for (const { order, value } of rows) {
    if ((order[0] as number) > until) break;
    const job = await view.job(value);
    if (job === undefined) continue;
    if (state === "delayed") job.delay = 0;
    else forgetEnd(job, state);
    toWait(view, job, false, state === "delayed" ? job.priority : 0);
    view.event("waiting", { jobId: job.id, prev: state });
    moved += 1;
  }
  return moved >= count;
}

/** Makes a delayed job wait for nothing but a worker. */
export async function promote(view: QueueView, jobId: string): Promise<void> {
  const about = { command: "promote", jobId, state: "delayed" };
  const job = await view.job(jobId);
  if (job === undefined) throw refusal(REFUSAL.missingJob, about);
  if (job.state !== "delayed") throw refusal(REFUSAL.notInState, about);
  job.delay = 0;
  toWait(view, job, false);
  view.event("waiting", { jobId, prev: "delayed" });
}

/** Changes when a delayed job is due. */
export async function changeDelay(
  view: QueueView,
  jobId: string,
  ms: number,
  now: number,
): Promise<void> {
  const about = { command: "changeDelay", jobId, state: "delayed" };
  const job = await view.job(jobId);
  if (job === undefined) throw refusal(REFUSAL.missingJob, about);
  if (job.state !== "delayed") throw refusal(REFUSAL.notInState, about);
  job.delay = ms;
  toDelayed(view, job, now + Math.max(ms, 0));
}

/** Changes the priority of a job, and its place if it waits. */
export async function changePriority(
  view: QueueView,
  jobId: string,
  priority: number,
  lifo: boolean,
): Promise<void> {
  const job = await view.job(jobId);
  if (job === undefined) throw refusal(REFUSAL.missingJob, { command: "changePriority", jobId });
  job.priority = priority;
  if (job.state === "wait" || job.state === "prioritized") toWait(view, job, lifo);
  else view.save(job);
}
