// Duty: job schedulers. Each has its next job in the queue, delayed until it is due; the worker that takes it adds
// the one after it. BullMQ computes the due time of a cron pattern, this file that of an interval.

import type { JobsOptions, RepeatableOptions } from "bullmq";
import { keyPart } from "./key-part.js";
import { enqueue } from "./bullmq-enqueueing.js";
import type { QueueView } from "./bullmq-batch.js";
import type { Queues } from "./bullmq-children.js";
import { removeDeduplication } from "./bullmq-winner.js";
import { newJob } from "./bullmq-job.js";
import { REFUSAL, refusal } from "./bullmq-refusal.js";
import { erase } from "./bullmq-removal.js";

/** Times that a scheduler goes on when there is a job for its next one already. */
const SLOTS_MAX = 32;

/** A scheduler as it is stored. */
export interface Scheduler {
  id: string;
  next: number;
  /** What BullMQ reads of it: texts. */
  fields: Record<string, string>;
}

interface Repeat {
  every?: number;
  offset?: number;
}

export interface Schedule {
  id: string;
  /** When the next job is due, by a cron pattern. */
  next: number;
  data: string;
  templateOpts: JobsOptions;
  opts: RepeatableOptions;
  jobOpts: JobsOptions;
  now: number;
}

/** When an interval's next job is due, and its distance from the multiples of the interval. */
function nextOfInterval(
  previous: number | null,
  every: number,
  now: number,
  offset: number,
  start: number | undefined,
): { next: number; offset: number } {
  const slot = Math.floor(now / every) * every;
  let next: number;
  if (previous !== null) {
    next = previous + every;
    if (next < now) next = slot + offset > now ? slot + offset : slot + offset + every;
  } else if (start !== undefined && !Number.isNaN(start)) {
    next = Math.max(start, now);
  } else if (offset > 0) {
    next = slot + offset > now ? slot + offset : slot + offset + every;
  } else {
    next = now;
  }
  next = Math.floor(next);
  return { next, offset: Math.floor(offset === 0 ? next % every : offset) };
}

/** What BullMQ's JobScheduler adds to the options of the jobs. */
function repeatOf(opts: JobsOptions): Repeat | undefined {
  return (opts as { repeat?: Repeat }).repeat;
}

const jobIdOf = (id: string, next: number): string => `repeat:${id}:${next}`;

/** Adds a scheduler, or changes the one with this id; answers its next job and the time until that. */
export async function schedule(
  queues: Queues,
  view: QueueView,
  schedule: Schedule,
): Promise<[string, number]> {
  const { id, now } = schedule;
  const about = { command: "addJobScheduler" };
  const before = await view.get<Scheduler>("scheduler", keyPart(id));
  const { every, startDate } = schedule.opts;
  const given = schedule.opts.offset ?? repeatOf(schedule.jobOpts)?.offset ?? 0;
  const isOther = before !== undefined && before.fields["every"] !== text(every);
  let { next } = schedule;
  let offset: number | undefined = given;
  if (every) {
    const previous = before === undefined || isOther ? null : before.next;
    const start = startDate === undefined ? undefined : new Date(startDate).getTime();
    const computed = nextOfInterval(previous, every, now, given, start);
    next = computed.next;
    offset = computed.offset;
  }
  const hadJob = before !== undefined && (await dropPlanned(queues, view, id, before.next));
  if (hadJob) {
    if (every && !isOther) next = before.next;
    offset = schedule.opts.offset;
  }
  let jobId = jobIdOf(id, next);
  for (let slots = 0; (await view.job(jobId)) !== undefined; slots += 1) {
    if (!every) {
      if (!hadJob) throw refusal(REFUSAL.schedulerCollision, about);
      break;
    }
    if (slots >= SLOTS_MAX) throw refusal(REFUSAL.schedulerBusy, about);
    next += every;
    jobId = jobIdOf(id, next);
  }
  const fields = fieldsOf(schedule, offset, before);
  put(view, { id, next, fields }, before);
  const delay = Math.max(next - now, 0);
  const name = schedule.opts.name ?? id;
  await addPlanned(queues, view, {
    id,
    jobId,
    name,
    data: schedule.data,
    opts: schedule.jobOpts,
    delay,
    now,
  });
  return [jobId, delay];
}

