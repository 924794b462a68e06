// Duty: the first state of a job, and its place with its parent.

import type { QueueView } from "./bullmq-batch.js";
import { moveChild, parentOf, type Queues } from "./bullmq-children.js";
import type { Job } from "./bullmq-job.js";
import { toDelayed, toWait } from "./bullmq-order.js";

/** A job that is to be added. */
export interface Added {
  job: Job;
  /** It has children that are still to be added. */
  waitsForChildren: boolean;
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
