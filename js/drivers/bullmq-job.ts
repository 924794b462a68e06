// Duty: what is stored of a job and of a queue, and what BullMQ gets to see of it.

import type { JobJson, JobsOptions, ParentKeys } from "bullmq";
import { msUntil } from "./deadline.js";

export type JobState =
  | "wait"
  | "prioritized"
  | "active"
  | "delayed"
  | "completed"
  | "failed"
  | "waiting-children";

/** The sets of ids. Jobs with a priority are in one set with those without: [priority, number]. */
export type SetName = Exclude<JobState, "prioritized">;

export type ChildStatus = "processed" | "unprocessed" | "ignored" | "failed";

/** A job as it is stored. Texts are the JSON that BullMQ has made of the values. */
export interface Job {
  id: string;
  name: string;
  data: string;
  opts: JobsOptions;
  timestamp: number;
  delay: number;
  priority: number;
  progress: unknown;
  attemptsMade: number;
  attemptsStarted: number;
  stalledCounter: number;
  processedOn?: number | undefined;
  finishedOn?: number | undefined;
  returnvalue?: string | undefined;
  failedReason?: string | undefined;
  stacktrace?: string | undefined;
  deferredFailure?: string | undefined;
  processedBy?: string | undefined;
  repeatJobKey?: string | undefined;
  deduplicationId?: string | undefined;
  parent?: ParentKeys | undefined;
  parentKey?: string | undefined;
  /** The lock of a worker: it ends at this time, in milliseconds, and had this length. */
  token?: string | undefined;
  lockedUntil?: number | undefined;
  lockMs?: number | undefined;
  /** How many children it has in each status. */
  children?: Record<ChildStatus, number> | undefined;
  /** Rows of its log, and the number of the first. */
  logs?: { first: number; next: number } | undefined;
  state: JobState | null;
  order: number[];
}

/** What a queue is beside its jobs. */
export interface Head {
  /** The last id that was given. */
  id: number;
  /** The last number that orders jobs. */
  seq: number;
  /** The number of the last event, and of the last one that was deleted. */
  event: number;
  trimmed: number;
  counts: Record<JobState, number>;
  /** The fields that BullMQ keeps of a queue. */
  meta: Record<string, string>;
  /** Jobs taken in a window of the rate limit, which has this length and ends at this time. */
  limit: { taken: number; until: number; ms?: number } | null;
}

/** Events have numbers that grow also over the removal of a queue: the first is the time of its creation. */
const EVENTS_PER_MS = 1000;

export function emptyHead(now: number): Head {
  const event = now * EVENTS_PER_MS;
  const counts = {
    wait: 0,
    prioritized: 0,
    active: 0,
    delayed: 0,
    completed: 0,
    failed: 0,
    "waiting-children": 0,
  };
  return { id: 0, seq: 0, event, trimmed: event, counts, meta: {}, limit: null };
}

/** Whether workers get no job for now: as many are active as may be. */
export function isMaxed({ counts, meta }: Head): boolean {
  const most = meta["concurrency"];
  return most !== undefined && counts.active >= Number(most);
}

/** Whether there is a job for a worker that asks. */
export function hasJob(head: Head): boolean {
  const { wait, prioritized } = head.counts;
  return wait + prioritized > 0 && head.meta["paused"] === undefined && !isMaxed(head);
}

export function setOf(state: JobState): SetName {
  return state === "prioritized" ? "wait" : state;
}

/** A job that has been added, in no state yet. */
export function newJob(json: JobJson, id: string): Job {
  const opts = withoutUndefined(json.opts ?? {});
  const job: Job = {
    id,
    name: json.name,
    data: json.data ?? "{}",
    opts,
    timestamp: json.timestamp,
    delay: json.delay ?? opts.delay ?? 0,
    priority: json.priority ?? opts.priority ?? 0,
    progress: json.progress ?? 0,
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
    repeatJobKey: json.repeatJobKey,
    deduplicationId: json.deduplicationId ?? json.debounceId,
    parent: json.parent && withoutUndefined(json.parent),
    parentKey: json.parentKey,
    state: null,
    order: [],
  };
  return withoutUndefined(job);
}

/** What BullMQ makes a Job of. */
export function jsonOf(job: Job): JobJson {
  return withoutUndefined({
    id: job.id,
    name: job.name,
    data: job.data,
    // BullMQ and handlers may change these, and the next commit goes on with the job.
    opts: { ...job.opts },
    progress: copyOf(job.progress),
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    stalledCounter: job.stalledCounter,
    timestamp: job.timestamp,
    delay: job.delay,
    priority: job.priority,
    finishedOn: job.finishedOn,
    processedOn: job.processedOn,
    failedReason: job.failedReason,
    stacktrace: job.stacktrace,
    returnvalue: job.returnvalue,
    deferredFailure: job.deferredFailure,
    processedBy: job.processedBy,
    repeatJobKey: job.repeatJobKey,
    deduplicationId: job.deduplicationId,
    debounceId: job.deduplicationId,
    parent: job.parent,
    parentKey: job.parentKey,
  }) as unknown as JobJson;
}

/** Whether a worker holds the job. A lock that ends later than its own length from now is of a clock that was set back. */
export function isLocked({ token, lockedUntil = 0, lockMs = 0 }: Job, now: number): boolean {
  return token !== undefined && msUntil(lockedUntil, lockMs, now) > 0;
}

export function unlock(job: Job): void {
  delete job.token;
  delete job.lockedUntil;
  delete job.lockMs;
}

/** A value that its giver may change afterwards. */
export function copyOf<T>(value: T): T {
  return typeof value === "object" ? structuredClone(value) : value;
}

function withoutUndefined<T extends object>(object: T): T {
  const found: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) if (value !== undefined) found[name] = value;
  return found as T;
}
