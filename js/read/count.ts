// Duty: count: the addon counts the entries, without their values.

import { call } from "../session/call.js";
import { checkDepthBelow, checkOptions, requireSelector } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { CALL_COUNT } from "../native/contract.js";
import { boundsOf, checkSelector } from "./range.js";
import { putScan } from "./scan.js";
import type { Session } from "../session/session.js";
import type { KvListSelector } from "../model/types.js";
import { encodeWhere } from "./where.js";

const OPTIONS = ["where", "depth", "signal"] as const;

export async function count(
  session: Session,
  selector: KvListSelector,
  options: unknown,
  signal?: AbortSignal,
): Promise<number> {
  const { where, depth } = checkOptions("kv.count", options, OPTIONS);
  requireSelector("kv.count", "a selector", selector);
  const checked = checkSelector("kv.count", selector, OPTIONS);
  const bounds = boundsOf(checked, session.limits.rangeKeyBytesMax);
  const frame = new Writer(256);
  const scan = {
    where: encodeWhere("kv.count", where),
    keysOnly: true,
    depth: checkDepthBelow("kv.count", depth, checked),
    withExpiry: false,
    passed: false,
  };
  putScan(frame, bounds, scan, false, 0, Number.NaN);
  session.requireOpen();
  const before = session.order.beforeRange(bounds.start, bounds.end);
  if (before !== null) await before;
  return (await call(session, session.readCommand(CALL_COUNT), frame, signal)).readDoubleLE(0);
}
