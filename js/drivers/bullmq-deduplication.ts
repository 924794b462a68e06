// Duty: deduplication: an id stands for one job, and a job that is added with this id meanwhile is not.

import type { DeduplicationOptions } from "bullmq";
import { keyPart } from "./key-part.js";
import { type Added, enqueue } from "./bullmq-enqueueing.js";
import type { QueueView } from "./bullmq-batch.js";
import type { Queues } from "./bullmq-children.js";
import type { Job } from "./bullmq-job.js";
import { erase } from "./bullmq-removal.js";
import { type Winner, isOver, standing, winnerOf } from "./bullmq-winner.js";

/** Answers the job that stands for the id of a job which is to be added, or null: then that job stands for it. */
export async function deduplicate(
  queues: Queues,
  view: QueueView,
  added: Added,
  options: DeduplicationOptions,
  now: number,
): Promise<string | null> {
  const { id, ttl = 0, extend = false, replace = false, keepLastIfActive = false } = options;
  const jobId = added.job.id;
  const fresh = standing(jobId, keepLastIfActive ? 0 : ttl, now);
  const winner = await winnerOf(view, id, now);
  const win = (of: Winner): null => {
    view.set(of, "dedup", keyPart(id));
    return null;
  };
  if (winner === null) return win(fresh);
  if (replace) {
    const current = await view.job(winner.jobId);
    if (current?.state !== "delayed") {
      await keepLast(view, added, winner, options);
      return winner.jobId;
    }
    await erase(queues, view, current, false);
    view.event("removed", { jobId: current.id, prev: "delayed" });
    view.event("deduplicated", { jobId, deduplicationId: id, deduplicatedJobId: current.id });
    return win(!keepLastIfActive && !extend && ttl > 0 ? { ...winner, jobId } : fresh);
  }
  const kept = await keepLast(view, added, winner, options);
  if (!kept && extend && ttl > 0) {
    view.set({ ...fresh, jobId: winner.jobId } satisfies Winner, "dedup", keyPart(id));
  }
  if (!kept) {
    view.event("deduplicated", {
      jobId: winner.jobId,
      deduplicationId: id,
      deduplicatedJobId: jobId,
    });
  }
  return winner.jobId;
}

/** Keeps a job that is not added for when the one that is active ends, if it asks for that. */
async function keepLast(
  view: QueueView,
  added: Added,
  winner: Winner,
  { id, keepLastIfActive = false }: DeduplicationOptions,
): Promise<boolean> {
  if (!keepLastIfActive) return false;
  const current = await view.job(winner.jobId);
  if (current?.state !== "active") return false;
  view.set(added, "next", keyPart(id));
  view.set({ jobId: winner.jobId, until: null } satisfies Winner, "dedup", keyPart(id));
  view.event("deduplicated", {
    jobId: winner.jobId,
    deduplicationId: id,
    deduplicatedJobId: added.job.id,
  });
  return true;
}

/** A job has ended: it stands for its id no more, and the job that was kept for this moment is added. */
export async function finishDeduplication(
  queues: Queues,
  view: QueueView,
  job: Job,
  now: number,
): Promise<void> {
  const id = job.deduplicationId;
  if (!id) return;
  const winner = await view.get<Winner>("dedup", keyPart(id));
  if (winner !== undefined) {
    const over = winner.until === null ? winner.jobId === job.id : isOver(winner, now);
    if (over) view.delete("dedup", keyPart(id));
  }
  const next = await view.get<Added>("next", keyPart(id));
  if (next === undefined) return;
  view.delete("next", keyPart(id));
  const { ttl = 0, keepLastIfActive = false } = next.job.opts.deduplication ?? { id };
  const fresh = standing(next.job.id, keepLastIfActive ? 0 : ttl, now);
  view.set(fresh satisfies Winner, "dedup", keyPart(id));
  await enqueue(queues, view, { ...next, job: { ...next.job, timestamp: now } });
}
