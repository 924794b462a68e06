// Duty: what a database did in an interval, from its metrics before and after.

import type { KvMetrics, KvOperationName, KvSlowOperation } from "../../model/types.js";
import type { Changes } from "./changes.js";

/** What one kind of operation did. */
export interface Rate {
  readonly perSecond: number;
  readonly errorsPerSecond: number;
  /** The mean of the interval; null if none was timed in it. */
  readonly meanMs: number | null;
  /** Since the process has opened the database; null if none was timed. */
  readonly p99Ms: number | null;
}

/** A database at one moment. */
export interface Picture {
  readonly database: string;
  readonly at: string;
  /** The length of the interval. */
  readonly seconds: number;
  /** By kind, those that were ever called; null of a database that this process has opened itself. */
  readonly operations: Partial<Record<KvOperationName, Rate>> | null;
  readonly commitsPerSecond: number | null;
  readonly conflictsPerSecond: number | null;
  /** Null where there is no change feed. */
  readonly changes: Changes | null;
  readonly slowest: readonly KvSlowOperation[] | null;
  readonly queues: KvMetrics["queues"];
  readonly databaseBytes: number;
  readonly walBytes: number;
}

/** Where the figures of a picture come from. */
export interface Source {
  readonly database: string;
  /** Whether another process answers: its counters tell what its callers do. */
  readonly isServed: boolean;
}

export function pictureOf(
  { database, isServed }: Source,
  [before, after]: readonly [KvMetrics, KvMetrics],
  [beginMs, endMs]: readonly [number, number],
  changes: Changes | null,
): Picture {
  const seconds = Math.max(endMs - beginMs, 1) / 1000;
  // A server that was restarted counts from 0 again.
  const rate = (now: number, then: number) => (now < then ? now : now - then) / seconds;
  const { queues, databaseBytes, walBytes, slowest } = after;
  return {
    database,
    at: new Date(endMs).toISOString(),
    seconds,
    operations: isServed ? ratesOf(before, after, rate) : null,
    commitsPerSecond: isServed ? rate(after.commits, before.commits) : null,
    conflictsPerSecond: isServed ? rate(after.conflicts, before.conflicts) : null,
    changes,
    // Servers of earlier versions have none.
    slowest: isServed ? (slowest ?? null) : null,
    queues,
    databaseBytes,
    walBytes,
  };
}

function ratesOf(
  before: KvMetrics,
  after: KvMetrics,
  rate: (now: number, then: number) => number,
): Partial<Record<KvOperationName, Rate>> {
  const rates: Partial<Record<KvOperationName, Rate>> = {};
  for (const [name, now] of Object.entries(after.operations)) {
    if (now.count === 0) continue;
    const then = before.operations[name as KvOperationName];
    const samples = (now.latency?.samples ?? 0) - (then.latency?.samples ?? 0);
    const sumMs = (now.latency?.sumMs ?? 0) - (then.latency?.sumMs ?? 0);
    rates[name as KvOperationName] = {
      perSecond: rate(now.count, then.count),
      errorsPerSecond: rate(now.errors, then.errors),
      meanMs: samples > 0 ? sumMs / samples : null,
      p99Ms: now.latency?.p99Ms ?? null,
    };
  }
  return rates;
}
