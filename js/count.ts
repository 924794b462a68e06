// Duty: how many entries there are: counted where they are.

import { call } from "./call.js";
import { checkOptions, requireSelector } from "./check.js";
import { Writer } from "./codec/writer.js";
import { CALL_COUNT } from "./native.js";
import { boundsOf, checkSelector } from "./range.js";
import { putScan } from "./scan.js";
import type { Session } from "./session.js";
import type { KvListSelector } from "./types.js";
import { encodeWhere } from "./where.js";

const OPTIONS = ["where", "signal"] as const;

export async function count(
  session: Session,
  selector: KvListSelector,
  options: unknown,
): Promise<number> {
  const { where } = checkOptions("kv.count", options, OPTIONS);
  requireSelector("kv.count", "a selector", selector);
  const checked = checkSelector("kv.count", selector, OPTIONS);
  const bounds = boundsOf(checked, session.limits.rangeKeyBytesMax);
  const frame = new Writer(256);
  const scan = {
    where: encodeWhere("kv.count", where),
    keysOnly: true,
    depth: undefined,
    withExpiry: false,
    passed: false,
  };
  putScan(frame, bounds, scan, false, 0, Number.NaN);
  session.requireOpen();
  const before = session.order.beforeRange(bounds.start, bounds.end);
  if (before !== null) await before;
  return (await call(session, CALL_COUNT, frame)).readDoubleLE(0);
}
