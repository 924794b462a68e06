// Duty: what BullMQ asks of a queue without changing it.

import type { DependenciesOpts, JobJson } from "bullmq";
import type { KvKeyPart } from "openkv";
import { keyPart } from "./key-part.js";
import type { QueueView } from "./bullmq-batch.js";
import type { Row } from "./bullmq-entries.js";
import { type Child, childrenIn, nodeKey, type Queues } from "./bullmq-children.js";
import { type ChildStatus, type Job, jsonOf, type JobState, setOf } from "./bullmq-job.js";
import type { Scheduler } from "./bullmq-scheduler.js";
import type { Metrics } from "./bullmq-states.js";

/** The first part of the order of jobs without a priority. */
const NO_PRIORITY = 0;
/** Children in a page without a size. */
const PAGE_CHILDREN = 20;

/** What BullMQ calls the state of a job. */
export function stateOf(job: Job | undefined): string {
  if (job === undefined || job.state === null) return "unknown";
  return job.state === "wait" ? "waiting" : job.state;
}

/** Whether a job is in a state, by any of the names that BullMQ has for it. Jobs of a paused queue wait. */
export function isIn(job: Job | undefined, state: string): boolean {
  switch (state) {
    case "waiting":
    case "wait":
      return job?.state === "wait";
    case "paused":
      return false;
    case "prioritized":
    case "active":
    case "completed":
    case "failed":
    case "delayed":
    case "waiting-children":
      return job?.state === state;
    default:
      throw new Error(`Unknown job state: ${state}`);
  }
}

/** How many jobs are in each of these states. */
export async function countsOf(
  view: QueueView,
  types: string[],
  delayedUntil?: number,
): Promise<number[]> {
  const { counts } = view.head;
  const answers: number[] = [];
  for (const type of types) {
    if (type === "delayed" && delayedUntil !== undefined) {
      const rows = await view.ids("delayed");
      answers.push(rows.filter(({ order }) => (order[0] as number) < delayedUntil).length);
    } else if (type === "waiting") answers.push(counts.wait);
    else answers.push(counts[type as JobState] ?? 0);
  }
  return answers;
}

/** How many jobs wait with each of these priorities. */
export async function countsOfPriorities(view: QueueView, priorities: number[]): Promise<number[]> {
  const counts: number[] = [];
  for (const priority of priorities) {
    counts.push((await view.list(["set", "wait", priority])).length);
  }
  return counts;
}

/** The part of a range that has these first and last places, which count from the end below 0. */
function partOf<T>(rows: T[], start: number, end: number): T[] {
  const from = start < 0 ? Math.max(rows.length + start, 0) : start;
  const to = end < 0 ? rows.length + end : end;
  return to < from ? [] : rows.slice(from, to + 1);
}

/** The ids of the jobs in each of these states. The lists, which are those of Redis, have the newest first. */
export async function rangesOf(
  view: QueueView,
  types: string[],
  start: number,
  end: number,
  asc: boolean,
): Promise<string[][]> {
  const answers: string[][] = [];
  for (const type of types) {
    if (type === "paused") {
      answers.push([]);
      continue;
    }
    const isWait = type === "wait" || type === "waiting";
    const isPrioritized = type === "prioritized";
    const limit = start >= 0 && end >= 0 && !isPrioritized ? end + 1 : Infinity;
    const bucket = isWait ? ["set", "wait", NO_PRIORITY] : ["set", setOf(type as JobState)];
    const rows = (await view.list<string>(bucket, limit, !asc)).filter(
      ({ order }) => !isPrioritized || (order[0] as number) > NO_PRIORITY,
    );
    const ids = partOf(rows, start, end).map(({ value }) => value);
    // BullMQ turns an ascending list around.
    answers.push((isWait || type === "active") && asc ? ids.reverse() : ids);
  }
  return answers;
}

/** Whether a job has ended: 0 not, 1 completed, 2 failed, -1 there is none; and its result or reason. */
export function endOf(view: QueueView, job: Job | undefined, id: string): [number, string] {
  if (job === undefined) return [-1, `Missing key for job ${nodeKey(view.name, id)}. isFinished`];
  if (job.state === "completed") return [1, job.returnvalue ?? "null"];
  if (job.state === "failed") return [2, job.failedReason ?? ""];
  return [0, ""];
}

/** Rows of a job's log. */
export async function logsOf(
  view: QueueView,
  id: string,
  start: number,
  end: number,
  asc: boolean,
): Promise<{ logs: string[]; count: number }> {
  const rows = await view.list<string>(["log", keyPart(id)], Infinity, !asc);
  return { logs: partOf(rows, start, end).map(({ value }) => value), count: rows.length };
}

const STATUSES = ["processed", "unprocessed", "ignored", "failed"] as const;

