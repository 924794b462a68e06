// Duty: the job that a deduplication id stands for.

import { keyPart } from "./key-part.js";
import { msUntil } from "./deadline.js";
import type { QueueView } from "./bullmq-batch.js";
import type { Job } from "./bullmq-job.js";

/** The job that an id stands for, until a time or until the job ends. */
export interface Winner {
  jobId: string;
  until: number | null;
  /** How long it stands for it, if until a time. */
  ms?: number;
}

/** The job that stands for an id now. */
export async function winnerOf(view: QueueView, id: string, now: number): Promise<Winner | null> {
  const winner = await view.get<Winner>("dedup", keyPart(id));
  return winner === undefined || isOver(winner, now) ? null : winner;
}

/** Whether it stood for the id until a time that is over. */
export function isOver({ until, ms }: Winner, now: number): boolean {
  return until !== null && msUntil(until, ms, now) === 0;
}

/** The job stands for an id for `ttl` ms from now; with 0 until it ends. */
export function standing(jobId: string, ttl: number, now: number): Winner {
  return ttl > 0 ? { jobId, until: now + ttl, ms: ttl } : { jobId, until: null };
}

/** A job is removed: it stands for its id no more. */
export async function removeDeduplication(view: QueueView, job: Job): Promise<void> {
  if (!job.deduplicationId) return;
  await forget(view, job.deduplicationId, job.id, null);
}

/** Ends that an id stands for a job, or for any without `jobId`. Answers whether it did. */
export async function forget(
  view: QueueView,
  id: string,
  jobId: string | null,
  now: number | null,
): Promise<boolean> {
  const winner =
    now === null ? await view.get<Winner>("dedup", keyPart(id)) : await winnerOf(view, id, now);
  if (!winner || (jobId !== null && winner.jobId !== jobId)) return false;
  view.delete("dedup", keyPart(id));
  return true;
}
