// Duty: get and getMany with the expiry of the entries; of one key on this thread, if it may be.

import { call } from "../session/call.js";
import { checkReadOptions, noKeys, overLimit } from "../arguments/check.js";
import { decodeKey } from "../codec/key.js";
import { option } from "../arguments/options.js";
import { Writer } from "../codec/writer.js";
import { readU32 } from "../native/frame.js";
import { CALL_ENTRIES, STAMP_BYTES } from "../native/contract.js";
import { type ScanOptions, WHOLE } from "./list-options.js";
import { beforeKeys, putKey, requireKey } from "./reads.js";
import { extended } from "./range.js";
import { END_BYTES, Scan, type ScannedEntry, readEntry, rowEnd } from "./scan.js";
import type { Session } from "../session/session.js";
import type { KvConsistencyLevel, KvEntryKey, KvEntryMaybe, KvKey } from "../model/types.js";

type Entry = KvEntryMaybe<unknown> & { expireAt: Date | null };

const WITH_EXPIRY = { ...WHOLE, withExpiry: true };

/** Whether the options of a read request the expiry. */
export function asksForExpiry(options: object | null | undefined): boolean {
  return options != null && option(options as { withExpiry?: unknown }, "withExpiry") === true;
}

/** As getMany; every entry has `expireAt`. */
export async function getEntries(
  session: Session,
  keys: readonly KvKey[],
  options: object,
): Promise<Entry[]> {
  checkReadOptions(options);
  if (!Array.isArray(keys)) throw noKeys("kv.getMany", keys);
  const count = keys.length;
  if (count > session.limits.rangesMax) {
    throw overLimit("Too many ranges", "rangesMax", session.limits, count);
  }
  session.requireOpen();
  const frame = new Writer(256);
  for (let i = 0; i < count; i++) putKey(session, frame, requireKey(keys[i]));
  if (count === 0) return [];
  const own: KvEntryKey[] = [];
  for (let at = 0; at < frame.pos; ) {
    const start = at + 4;
    at = start + readU32(frame.buf, at);
    own.push(decodeKey(frame.buf, start, at));
  }
  const before = beforeKeys(session, frame);
  if (before !== null) await before;
  const consistency = option(options as { consistency?: KvConsistencyLevel }, "consistency");
  if (count === 1) {
    const bytes = frame.buf.subarray(4, frame.pos);
    const one = entryNow(session, CALL_ENTRIES, bytes, WITH_EXPIRY, consistency);
    if (one !== undefined) return [(one as Entry | null) ?? absent(own[0])];
  }
  const page = await call(session, session.readCommand(CALL_ENTRIES, consistency), frame);
  let at = 0;
  return own.map((key) => {
    const keyEnd = at + 4;
    const present = page[keyEnd + STAMP_BYTES] !== 0;
    const entry = present ? (readEntry(page, keyEnd, key, WITH_EXPIRY) as Entry) : absent(key);
    at = rowEnd(page, at) + END_BYTES;
    return entry;
  });
}

function absent(key: KvEntryKey): Entry {
  return { key, value: null, versionstamp: null, expireAt: null };
}

/** The entry of a key, as a list of it alone; null for none, undefined if another thread must read it. */
export function entryNow(
  session: Session,
  command: number,
  key: Buffer,
  options: ScanOptions,
  consistency?: KvConsistencyLevel,
): ScannedEntry | null | undefined {
  session.requireOpen();
  const freshness = session.freshness(consistency);
  if (session.spent || !session.answers(freshness)) return undefined;
  const range = { start: key, end: extended(key, 0), common: 0, prefix: null, prefixBytes: 0 };
  const step = new Scan(session, options, false, undefined, freshness, command).stepNow(range, 1);
  if (step === null || step.rows === 0) return step === null ? undefined : null;
  const { page, at } = step;
  const keyEnd = at + 4 + readU32(page, at);
  return readEntry(page, keyEnd, decodeKey(page, at + 4, keyEnd), options);
}
