// Duty: adding jobs, alone and as trees.

import type { JobJson, ParentKeyOpts } from "bullmq";
import type { QueueView } from "./bullmq-batch.js";
import { moveChild, nodeKey, parentOf, type Queues, releaseParent } from "./bullmq-children.js";
import { deduplicate } from "./bullmq-deduplication.js";
import { type Job, newJob } from "./bullmq-job.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";
import { enqueue } from "./bullmq-enqueueing.js";

export interface Addition {
  json: JobJson;
  jobId: string;
  parentKeyOpts: ParentKeyOpts;
}

/** A parent that may have no child left to wait for. */
export interface Release {
  view: QueueView;
  id: string;
}

/**
 * Adds a job. Answers its id, or that of the job which stands in its place. In a tree a parent is released once all
 * of the tree has been added: it is put on the list `later`.
 */
export async function add(
  queues: Queues,
  view: QueueView,
  { json, jobId, parentKeyOpts }: Addition,
  now: number,
  later: Release[] | null = null,
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
    await joinParent(queues, view, given, job, now, later);
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

/** A job that is there already becomes a child of the parent with which it was added again. */
async function joinParent(
  queues: Queues,
  view: QueueView,
  job: Job,
  again: Job,
  now: number,
  later: Release[] | null,
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
    if (later !== null) later.push({ view: parentView, id: parent.id });
    else if (parent.children?.unprocessed === 0) await releaseParent(parentView, parent, now);
  } else {
    await moveChild(parentView, parent, child, null, "unprocessed");
  }
  job.parent = again.parent;
  job.parentKey = again.parentKey;
  view.save(job);
}

/** Releases the parents of a tree that have nothing to wait for. */
export async function releaseAll(later: Release[], now: number): Promise<void> {
  for (const { view, id } of later) {
    const parent = await view.job(id);
    if (parent?.children?.unprocessed === 0) await releaseParent(view, parent, now);
  }
}
