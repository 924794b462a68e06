// Duty: the counters of a database, polled while a view shows them.

import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { report } from "../shell/toasts";
import { ApiError, ask } from "./request";

export interface Latency {
  readonly samples: number;
  readonly sumMs: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface Depth {
  readonly pending: number;
  readonly delayed: number;
  readonly processing: number;
  readonly dead: number;
}

/** An operation that was slow. */
export interface SlowOperation {
  readonly operation: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly times: number;
  readonly failed: boolean;
  readonly durationMs: number;
  readonly atMs: number;
}

export interface Metrics {
  readonly operations: Readonly<
    Record<string, { count: number; errors: number; latency: Latency | null }>
  >;
  readonly commits: number;
  readonly conflicts: number;
  readonly rejections: number;
  readonly queues: Readonly<Record<string, Depth>>;
  readonly watches: number;
  readonly feeds: number;
  readonly listeners: number;
  readonly indexes: Readonly<Record<string, unknown>>;
  readonly databaseBytes: number | null;
  readonly walBytes: number | null;
  /** Missing on servers of earlier versions. */
  readonly slowest?: readonly SlowOperation[];
  readonly cache: { readonly hits: number; readonly misses: number; readonly hitRate: number };
}

export interface Sample {
  readonly at: number;
  readonly metrics: Metrics;
}

const EVERY_MS = 2000;
/** Samples that a chart shows: ten minutes. */
const SAMPLES_MAX = 300;

export const samples = signal<readonly Sample[]>([]);

/** Takes samples while a component is shown. */
export function useSamples(): readonly Sample[] {
  // Before the first paint, which takes longer than the answer.
  useLayoutEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    samples.value = [];
    let isBroken = false;
    const take = async (): Promise<void> => {
      const request = { accept: "application/json", signal: ending.signal };
      const metrics = (await (await ask("/metrics", request)).json()) as Metrics;
      samples.value = [...samples.value, { at: Date.now(), metrics }].slice(-SAMPLES_MAX);
    };
    const again = async (): Promise<void> => {
      try {
        await take();
        isBroken = false;
      } catch (error) {
        if (!isBroken) report(error);
        isBroken = true;
        // The user has closed the dialog for a token, which does not open again.
        if (error instanceof ApiError && error.status === 401) return;
      }
      if (!ending.signal.aborted) timer = setTimeout(again, EVERY_MS);
    };
    void again();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, []);
  return samples.value;
}

/** Operations of all kinds. */
export function operationsOf({ operations }: Metrics): number {
  return Object.values(operations).reduce((sum, { count }) => sum + count, 0);
}

/** A growing number per second, between samples. */
export function rates(given: readonly Sample[], of: (metrics: Metrics) => number): number[] {
  return given.map((sample, at) => {
    const before = given[at - 1];
    if (before === undefined) return 0;
    return ((of(sample.metrics) - of(before.metrics)) * 1000) / (sample.at - before.at);
  });
}
