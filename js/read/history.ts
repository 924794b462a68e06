// Duty: kv.history: the versions of an entry, newest first, in pages.

import { invalid } from "../model/errors.js";
import { checkOptions, shown } from "../arguments/check.js";
import { checkBefore } from "../arguments/moment.js";
import { checkSignal, raced } from "../arguments/signal.js";
import { decodeKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { Writer } from "../codec/writer.js";
import { CALL_HISTORY, STAMP_BYTES, VERSION_EXPIRY, VERSION_REMOVED } from "../native/contract.js";
import { putText, readStamp, readU32 } from "../native/frame.js";
import { callBehindWrites } from "../session/call.js";
import type { Session } from "../session/session.js";
import type { KvEntryKey, KvKey, KvVersion } from "../model/types.js";
import { putKey, requireKey } from "./reads.js";

const OPTIONS = ["limit", "before", "signal"] as const;

/** Versions of the first page; later ones have more. */
const FIRST_PAGE_VERSIONS = 10;
/** The most that a page has: HISTORY_VERSIONS_MAX of crates/core/src/model/limits/replication.rs. */
const PAGE_VERSIONS_MAX = 100;

/** Bytes before the versions of a page: their number, and whether there are more. */
const HEAD_BYTES = 5;
/** Bytes of the kind, the versionstamp and the time of a version. */
const VERSION_HEAD_BYTES = 1 + STAMP_BYTES + 8;

/** Checks its arguments at the call, as kv.list does. */
export function history(
  session: Session,
  given: KvKey,
  options: unknown,
): AsyncGenerator<KvVersion<any>, undefined, undefined> {
  const { limit, before, signal } = checkOptions("kv.history", options, OPTIONS);
  if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) > 0)) {
    throw invalid(`kv.history: limit must be a positive integer: received ${shown(limit)}`);
  }
  const key = new Writer(64);
  putKey(session, key, requireKey(given));
  const wanted = (limit as number | undefined) ?? Number.POSITIVE_INFINITY;
  return versions(session, key, wanted, checkBefore(before), checkSignal("kv.history", signal));
}

async function* versions(
  session: Session,
  key: Writer,
  limit: number,
  before: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<KvVersion<any>, undefined, undefined> {
  let wanted = limit;
  let last = before;
  for (let pageMax = FIRST_PAGE_VERSIONS; ; pageMax = PAGE_VERSIONS_MAX) {
    const frame = new Writer(128);
    frame.u32(Math.min(wanted, pageMax));
    putText(frame, last);
    frame.bytes(key.buf.subarray(0, key.pos));
    const read = () => callBehindWrites(session, CALL_HISTORY, frame, signal);
    const page = await (signal === undefined ? read() : raced(signal, read));
    let at = HEAD_BYTES;
    for (let left = readU32(page, 0); left > 0; left--) {
      const { version, end } = readVersion(page, at, decodeKey(key.buf, 4, key.pos));
      at = end;
      last = version.versionstamp;
      wanted--;
      yield version;
      signal?.throwIfAborted();
    }
    if (page[4] === 0 || wanted === 0) return;
  }
}

/** u8 kind, versionstamp, f64 time; of an entry f64 expiry, u8 encoding, value. */
function readVersion(
  page: Buffer,
  start: number,
  key: KvEntryKey,
): { version: KvVersion<any>; end: number } {
  const versionstamp = readStamp(page, start + 1);
  const committed = dateOf("committedAt", page.readDoubleLE(start + 1 + STAMP_BYTES));
  const at = start + VERSION_HEAD_BYTES;
  if (page[start] === VERSION_REMOVED) {
    return { version: { type: "delete", key, value: null, versionstamp, ...committed }, end: at };
  }
  const from = at + 13;
  const end = from + readU32(page, at + 9);
  const value = decodeValue(page[at + 8]!, page, from, end);
  const type = page[start] === VERSION_EXPIRY ? "expiry" : "set";
  const expiry = dateOf("expireAt", page.readDoubleLE(at));
  return { version: { type, key, value, versionstamp, ...committed, ...expiry }, end };
}

/** The time under a name; nothing for NaN. */
function dateOf<Name extends string>(name: Name, ms: number): { [key in Name]?: Date } {
  return Number.isNaN(ms) ? {} : ({ [name]: new Date(ms) } as { [key in Name]: Date });
}