/** Makes the job after the one that has been taken. Answers its id, or null if there is none to be made. */
export async function scheduleNext(
  queues: Queues,
  view: QueueView,
  plan: {
    id: string;
    next: number;
    data: string;
    jobOpts: JobsOptions;
    producerId: string | undefined;
    now: number;
  },
): Promise<string | null> {
  const { id, now, jobOpts } = plan;
  const before = await view.get<Scheduler>("scheduler", keyPart(id));
  if (before === undefined) return null;
  const { fields } = before;
  const repeat = repeatOf(jobOpts);
  const every = Number(fields["every"] ?? repeat?.every ?? 0);
  let { next } = plan;
  if (every > 0) {
    const offset = Number(fields["offset"] ?? repeat?.offset ?? 0);
    next = nextOfInterval(before.next, every, now, offset, undefined).next;
  }
  if (plan.producerId !== jobIdOf(id, before.next)) return null;
  const jobId = jobIdOf(id, next);
  if ((await view.job(jobId)) !== undefined) {
    view.event("duplicated", { jobId });
    return null;
  }
  const count = String(Number(fields["ic"] ?? 0) + 1);
  put(view, { id, next, fields: { ...fields, ic: count } }, before);
  const data = fields["data"] ?? "{}";
  const delay = Math.max(next - now, 0);
  await addPlanned(queues, view, {
    id,
    jobId,
    name: fields["name"] ?? id,
    data,
    opts: jobOpts,
    delay,
    now,
  });
  return jobId;
}

/** Removes a scheduler and its next job. Answers whether there was one. */
export async function unschedule(queues: Queues, view: QueueView, id: string): Promise<boolean> {
  const scheduler = await view.get<Scheduler>("scheduler", keyPart(id));
  if (scheduler === undefined) return false;
  const job = await view.job(jobIdOf(id, scheduler.next));
  if (job?.state === "delayed") {
    await erase(queues, view, job, true);
    view.event("removed", { jobId: job.id, prev: "delayed" });
  }
  view.delete("scheduler", keyPart(id));
  view.delete("due", scheduler.next, keyPart(id));
  return true;
}

/** Removes the planned job of a scheduler, unless a worker has taken it. */
async function dropPlanned(
  queues: Queues,
  view: QueueView,
  id: string,
  next: number,
): Promise<boolean> {
  const job = await view.job(jobIdOf(id, next));
  // In a paused queue a waiting one stays, as on Redis.
  const isPlanned =
    job?.state === "delayed" ||
    job?.state === "prioritized" ||
    (job?.state === "wait" && !view.isPaused);
  if (job === undefined || !isPlanned) return false;
  await removeDeduplication(view, job);
  await erase(queues, view, job, true);
  return true;
}

interface Planned {
  id: string;
  jobId: string;
  name: string;
  data: string;
  opts: JobsOptions;
  delay: number;
  now: number;
}

async function addPlanned(queues: Queues, view: QueueView, planned: Planned): Promise<void> {
  const { id, jobId, name, data, delay, now } = planned;
  view.change().id += 1;
  const opts = { ...planned.opts, delay, jobId };
  const job = newJob(
    {
      id: jobId,
      name,
      data,
      opts,
      timestamp: now,
      delay,
      priority: opts.priority ?? 0,
      repeatJobKey: id,
    } as never,
    jobId,
  );
  await enqueue(queues, view, { job, waitsForChildren: false });
}

function put(view: QueueView, scheduler: Scheduler, before: Scheduler | undefined): void {
  if (before !== undefined) view.delete("due", before.next, keyPart(before.id));
  view.set(scheduler, "scheduler", keyPart(scheduler.id));
  view.set(scheduler.id, "due", scheduler.next, keyPart(scheduler.id));
}

function text(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value);
}

function fieldsOf(
  { opts, data, templateOpts }: Schedule,
  offset: number | undefined,
  before: Scheduler | undefined,
): Record<string, string> {
  const template = JSON.stringify(templateOpts ?? {});
  const all: Record<string, string | undefined> = {
    name: text(opts.name),
    tz: text(opts.tz),
    limit: text(opts.limit),
    pattern: text(opts.pattern),
    startDate: text(opts.startDate),
    endDate: text(opts.endDate),
    every: text(opts.every),
    offset: text(offset) ?? before?.fields["offset"],
    opts: template === "{}" ? undefined : template,
    data: data && data !== "{}" ? data : undefined,
    ic: before?.fields["ic"] ?? "1",
  };
  const fields = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as Record<string, string>;
}
