// The measured workloads and their targets: one row for each, in the order of the output.
//
// A target is a ratio to that peer's median in the same run. `better: "less"` marks a time, where the
// ratio must stay under the target; all others are rates. A workload runs with each set of values
// that it has targets for.

/** @typedef {{ name: string, title: string, family: string, unit: string, better: "more" | "less",
 *   sets: Record<string, Record<string, number>> }} Workload */

/** @type {Workload[]} */
export const WORKLOADS = [
  row("get", "sequential get", "get", {
    plain: { deno: 40, "deno-kv": 60, "better-sqlite3": 2.5 },
    realistic: { deno: 60, "deno-kv": 90, "better-sqlite3": 4.5, lmdb: 1.2 },
  }),
  row("get-500", "500 gets in flight", "get", {
    plain: { deno: 12, "deno-kv": 20, "better-sqlite3": 3 },
    realistic: { deno: 20, "deno-kv": 30, "better-sqlite3": 4 },
  }),
  row("get-many", "getMany(10), keys", "get", {
    plain: { deno: 12, "deno-kv": 25, "better-sqlite3": 3 },
    realistic: { deno: 25, "deno-kv": 50, "better-sqlite3": 5 },
  }),
  row("set", "sequential set", "set", {
    plain: { deno: 1.4, "deno-kv": 1.8, "better-sqlite3": 0.9 },
    realistic: { deno: 1.5, "deno-kv": 2.6, "better-sqlite3": 1, lmdb: 1.6 },
  }),
  row("set-thread", 'sequential set, lane: "thread"', "set", {
    realistic: { deno: 1.2, "deno-kv": 2, "better-sqlite3": 0.75, lmdb: 1.2 },
  }),
  row("set-500", "500 sets in flight", "set", {
    plain: { deno: 40, "deno-kv": 50, "better-sqlite3": 1.5 },
    realistic: { deno: 35, "deno-kv": 40, "better-sqlite3": 2, lmdb: 1 },
  }),
  row("list", "list of 20k, entries", "list", {
    plain: { deno: 4, "deno-kv": 10, "better-sqlite3": 4 },
    realistic: { deno: 12, "deno-kv": 30, "better-sqlite3": 8, lmdb: 1 },
  }),
  // A sum is a number: no set of values changes it.
  row("sum-500", "500 contended sums in flight", "contended", {
    plain: { deno: 40, "deno-kv": 40 },
  }),
  row("check-set", "check-and-set contended, 16 in flight", "contended", {
    plain: { deno: 10, "deno-kv": 10 },
    realistic: { deno: 6, "deno-kv": 6 },
  }),
  row("get-large", "get of a 24 KB object", "large", {
    plain: { deno: 3, "deno-kv": 4, "better-sqlite3": 2.5 },
    realistic: { deno: 5, "deno-kv": 8, "better-sqlite3": 4 },
  }),
  row("set-large", "set of a 24 KB object", "large", {
    plain: { deno: 1, "deno-kv": 1.2, "better-sqlite3": 0.85 },
    realistic: { deno: 1.2, "deno-kv": 1.8, "better-sqlite3": 1 },
  }),
  row("get-documents", "get of documents, eight kinds", "large", { realistic: {} }),
  row("set-documents", "set of documents, eight kinds", "large", { realistic: {} }),
  {
    ...row("watch", "watch: set to event, p50", "watch", {
      plain: { deno: 0.5 },
      realistic: { deno: 0.5 },
    }),
    unit: "µs",
    better: "less",
  },
  row("queue", "enqueue + listenQueue, messages", "queue", {
    plain: { deno: 8 },
    realistic: { deno: 8 },
  }),
  row("queue-named", "named queue: enqueue + receive + ack, 100 in flight", "queue", {
    plain: { deno: 5 },
    realistic: { deno: 5 },
  }),
];

function row(name, title, family, sets) {
  return { name, title, family, unit: "/s", better: "more", sets };
}

/**
 * The workload with one set of values, as a row of its own; undefined if it does not have the set.
 * @param {Workload} workload
 * @param {string} set
 */
export function withSet(workload, set) {
  const targets = workload.sets[set];
  return targets && { ...workload, set, targets };
}

/** How long and how often. Times are milliseconds for one trial. */
export const FULL = { trials: 5, warmMs: 500, ms: 1500, messages: 5000 };
export const QUICK = { trials: 3, warmMs: 200, ms: 500, messages: 1000 };
