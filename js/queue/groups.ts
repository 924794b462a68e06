// Duty: the limits of a queue and of its groups: set and read, and the groups listed.

import { LIMIT_ALGORITHMS } from "../model/limit-algorithms.js";
import { callBehindWrites } from "../session/call.js";
import { Writer } from "../codec/writer.js";
import { CALL_GROUPS, CALL_SET_LIMITS } from "../native/contract.js";
import { putText, readU32 } from "../native/frame.js";
import type { Session } from "../session/session.js";
import type { GroupsOptions, RunLimit } from "./queue-options.js";

export interface Rate {
  limit: number;
  per: number;
  algorithm: (typeof LIMIT_ALGORITHMS)[number];
}

export interface GroupLimits {
  concurrency?: number;
  rate?: Rate;
}

export interface QueueLimits extends GroupLimits {
  group: GroupLimits;
}

export interface Group {
  name: string;
  pending: number;
  delayed: number;
  processing: number;
  paused: boolean;
}

export interface GroupsPage {
  groups: Group[];
  cursor: string | null;
}

/** Resolves to whether it has changed anything. */
export async function setLimits(
  session: Session,
  queue: string,
  limits: readonly RunLimit[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const frame = new Writer();
  putText(frame, queue);
  for (const { concurrency, rate } of limits) {
    frame.u32(concurrency ?? 0);
    frame.u32(rate?.limit ?? 0);
    frame.f64(rate?.perMs ?? 0);
    frame.u8(rate?.algorithm ?? 0);
  }
  return (await callBehindWrites(session, CALL_SET_LIMITS, frame, signal))[0] === 1;
}

/** The limits of a queue, and a page of its groups. */
export async function readGroups(
  session: Session,
  queue: string,
  { limit, cursor }: GroupsOptions,
  signal: AbortSignal | undefined,
): Promise<{ limits: QueueLimits; page: GroupsPage }> {
  const frame = new Writer();
  putText(frame, queue);
  frame.u32(limit);
  putText(frame, cursor);
  const answer = await callBehindWrites(session, CALL_GROUPS, frame, signal);
  const limits = { ...limitsAt(answer, 0), group: limitsAt(answer, LIMIT_BYTES) };
  let at = 2 * LIMIT_BYTES;
  const count = readU32(answer, at);
  const sized = (): string => {
    const start = at + 4;
    at = start + readU32(answer, at);
    return answer.toString("utf8", start, at);
  };
  at += 4;
  const next = sized();
  const groups: Group[] = [];
  for (let left = count; left > 0; left--) {
    const name = sized();
    const [pending, delayed, processing, paused] = [0, 8, 16, 24].map((of) =>
      answer.readDoubleLE(at + of),
    );
    at += 32;
    groups.push({ name, pending, delayed, processing, paused: paused === 1 });
  }
  return { limits, page: { groups, cursor: next === "" ? null : next } };
}

/** u32 concurrency, u32 limit, f64 per, u8 algorithm. */
const LIMIT_BYTES = 17;

function limitsAt(answer: Buffer, at: number): GroupLimits {
  const [concurrency, limit] = [readU32(answer, at), readU32(answer, at + 4)];
  const rate = {
    limit,
    per: answer.readDoubleLE(at + 8),
    algorithm: LIMIT_ALGORITHMS[answer[at + 16]!]!,
  };
  return { ...(concurrency > 0 && { concurrency }), ...(limit > 0 && { rate }) };
}
