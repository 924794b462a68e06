// Duty: parents and children. A parent waits until none of its children is unprocessed; a child that fails is for its
// parent what its options say.

import type { KvKeyPart } from "openkv";
import { keyPart } from "./key-part.js";
import type { QueueView } from "./bullmq-batch.js";
import type { Known } from "./bullmq-entries.js";
import type { ChildStatus, Job } from "./bullmq-job.js";
import { toWait } from "./bullmq-order.js";

/** Answers the view of a queue by its qualified name. */
export type Queues = (name: string) => Known<QueueView>;

/** A child as its parent keeps it. */
export interface Child {
  queue: string;
  id: string;
  /** JSON of its result, or the reason of its failure. */
  value?: string | undefined;
}

/** The name that a job has in other queues. */
export function nodeKey(queue: string, id: string): string {
  return `${queue}:${id}`;
}

/** The queue and the id of a job's parent. */
export function parentOf(
  job: Pick<Job, "parent" | "parentKey">,
): { queue: string; id: string } | null {
  if (job.parent?.id !== undefined) return { queue: job.parent.queueKey, id: job.parent.id };
  if (!job.parentKey) return null;
  const end = job.parentKey.lastIndexOf(":");
  return { queue: job.parentKey.slice(0, end), id: job.parentKey.slice(end + 1) };
}

/** Where the children of a job are that have this status. */
export function childrenIn(id: string, status: ChildStatus): KvKeyPart[] {
  return ["child", keyPart(id), status];
}

/** Gives a child of a parent another status, or none. Answers whether it had the first. */
export async function moveChild(
  view: QueueView,
  parent: Job,
  child: Child,
  from: ChildStatus | null,
  to: ChildStatus | null,
): Promise<boolean> {
  const order = [keyPart(nodeKey(child.queue, child.id))];
  const counts = {
    ...(parent.children ?? { processed: 0, unprocessed: 0, ignored: 0, failed: 0 }),
  };
  if (from !== null) {
    const children = childrenIn(parent.id, from);
    if ((await view.getIn(children, order)) === undefined) return false;
    view.deleteIn(children, order);
    counts[from] -= 1;
  }
  if (to !== null) {
    const children = childrenIn(parent.id, to);
    if ((await view.getIn(children, order)) === undefined) counts[to] += 1;
    view.setIn(children, order, child);
  }
  parent.children = counts;
  view.save(parent);
  return true;
}

/** Lets a parent that waits for children be taken. */
export async function releaseParent(view: QueueView, parent: Job, now: number): Promise<void> {
  if (parent.state !== "waiting-children") return;
  if (parent.delay > 0) {
    const due = now + parent.delay;
    view.place(parent, "delayed", [due, view.next()]);
    view.event("delayed", { jobId: parent.id, delay: due });
    view.mark();
    return;
  }
  toWait(view, parent, parent.priority === 0);
  view.event("waiting", { jobId: parent.id, prev: "waiting-children" });
}

/** A child has a result: its parent gets it, and is released after the last. */
export async function childCompleted(
  queues: Queues,
  view: QueueView,
  job: Job,
  now: number,
): Promise<void> {
  const at = parentOf(job);
  if (at === null) return;
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  if (parent === undefined) return;
  const child = { queue: view.name, id: job.id, value: job.returnvalue };
  if (!(await moveChild(parentView, parent, child, "unprocessed", "processed"))) return;
  if (parent.children?.unprocessed === 0) await releaseParent(parentView, parent, now);
}

/** A child has failed for good: what its parent does is said by the options of the child. */
export async function childFailed(
  queues: Queues,
  view: QueueView,
  job: Job,
  reason: string,
  now: number,
): Promise<void> {
  const at = parentOf(job);
  if (at === null) return;
  const flags = {
    fail: job.parent?.fpof ?? job.opts.failParentOnFailure,
    go: job.parent?.cpof ?? job.opts.continueParentOnFailure,
    ignore: job.parent?.idof ?? job.opts.ignoreDependencyOnFailure,
    remove: job.parent?.rdof ?? job.opts.removeDependencyOnFailure,
  };
  if (!flags.fail && !flags.go && !flags.ignore && !flags.remove) return;
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  if (parent === undefined) return;
  const child = { queue: view.name, id: job.id, value: reason };
  const to = flags.fail ? "failed" : flags.go || flags.ignore ? "ignored" : null;
  if (!(await moveChild(parentView, parent, child, "unprocessed", to))) return;
  if (flags.fail) {
    await failParent(parentView, parent, nodeKey(view.name, job.id), now);
  } else if (flags.go || parent.children?.unprocessed === 0) {
    await releaseParent(parentView, parent, now);
  }
}

/** A parent that is to fail is taken by a worker, which finds the reason in it. */
async function failParent(
  view: QueueView,
  parent: Job,
  childKey: string,
  now: number,
): Promise<void> {
  if (parent.state === "failed") return;
  parent.deferredFailure = `child ${childKey} failed`;
  if (parent.state === "delayed") {
    parent.delay = 0;
    toWait(view, parent, parent.priority === 0);
    view.event("waiting", { jobId: parent.id, prev: "waiting-children" });
  } else if (parent.state === "waiting-children") {
    await releaseParent(view, parent, now);
  } else {
    view.save(parent);
  }
}

/**
 * A job is no child any more. A parent whose last child this was is released; with `hard`, a parent in the same
 * queue is deleted instead, which is answered.
 */
export async function leaveParent(
  queues: Queues,
  view: QueueView,
  job: Job,
  hard: boolean,
): Promise<{ left: boolean; orphan: Job | null }> {
  const at = parentOf(job);
  if (at === null) return { left: false, orphan: null };
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  const child = { queue: view.name, id: job.id };
  if (parent === undefined || !(await moveChild(parentView, parent, child, "unprocessed", null))) {
    return { left: false, orphan: null };
  }
  if (parent.children?.unprocessed === 0 && parent.state === "waiting-children") {
    if (hard && at.queue === view.name) return { left: true, orphan: parent };
    toWait(parentView, parent, true);
    if (!hard) parentView.event("waiting", { jobId: parent.id, prev: "waiting-children" });
  }
  return { left: true, orphan: null };
}

/** A child that had ended is unprocessed again for its parent. */
export async function childAgain(
  queues: Queues,
  view: QueueView,
  job: Job,
  state: "completed" | "failed",
): Promise<void> {
  const at = parentOf(job);
  if (at === null) return;
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  if (parent === undefined) return;
  const child = { queue: view.name, id: job.id };
  const before: ChildStatus[] = state === "completed" ? ["processed"] : ["failed", "ignored"];
  for (const status of before) {
    if (await moveChild(parentView, parent, child, status, "unprocessed")) return;
  }
}
