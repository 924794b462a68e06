// Duty: maintenance of the database: checkpoint, stats, vacuum, and metrics as an object or as
// Prometheus text.

import { checkOptions, shown } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { errorOf, failureBytes, readFailure, invalid } from "../model/errors.js";
import { readU32 } from "../native/frame.js";
import {
  CALL_CHECKPOINT,
  CALL_METRICS,
  CALL_STATS,
  CALL_VACUUM,
  STAMP_BYTES,
} from "../native/contract.js";
import { call, callBehindWrites } from "../session/call.js";
import type { Session } from "../session/session.js";
import type { KvFailingPart, KvMetrics, KvStats } from "../model/types.js";

export async function checkpoint(
  session: Session,
): Promise<{ logPages: number; movedPages: number }> {
  const answer = await call(session, CALL_CHECKPOINT);
  return { logPages: answer.readUInt32LE(0), movedPages: answer.readUInt32LE(4) };
}

export async function stats(
  session: Session,
  options: unknown,
  signal?: AbortSignal,
): Promise<KvStats> {
  const { entries } = checkOptions("kv.stats", options, ["entries", "signal"]);
  if (entries !== undefined && typeof entries !== "boolean") {
    throw invalid(`kv.stats: entries must be a boolean: received ${shown(entries)}`);
  }
  const frame = new Writer(1);
  frame.u8(entries === true ? 1 : 0);
  const answer = await callBehindWrites(session, CALL_STATS, frame, signal);
  const number = (at: number) => answer.readDoubleLE(1 + at * 8);
  const stats: KvStats = {
    databaseBytes: number(1),
    walBytes: number(2),
    pageSize: number(3),
    freePages: number(4),
    vacuumInSteps: number(5) === 1,
    versionstamp: answer.toString("latin1", STAMP_AT, STAMP_AT + STAMP_BYTES),
    failing: readFailing(answer, STAMP_AT + STAMP_BYTES),
  };
  return answer[0] === 1 ? { entries: number(0), ...stats } : stats;
}

/** After the flag and six numbers. */
const STAMP_AT = 49;

/** The background parts that fail, up to the end of the answer. */
function readFailing(answer: Buffer, start: number): KvFailingPart[] {
  const failing: KvFailingPart[] = [];
  for (let at = start; at < answer.length; ) {
    const nameAt = at + 4;
    const sinceAt = nameAt + readU32(answer, at);
    const part = answer.toString("utf8", nameAt, sinceAt);
    const since = new Date(answer.readDoubleLE(sinceAt));
    const errorAt = sinceAt + 8;
    failing.push({ part, since, error: errorOf(readFailure(answer, errorAt)) });
    at = errorAt + failureBytes(answer, errorAt);
  }
  return failing;
}

export async function vacuum(
  session: Session,
  signal?: AbortSignal,
): Promise<{ beforeBytes: number; afterBytes: number }> {
  const answer = await call(session, CALL_VACUUM, undefined, signal);
  return { beforeBytes: answer.readDoubleLE(0), afterBytes: answer.readDoubleLE(8) };
}

/** The counters of the database. */
export async function metrics(
  session: Session,
  options: unknown,
  signal?: AbortSignal,
): Promise<KvMetrics | string> {
  const { format = "object" } = checkOptions("kv.metrics", options, ["format", "signal"]);
  if (format !== "object" && format !== "prometheus") {
    throw invalid(`kv.metrics: format must be "object" or "prometheus": received ${shown(format)}`);
  }
  const frame = new Writer(1);
  frame.u8(format === "prometheus" ? 1 : 0);
  const text = (await call(session, CALL_METRICS, frame, signal)).toString("utf8");
  return format === "prometheus" ? text : (JSON.parse(text) as KvMetrics);
}
