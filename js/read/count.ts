// Duty: count: the addon counts the entries, without their values; a few of them on this thread.

import { call } from "../session/call.js";
import { checkOptions, requireSelector } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { BRIEF_SCAN_ENTRIES_MAX } from "../model/limits.js";
import { CALL_COUNT } from "../native/contract.js";
import { COUNT_OPTIONS, type ScanOptions, countScan, putScan } from "./list-options.js";
import { type Bounds, boundsOf, checkSelector } from "./range.js";
import { Scan } from "./scan.js";
import type { Session } from "../session/session.js";
import type { KvListSelector } from "../model/types.js";

export async function count(
  session: Session,
  selector: KvListSelector,
  options: unknown,
  signal?: AbortSignal,
): Promise<number> {
  const given = checkOptions("kv.count", options, COUNT_OPTIONS);
  requireSelector("kv.count", "a selector", selector);
  const checked = checkSelector("kv.count", selector, COUNT_OPTIONS);
  const bounds = boundsOf(checked, session.limits.rangeKeyBytesMax);
  const frame = new Writer(256);
  const scan = countScan("kv.count", given, checked);
  putScan(frame, bounds, scan, false, 0, Number.NaN);
  session.requireOpen();
  const before = session.order.beforeRange(bounds.start, bounds.end);
  if (before !== null) await before;
  const few = signal?.aborted ? null : countFew(session, scan, bounds);
  if (few !== null) return few;
  return (await call(session, session.readCommand(CALL_COUNT), frame, signal)).readDoubleLE(0);
}

/** The number of entries, if they are few; null for more, and if the turn's budget is spent. */
function countFew(session: Session, scan: ScanOptions, bounds: Bounds): number | null {
  session.requireOpen();
  const freshness = session.freshness(undefined);
  if (session.spent || !session.answers(freshness)) return null;
  const step = new Scan(session, scan, false, undefined, freshness, CALL_COUNT).stepNow(
    bounds,
    BRIEF_SCAN_ENTRIES_MAX,
  );
  return step === null ? null : step.rows;
}
