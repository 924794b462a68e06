// Duty: the table of contents of the conformance cases. A case is
//
//   { name, run(t) }               t: context.mjs
//   on: "file" | "memory"          makes sense on one variant only
//   on: "shared"                   needs several handles or openings: all variants but memory
//   alone: true                    changes the process (working directory, environment)
//   denoDiffers: "reason"          openkv does otherwise on purpose; listed in docs/contract.md
//   serverDiffers: "reason"        our client and server do otherwise; listed in docs/contract.md
//   postgresDiffers: "reason"      PostgreSQL does otherwise; listed in docs/contract.md
//   bucketDiffers: "reason"        a bucket does otherwise; listed in docs/contract.md
//   denoSlow: "reason"             Deno's KV needs up to a minute: left out of the oracle run

import atomic from "./cases/atomic.mjs";
import capture from "./cases/capture.mjs";
import changing from "./cases/changing.mjs";
import checks from "./cases/checks.mjs";
import close from "./cases/close.mjs";
import concurrency from "./cases/concurrency.mjs";
import cursor from "./cases/cursor.mjs";
import del from "./cases/delete.mjs";
import enqueue from "./cases/enqueue.mjs";
import expiry from "./cases/expiry.mjs";
import get from "./cases/get.mjs";
import keyErrors from "./cases/key-errors.mjs";
import keys from "./cases/keys.mjs";
import limits from "./cases/limits.mjs";
import listOptions from "./cases/list-options.mjs";
import list from "./cases/list.mjs";
import mutations from "./cases/mutations.mjs";
import open from "./cases/open.mjs";
import options from "./cases/options.mjs";
import queue from "./cases/queue.mjs";
import set from "./cases/set.mjs";
import shape from "./cases/shape.mjs";
import sums from "./cases/sums.mjs";
import u64 from "./cases/u64.mjs";
import valueRefusals from "./cases/value-refusals.mjs";
import values from "./cases/values.mjs";
import versionstamp from "./cases/versionstamp.mjs";
import watch from "./cases/watch.mjs";

/**
 * What openkv opens. "replica": a server, through a handle with a replica; "near": the same, with reads
 * answered by the replica.
 */
export const VARIANTS = ["memory", "file", "server", "replica", "near", "postgres", "bucket"];

/** The property of a case that notes why it fails on a variant. */
export const DIFFERS = {
  server: "serverDiffers",
  replica: "serverDiffers",
  near: "serverDiffers",
  postgres: "postgresDiffers",
  bucket: "bucketDiffers",
};

/** The shelves about reading. */
const READING = ["get", "keys", "values", "list", "list options", "cursor", "expiry"];

export function runsOn({ on, alone }, variant, shelf) {
  if (variant === "near" && !READING.includes(shelf)) return false;
  if (on === "shared") return variant !== "memory";
  // Which variant it is makes no difference to the working directory and the environment.
  if (alone && variant in DIFFERS) return false;
  return on === undefined || on === variant;
}

export const shelves = [
  { shelf: "open", cases: open },
  { shelf: "options", cases: options },
  { shelf: "shape", cases: shape },
  { shelf: "get", cases: get },
  { shelf: "set", cases: set },
  { shelf: "delete", cases: del },
  { shelf: "keys", cases: keys },
  { shelf: "key errors", cases: keyErrors },
  { shelf: "values", cases: values },
  { shelf: "value refusals", cases: valueRefusals },
  { shelf: "changing", cases: changing },
  { shelf: "capture", cases: capture },
  { shelf: "list", cases: list },
  { shelf: "list options", cases: listOptions },
  { shelf: "cursor", cases: cursor },
  { shelf: "atomic", cases: atomic },
  { shelf: "checks", cases: checks },
  { shelf: "mutations", cases: mutations },
  { shelf: "u64", cases: u64 },
  { shelf: "sums", cases: sums },
  { shelf: "versionstamp", cases: versionstamp },
  { shelf: "limits", cases: limits },
  { shelf: "expiry", cases: expiry },
  { shelf: "watch", cases: watch },
  { shelf: "enqueue", cases: enqueue },
  { shelf: "queue", cases: queue },
  { shelf: "concurrency", cases: concurrency },
  { shelf: "close", cases: close },
];
