// Duty: adding jobs, alone and as trees.

import type { JobJson, ParentKeyOpts } from "bullmq";
import type { QueueView } from "./bullmq-batch.js";
import { moveChild, nodeKey, parentOf, type Queues, releaseParent } from "./bullmq-children.js";
import { deduplicate } from "./bullmq-deduplication.js";
import { type Job, newJob } from "./bullmq-job.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";
import { toDelayed, toWait } from "./bullmq-states.js";

/** A job that is to be added. */
export interface Added {
  job: Job;
  /** It has children that are still to be added. */
  waitsForChildren: boolean;
}

export interface Addition {
  json: JobJson;
  jobId: string;
  parentKeyOpts: ParentKeyOpts;
}

/** Adds a job. Answers its id, or that of the job which stands in its place. */
export async function add(
  queues: Queues,
  view: QueueView,
  { json, jobId, parentKeyOpts }: Addition,
  now: number,
): Promise<string> {
  const head = view.change();
  const parentKey = parentKeyOpts.parentKey ?? json.parentKey;
  const at = parentOf({ parent: json.parent, parentKey });
  if (at !== null && (await (await queues(at.queue)).job(at.id)) === undefined) {
    throw refusal(REFUSAL.missingParent, { command: "addJob", jobId, parentKey });
  }
  head.id += 1;
  const id = jobId || json.id || String(head.id);
  const given = jobId || json.id ? await view.job(id) : undefined;
  const job = newJob({ ...json, parentKey } as JobJson, id);
  if (given !== undefined) {
    await joinParent(queues, view, given, job, now);
    view.event("duplicated", { jobId: id });
    return id;
  }
  const added = { job, waitsForChildren: parentKeyOpts.addToWaitingChildren === true };
  const options =
    job.opts.deduplication ?? (job.deduplicationId ? { id: job.deduplicationId } : undefined);
  if (options?.id) {
    job.deduplicationId = options.id;
    const winner = await deduplicate(queues, view, added, options, now);
    if (winner !== null) return winner;
  }
  await enqueue(queues, view, added);
  return id;
}

/** Puts a new job into its first state, and tells its parent of it. */
export async function enqueue(
  queues: Queues,
  view: QueueView,
  { job, waitsForChildren }: Added,
): Promise<void> {
  view.event("added", { jobId: job.id, name: job.name });
  if (waitsForChildren) {
    view.place(job, "waiting-children", [job.timestamp, view.next()]);
    view.event("waiting-children", { jobId: job.id });
  } else if (job.delay > 0) {
    toDelayed(view, job, job.timestamp + job.delay);
  } else {
    toWait(view, job, job.opts.lifo === true);
    view.event("waiting", { jobId: job.id });
  }
  const at = parentOf(job);
  if (at === null) return;
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  if (parent === undefined) return;
  await moveChild(parentView, parent, { queue: view.name, id: job.id }, null, "unprocessed");
}

/** A job that is there already becomes a child of the parent with which it was added again. */
async function joinParent(
  queues: Queues,
  view: QueueView,
  job: Job,
  again: Job,
  now: number,
): Promise<void> {
  const at = parentOf(again);
  if (at === null) return;
  const before = parentOf(job);
  if (before !== null && nodeKey(before.queue, before.id) !== nodeKey(at.queue, at.id)) {
    if ((await (await queues(before.queue)).job(before.id)) !== undefined) {
      throw refusal(REFUSAL.otherParent, {
        command: "addJob",
        jobId: job.id,
        parentKey: again.parentKey,
      });
    }
  }
  const parentView = await queues(at.queue);
  const parent = await parentView.job(at.id);
  if (parent === undefined) return;
  const child = { queue: view.name, id: job.id };
  if (job.state === "completed") {
    await moveChild(parentView, parent, { ...child, value: job.returnvalue }, null, "processed");
    // In a tree the parent is released once all of it has been added.
    if (parent.children?.unprocessed === 0) await releaseParent(parentView, parent, now);
  } else {
    await moveChild(parentView, parent, child, null, "unprocessed");
  }
  job.parent = again.parent;
  job.parentKey = again.parentKey;
  view.save(job);
}