async function children(view: QueueView, id: string, status: ChildStatus): Promise<Row<Child>[]> {
  return await view.list<Child>(childrenIn(id, status));
}

function valueOf({ value: { value } }: Row<Child>): unknown {
  return value === undefined ? null : JSON.parse(value);
}

const keyOf = ({ value: { queue, id } }: Row<Child>): string => nodeKey(queue, id);

/** The children of a job in each status, all of them or in pages. */
export async function dependenciesOf(
  view: QueueView,
  id: string,
  opts: DependenciesOpts,
): Promise<Record<string, unknown>> {
  const isAll = !opts.processed && !opts.unprocessed && !opts.ignored && !opts.failed;
  const answer: Record<string, unknown> = {};
  for (const status of STATUSES) {
    const page = opts[status];
    if (!isAll && !page) continue;
    let rows = await children(view, id, status);
    if (!isAll) {
      const { cursor = 0, count = PAGE_CHILDREN } = page ?? {};
      const isLast = cursor + count >= rows.length;
      rows = rows.slice(cursor, cursor + count);
      answer[`next${status[0]?.toUpperCase()}${status.slice(1)}Cursor`] = isLast
        ? 0
        : cursor + count;
    }
    if (status === "processed") answer[status] = entriesOf(rows, valueOf);
    else if (status === "ignored") answer[status] = entriesOf(rows, ({ value }) => value.value);
    else answer[status] = rows.map(keyOf);
  }
  return answer;
}

function entriesOf(
  rows: Row<Child>[],
  value: (row: Row<Child>) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(rows.map((row) => [keyOf(row), value(row)]));
}

/** How many children of a job are in each of these statuses. */
export function dependencyCountsOf(job: Job | undefined, types: string[]): number[] {
  return types.map((type) => job?.children?.[type as ChildStatus] ?? 0);
}

/** The results of a job's children, or the reasons of those that it ignores, as they are stored. */
export async function childValuesOf(
  view: QueueView,
  id: string,
  status: "processed" | "ignored",
): Promise<Record<string, string>> {
  return entriesOf(
    await children(view, id, status),
    ({ value }) => value.value ?? "null",
  ) as Record<string, string>;
}

export interface ChildPage {
  cursor: string;
  items: { id: string; v?: any; err?: string }[];
  total: number;
  jobs?: JobJson[];
}

/** A page of the children of a job; `key` ends with what BullMQ calls their set. */
export async function pageOf(
  queues: Queues,
  view: QueueView,
  key: string,
  { start, end, fetchJobs }: { start: number; end: number; fetchJobs?: boolean },
): Promise<ChildPage> {
  const cut = key.lastIndexOf(":");
  const set = key.slice(cut + 1);
  const id = key.slice(view.name.length + 1, cut);
  const status = (
    {
      processed: "processed",
      dependencies: "unprocessed",
      failed: "ignored",
      unsuccessful: "failed",
    } as const
  )[set];
  if (status === undefined) throw new Error(`openkv/bullmq: ${key} is no set of children`);
  const rows = await children(view, id, status);
  const page = partOf(rows, start, end);
  const items = page.map((row) => ({
    id: keyOf(row),
    ...(status === "processed" ? { v: valueOf(row) } : {}),
    ...(status === "ignored" ? { err: row.value.value ?? "" } : {}),
  }));
  const answer: ChildPage = { cursor: "0", items, total: rows.length };
  if (!fetchJobs) return answer;
  answer.jobs = [];
  for (const { value } of page) {
    const job = await (await queues(value.queue)).job(value.id);
    if (job !== undefined) answer.jobs.push(jsonOf(job));
  }
  return answer;
}

/** Points of the metrics: what BullMQ calls meta, the points of these places, and how many there are. */
export async function metricsOf(
  view: QueueView,
  kind: string,
  start: number,
  end: number,
): Promise<[string[], string[], number]> {
  const metrics = await view.get<Metrics>("metrics", kind);
  if (metrics === undefined) return [[], [], 0];
  const meta = [metrics.count, metrics.since, metrics.counted].map(String);
  return [meta, partOf(metrics.points, start, end).map(String), metrics.points.length];
}

/** The schedulers in the order of their next jobs, each followed by the time of that. */
export async function schedulersOf(
  view: QueueView,
  start: number,
  end: number,
  asc: boolean,
): Promise<string[]> {
  const rows = await view.list<string>(["due"], Infinity, !asc);
  return partOf(rows, start, end).flatMap(({ order, value }) => [value, String(order[0])]);
}

/** A scheduler as BullMQ reads it: names and values in one list, and the time of its next job. */
export async function schedulerOf(view: QueueView, id: string): Promise<Scheduler | undefined> {
  return await view.get<Scheduler>("scheduler", keyPart(id) as KvKeyPart);
}
