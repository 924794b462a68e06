// Duty: removing jobs, alone, with their children, by state, and all of a queue.

import { keyPart } from "./key-part.js";
import type { QueueView } from "./bullmq-batch.js";
import { type Child, childrenIn, leaveParent, type Queues } from "./bullmq-children.js";
import { removeDeduplication } from "./bullmq-winner.js";
import { type ChildStatus, emptyHead, isLocked, type Job, type SetName } from "./bullmq-job.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";

const STATUSES: ChildStatus[] = ["processed", "ignored", "failed", "unprocessed"];
/** Jobs that one commit removes: with what belongs to them they stay below what a commit may change. */
const REMOVED_MAX = 100;
/** Entries that one step of the removal of a queue deletes beside its jobs. */
const ENTRIES_MAX = 500;

/** Deletes what is stored of a job. With `hard`, parents in the same queue whose last child it was go with it. */
export async function erase(
  queues: Queues,
  view: QueueView,
  job: Job,
  hard: boolean,
): Promise<void> {
  const { orphan } = await leaveParent(queues, view, job, hard);
  await eraseAlone(view, job);
  if (orphan !== null) {
    await removeDeduplication(view, orphan);
    await erase(queues, view, orphan, hard);
  }
}

async function eraseAlone(view: QueueView, job: Job): Promise<void> {
  view.take(job);
  view.delete("job", keyPart(job.id));
  if (job.logs !== undefined) {
    for (let row = job.logs.first; row < job.logs.next; row += 1) {
      view.deleteIn(["log", keyPart(job.id)], [row]);
    }
  }
  if (job.children === undefined) return;
  for (const status of STATUSES) {
    if (job.children[status] === 0) continue;
    const bucket = childrenIn(job.id, status);
    for (const { order } of await view.list(bucket)) view.deleteIn(bucket, order);
  }
}

/** Whether a job is the one that its scheduler has planned next. */
export async function isPlanned(view: QueueView, job: Job): Promise<boolean> {
  if (job.repeatJobKey === undefined) return false;
  const scheduler = await view.get<{ next: number }>("scheduler", keyPart(job.repeatJobKey));
  return scheduler !== undefined && job.id === `repeat:${job.repeatJobKey}:${scheduler.next}`;
}

/** Removes a job, and its children. Answers false if a worker holds one of them. */
export async function remove(
  queues: Queues,
  view: QueueView,
  jobId: string,
  withChildren: boolean,
  now: number,
): Promise<boolean> {
  const job = await view.job(jobId);
  if (job !== undefined && (await isPlanned(view, job))) {
    throw refusal(REFUSAL.ofScheduler, { command: "removeJob", jobId });
  }
  if (job === undefined) return true;
  if (await isHeld(queues, view, job, withChildren, now)) return false;
  await removeTree(queues, view, job, { withChildren, waitingOnly: false, now });
  return true;
}

/** Whether a worker holds a job or a child of it that has not ended. */
async function isHeld(
  queues: Queues,
  view: QueueView,
  job: Job,
  withChildren: boolean,
  now: number,
): Promise<boolean> {
  if (isLocked(job, now)) return true;
  if (!withChildren) return false;
  for (const child of await childrenOf(queues, view, job, ["unprocessed"])) {
    if (await isHeld(queues, child.view, child.job, true, now)) return true;
  }
  return false;
}

interface Node {
  view: QueueView;
  job: Job;
}

async function childrenOf(
  queues: Queues,
  parentView: QueueView,
  parent: Job,
  statuses: ChildStatus[],
): Promise<Node[]> {
  const nodes: Node[] = [];
  for (const status of statuses) {
    if (!parent.children?.[status]) continue;
    for (const { value } of await parentView.list<Child>(childrenIn(parent.id, status))) {
      const view = await queues(value.queue);
      const job = await view.job(value.id);
      if (job !== undefined) nodes.push({ view, job });
    }
  }
  return nodes;
}

interface TreeOptions {
  withChildren: boolean;
  /** Leaves what a worker holds and what has ended. */
  waitingOnly: boolean;
  now: number;
}

async function removeTree(
  queues: Queues,
  view: QueueView,
  job: Job,
  options: TreeOptions,
): Promise<void> {
  if (options.waitingOnly && (isLocked(job, options.now) || job.state === "failed")) return;
  await leaveParent(queues, view, job, false);
  if (options.withChildren) await removeChildren(queues, view, job, options);
  const prev = job.state ?? "unknown";
  await removeDeduplication(view, job);
  await eraseAlone(view, (await view.job(job.id)) ?? job);
  view.event("removed", { jobId: job.id, prev });
}

