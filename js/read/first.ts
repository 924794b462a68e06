// Duty: the first entry below a prefix that a filter selects, by one step of a scan on this thread, without a list.
// What such a step cannot answer is a list's.
// Invariant: between the request in the scratch and the decoded answer no user code runs.

import { CALL_SCAN, POINT_HEAD_BYTES, STAMP_BYTES, STEP_DONE } from "../native/contract.js";
import { READS } from "../instruments/channels.js";
import { decodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { readStamp, readU32 } from "../native/frame.js";
import { type Selection, putScan, selectionScan } from "./list-options.js";
import { boundsOf } from "./range.js";
import { STEP_HEAD_BYTES } from "./scan.js";
import type { Session } from "../session/session.js";
import type { KvEntry, KvEntryKey } from "../model/types.js";

/** The first entry that is selected below a prefix; null: there is none. Undefined: ask a list. */
export function firstNow(
  session: Session,
  prefix: KvEntryKey,
  selection: Selection,
): KvEntry<unknown> | null | undefined {
  if (session.spent || session.hasFlags || READS.isObserved) return undefined;
  const { limits, order, port } = session;
  const selector = { prefix, start: undefined, end: undefined };
  const options = selectionScan("kv.list", selection, selector);
  const bounds = boundsOf(selector, limits.rangeKeyBytesMax);
  session.requireOpen();
  if (order.underWay !== 0 && order.beforeRange(bounds.start, bounds.end) !== null)
    return undefined;
  const writer = port.begin();
  putScan(writer, bounds, options, false, 1, Number.NaN);
  if (!port.fits) return undefined;
  session.hold(1);
  const { buf, pos } = writer;
  const answer = port.native.step(session.lane, pos, CALL_SCAN);
  if (answer < 0) {
    session.refused(answer);
    return undefined;
  }
  const rowsAt = pos + STEP_HEAD_BYTES + readU32(buf, pos + STEP_HEAD_BYTES - 4);
  if (readU32(buf, rowsAt) === 0) return (buf[pos] & STEP_DONE) !== 0 ? null : undefined;
  const keyStart = rowsAt + 8;
  const keyEnd = keyStart + readU32(buf, rowsAt + 4);
  const known = bounds.prefix === null ? 0 : bounds.prefixBytes;
  const key = decodeKey(buf, keyStart + known, keyEnd, bounds.prefix) as KvEntryKey;
  const start = keyEnd + POINT_HEAD_BYTES + 4;
  const end = start + readU32(buf, keyEnd + POINT_HEAD_BYTES);
  const value = decodeValue(buf[keyEnd + STAMP_BYTES], buf, start, end);
  return { key, value, versionstamp: readStamp(buf, keyEnd) };
}
