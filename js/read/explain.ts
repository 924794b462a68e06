// Duty: kv.explain: carries a list out in the addon, and tells what it read.

import { checkConsistency, checkOptions, requireSelector } from "../arguments/check.js";
import { decodeCursor } from "../codec/cursor.js";
import { Writer } from "../codec/writer.js";
import { CALL_EXPLAIN } from "../native/contract.js";
import { readU32 } from "../native/frame.js";
import { call } from "../session/call.js";
import type { Session } from "../session/session.js";
import type {
  KvConsistencyLevel,
  KvExplanation,
  KvListOptions,
  KvListSelector,
} from "../model/types.js";
import {
  LIST_OPTIONS,
  WHOLE,
  checkListOptions,
  putScan,
  refuseWithOrder,
  scanOptions,
} from "./list-options.js";
import { checkOrder, putOrder } from "./order.js";
import { boundsOf, checkSelector, resume } from "./range.js";

const METHODS = ["index", "scan", "sort"] as const;

/** No limit. */
const ALL = 0;
/** The largest limit of a frame; no list reaches it. */
const LIMIT_MAX = 0xffff_ffff;

export async function explain(
  session: Session,
  given: KvListSelector,
  options: KvListOptions<any> | undefined,
  signal?: AbortSignal,
): Promise<KvExplanation> {
  const checked = checkListOptions(checkOptions("kv.explain", options, LIST_OPTIONS));
  const { limit = ALL, reverse, cursor, consistency } = checked;
  requireSelector("kv.explain", "a selector", given);
  const selector = checkSelector("kv.explain", given, LIST_OPTIONS);
  checkConsistency(consistency);
  const order = checkOrder("kv.explain", checked.orderBy, checked.sort);
  if (order !== null) refuseWithOrder("kv.explain", checked);
  const scan = scanOptions("kv.explain", checked, selector, false) ?? WHOLE;
  const bounds = boundsOf(selector, session.limits.rangeKeyBytesMax);
  let after: Uint8Array | null = null;
  if (cursor !== undefined && cursor !== null && cursor !== "") {
    if (order !== null) after = decodeCursor(cursor);
    else resume(bounds, cursor, reverse, (reverse ? selector.end : selector.start) !== undefined);
  }
  const frame = new Writer(256);
  putOrder(frame, order, after);
  putScan(frame, bounds, scan, reverse, Math.min(limit, LIMIT_MAX), Number.NaN);
  session.requireOpen();
  const before = session.order.beforeRange(bounds.start, bounds.end);
  if (before !== null) await before;
  const command = session.readCommand(CALL_EXPLAIN, consistency as KvConsistencyLevel | undefined);
  return explanationOf(await call(session, command, frame, signal));
}

function explanationOf(answer: Buffer): KvExplanation {
  let at = 2;
  const number = (): number => answer.readDoubleLE((at += 8) - 8);
  const text = (): string => {
    const start = at + 4;
    at = start + readU32(answer, at);
    return answer.toString("utf8", start, at);
  };
  const several = <T>(one: () => T): T[] => {
    at += 4;
    return Array.from({ length: readU32(answer, at - 4) }, one);
  };
  const indexEntries = number();
  const [visited, filtered, returned] = [number(), number(), number()];
  const reason = text();
  const bound = () => ({ path: text(), ranges: several(text) });
  const branches = several(() => ({ index: text(), bounds: several(bound) }));
  return {
    method: METHODS[answer[0]],
    branches,
    reason: reason === "" ? null : reason,
    indexEntries,
    visited,
    filtered,
    returned,
    complete: answer[1] === 1,
  };
}
