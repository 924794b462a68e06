// Duty: the place of a job among those that wait for a worker, and among those that wait for their time.

import type { QueueView } from "./bullmq-batch.js";
import type { Job } from "./bullmq-job.js";

/** Makes a job wait, at the end or in front of those of its priority. */
export function toWait(
  view: QueueView,
  job: Job,
  front: boolean,
  priority: number = job.priority,
): void {
  const number = view.next();
  const order = [priority, front ? -number : number];
  view.place(job, priority === 0 ? "wait" : "prioritized", order);
  if (!view.isPaused) view.mark();
}

/** Makes a job wait until a time. */
export function toDelayed(view: QueueView, job: Job, due: number): void {
  view.place(job, "delayed", [due, view.next()]);
  view.event("delayed", { jobId: job.id, delay: due });
  view.mark();
}
