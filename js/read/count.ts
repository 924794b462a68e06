// Duty: count: the addon counts the entries, without their values.

import { call } from "../session/call.js";
import { checkOptions, requireSelector } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { CALL_COUNT } from "../native/contract.js";
import { COUNT_OPTIONS, countScan, putScan } from "./list-options.js";
import { boundsOf, checkSelector } from "./range.js";
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
  return (await call(session, session.readCommand(CALL_COUNT), frame, signal)).readDoubleLE(0);
}