async function removeChildren(
  queues: Queues,
  view: QueueView,
  job: Job,
  options: TreeOptions,
): Promise<void> {
  const statuses: ChildStatus[] = options.waitingOnly ? ["unprocessed"] : STATUSES;
  for (const child of await childrenOf(queues, view, job, statuses)) {
    await removeTree(queues, child.view, child.job, options);
  }
}

/** Removes the children of a job that have not been processed, unless a worker holds them. */
export async function removeUnprocessed(
  queues: Queues,
  view: QueueView,
  jobId: string,
  now: number,
): Promise<void> {
  const job = await view.job(jobId);
  if (job === undefined) return;
  await removeChildren(queues, view, job, { withChildren: true, waitingOnly: true, now });
}

/**
 * Removes jobs that wait, and with `delayed` delayed ones, about {@link REMOVED_MAX} of them; not those that schedulers have
 * planned. Answers whether there may be more.
 */
export async function drain(queues: Queues, view: QueueView, delayed: boolean): Promise<boolean> {
  const sets: SetName[] = delayed ? ["wait", "delayed"] : ["wait"];
  // Of each scheduler one job stays.
  const most = REMOVED_MAX + (await view.list(["due"])).length;
  for (const name of sets) {
    const rows = await view.ids(name, most);
    for (const { value } of rows) {
      const job = await view.job(value);
      if (job === undefined || (await isPlanned(view, job))) continue;
      await erase(queues, view, job, true);
    }
    if (rows.length === most) return true;
  }
  return false;
}

export interface Clean {
  type: string;
  /** Jobs that are not newer than this time are removed. */
  until: number;
  /** So many at most, or all with 0. */
  most: number;
  /** Those that were removed by the steps before. */
  before: number;
  now: number;
}

/** Removes jobs of a state up to {@link REMOVED_MAX}. Answers their ids, and whether there may be more. */
export async function clean(
  queues: Queues,
  view: QueueView,
  { type, until, most, before, now }: Clean,
): Promise<{ ids: string[]; more: boolean }> {
  const isWaiting =
    type === "prioritized" || type === "wait" || type === "waiting" || type === "paused";
  const name = isWaiting ? "wait" : (type as SetName);
  const isFinished = name === "completed" || name === "failed";
  const limit = most > 0 ? Math.min(most - before, REMOVED_MAX) : REMOVED_MAX;
  const ids: string[] = [];
  for (const { order, value } of await view.ids(name, isFinished ? limit : Infinity)) {
    if (ids.length >= limit) break;
    if (isWaiting && (order[0] as number) > 0 !== (type === "prioritized")) continue;
    const job = await view.job(value);
    if (job === undefined) continue;
    const at = isFinished
      ? job.finishedOn
      : isWaiting
        ? job.timestamp
        : (job.processedOn ?? job.timestamp);
    if ((at ?? 0) > until) continue;
    if (name === "active" && isLocked(job, now)) continue;
    if (!isFinished && (await isPlanned(view, job))) continue;
    await removeDeduplication(view, job);
    await erase(queues, view, job, true);
    ids.push(job.id);
  }
  const more = ids.length === REMOVED_MAX && (most === 0 || before + ids.length < most);
  if (!more) view.event("cleaned", { count: before + ids.length });
  return { ids, more };
}

/** Why a queue is not removed. */
export type Kept = "it is not paused" | "jobs are active";

/** Removes all of a queue, up to `count` jobs and {@link REMOVED_MAX} at once. Answers whether there is more. */
export async function obliterate(
  queues: Queues,
  view: QueueView,
  count: number,
  force: boolean,
  now: number,
): Promise<{ more: boolean } | { kept: Kept }> {
  if (!view.isPaused) return { kept: "it is not paused" };
  if (!force && view.head.counts.active > 0) return { kept: "jobs are active" };
  let left = Math.min(count, REMOVED_MAX);
  const names: SetName[] = ["active", "delayed", "wait", "waiting-children", "completed", "failed"];
  for (const name of names) {
    for (const { order, value } of await view.ids(name, left)) {
      const job = await view.job(value);
      if (job === undefined) view.deleteIn(["set", name], order);
      else await erase(queues, view, job, true);
      left -= 1;
    }
    if (left <= 0) return { more: true };
  }
  for (const kind of [
    "event",
    "dedup",
    "next",
    "scheduler",
    "due",
    "metrics",
    "stalled",
    "log",
    "child",
    "job",
  ]) {
    const rows = await view.list([kind], ENTRIES_MAX);
    for (const { order } of rows) view.deleteIn([kind], order);
    if (rows.length === ENTRIES_MAX) return { more: true };
  }
  view.deleteIn([], ["mark"]);
  view.head = emptyHead(now);
  view.changed = { jobs: false, events: false };
  view.change();
  view.isDestroyed = true;
  return { more: false };
}
