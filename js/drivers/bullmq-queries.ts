// Duty: the methods of a backend of BullMQ that change nothing. Each reads beside the lane, what is committed.

import type { DependenciesOpts, JobJson, JobState as BullState, JobType } from "bullmq";
import type { QueueView } from "./bullmq-batch.js";
import type { Queues } from "./bullmq-children.js";
import { Connection } from "./bullmq-connection.js";
import { winnerOf } from "./bullmq-winner.js";
import { jsonOf } from "./bullmq-job.js";
import * as reads from "./bullmq-reads.js";
import { limitMs, windowMs } from "./bullmq-states.js";

/** What a backend answers of its queue. */
export class Queries extends Connection {
  protected async read<T>(run: (view: QueueView, queues: Queues) => Promise<T> | T): Promise<T> {
    const { lane } = await this.place();
    return await lane.read(async (queues) => await run(await queues(this.qualifiedName), queues));
  }

  async getState(jobId: string): Promise<BullState | "unknown"> {
    const state = await this.read(async (view) => reads.stateOf(await view.job(jobId)));
    return state as BullState | "unknown";
  }

  async isFinished(jobId: string, returnValue?: boolean): Promise<number | [number, string]> {
    const end = await this.read(async (view) => reads.endOf(view, await view.job(jobId), jobId));
    return returnValue ? end : end[0];
  }

  async isMaxed(): Promise<boolean> {
    return await this.read((view) => view.isMaxed);
  }

  async isJobInState(state: string, jobId: string): Promise<boolean> {
    return await this.read(async (view) => reads.isIn(await view.job(jobId), state));
  }

  async getJobData(jobId: string): Promise<JobJson | undefined> {
    const job = await this.read((view) => view.job(jobId));
    return job && jsonOf(job);
  }

  async getDeduplicationJobId(deduplicationId: string): Promise<string | null> {
    const now = Date.now();
    return (await this.read((view) => winnerOf(view, deduplicationId, now)))?.jobId ?? null;
  }

  async getJobLogs(
    jobId: string,
    start: number,
    end: number,
    asc: boolean,
  ): Promise<{ logs: string[]; count: number }> {
    return await this.read((view) => reads.logsOf(view, jobId, start, end, asc));
  }

  async getRateLimitTtl(maxJobs?: number): Promise<number> {
    const now = Date.now();
    return await this.read((view) => {
      const { meta } = view.head;
      const most = maxJobs || (meta["max"] === undefined ? 0 : Number(meta["max"]));
      if (most > 0) return limitMs(view, most, now);
      return windowMs(view, now) || -2;
    });
  }

  async getCounts(types: JobType[], delayedTimestamp?: number): Promise<number[]> {
    return await this.read((view) => reads.countsOf(view, types, delayedTimestamp));
  }

  async getCountsPerPriority(priorities: number[]): Promise<number[]> {
    return await this.read((view) => reads.countsOfPriorities(view, priorities));
  }

  async getRanges(types: JobType[], start = 0, end = 1, asc = false): Promise<[string][]> {
    return (await this.read((view) => reads.rangesOf(view, types, start, end, asc))) as [string][];
  }

  async getDependencyCounts(jobId: string, types: string[]): Promise<number[]> {
    return await this.read(async (view) => reads.dependencyCountsOf(await view.job(jobId), types));
  }

  async getDependencies(jobId: string, opts: DependenciesOpts): Promise<Record<string, any>> {
    return await this.read((view) => reads.dependenciesOf(view, jobId, opts));
  }

  async getProcessedChildrenValues(jobId: string): Promise<Record<string, string>> {
    return await this.read((view) => reads.childValuesOf(view, jobId, "processed"));
  }

  async getIgnoredChildrenFailures(jobId: string): Promise<Record<string, string>> {
    return await this.read((view) => reads.childValuesOf(view, jobId, "ignored"));
  }

  async getMetrics(
    type: "completed" | "failed",
    start = 0,
    end = -1,
  ): Promise<[string[], string[], number]> {
    return await this.read((view) => reads.metricsOf(view, type, start, end));
  }

  async paginate(
    key: string,
    opts: { start: number; end: number; fetchJobs?: boolean },
  ): Promise<reads.ChildPage> {
    return await this.read((view, queues) => reads.pageOf(queues, view, key, opts));
  }

  async getJobScheduler(id: string): Promise<[any, string | null]> {
    const scheduler = await this.read((view) => reads.schedulerOf(view, id));
    if (scheduler === undefined) return [null, null];
    return [Object.entries(scheduler.fields).flat(), String(scheduler.next)];
  }

  async isJobScheduler(id: string): Promise<boolean> {
    return (await this.read((view) => reads.schedulerOf(view, id))) !== undefined;
  }

  async getJobSchedulerData(key: string): Promise<Record<string, string>> {
    return (await this.read((view) => reads.schedulerOf(view, key)))?.fields ?? {};
  }

  async getJobSchedulersRange(start: number, end: number, asc: boolean): Promise<string[]> {
    return await this.read((view) => reads.schedulersOf(view, start, end, asc));
  }

  async getJobSchedulersCount(): Promise<number> {
    return await this.read(async (view) => (await view.list(["due"])).length);
  }

  async getQueueMetaField(field: string): Promise<string | null> {
    return await this.read((view) => view.head.meta[field] ?? null);
  }

  async getQueueMetaFields(fields: string[]): Promise<(string | null)[]> {
    return await this.read((view) => fields.map((field) => view.head.meta[field] ?? null));
  }

  async getQueueMeta(): Promise<Record<string, string>> {
    return await this.read((view) => ({ ...view.head.meta }));
  }

  async hasQueueMetaField(field: string): Promise<boolean> {
    return await this.read((view) => view.head.meta[field] !== undefined);
  }
}
