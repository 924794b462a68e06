// The measured workloads and their targets: one row for each, in the order of the output.
//
// A target is a ratio to that peer's median in the same run. `better: "less"` marks a time, where the
// ratio must stay under the target; all others are rates.

/** @typedef {{ name: string, title: string, family: string, unit: string, better: "more" | "less",
 *   targets: Record<string, number>, skip?: string[] }} Workload */

/** @type {Workload[]} */
export const WORKLOADS = [
  row("get", "sequential get", "get", { deno: 40, "deno-kv": 60, "better-sqlite3": 2.5 }),
  row("get-500", "500 gets in flight", "get", { deno: 12, "deno-kv": 20, "better-sqlite3": 3 }),
  row("get-many", "getMany(10), keys", "get", { deno: 12, "deno-kv": 25, "better-sqlite3": 3 }),
  row("set", "sequential set", "set", { deno: 1.4, "deno-kv": 1.8, "better-sqlite3": 0.9 }),
  row("set-500", "500 sets in flight", "set", { deno: 40, "deno-kv": 50, "better-sqlite3": 1.5 }),
  row("list", "list of 20k, entries", "list", { deno: 4, "deno-kv": 10, "better-sqlite3": 4 }),
  row("sum-500", "500 contended sums in flight", "contended", { deno: 40, "deno-kv": 40 }),
  row("check-set", "check-and-set contended, 16 in flight", "contended", {
    deno: 10,
    "deno-kv": 10,
  }),
  row("get-large", "get of a 24 KB object", "large", {
    deno: 3,
    "deno-kv": 4,
    "better-sqlite3": 2.5,
  }),
  row("set-large", "set of a 24 KB object", "large", {
    deno: 1,
    "deno-kv": 1.2,
    "better-sqlite3": 0.85,
  }),
  {
    ...row("watch", "watch: set to event, p50", "watch", { deno: 0.5 }),
    unit: "µs",
    better: "less",
  },
  row("queue", "enqueue + listenQueue, messages", "queue", { deno: 8 }),
  row("queue-named", "named queue: enqueue + receive + ack, 100 in flight", "queue", { deno: 5 }),
];

function row(name, title, family, targets) {
  return { name, title, family, unit: "/s", better: "more", targets };
}

/** How long and how often. Times are milliseconds for one trial. */
export const FULL = { trials: 5, warmMs: 500, ms: 1500, messages: 5000 };
export const QUICK = { trials: 3, warmMs: 200, ms: 500, messages: 1000 };
