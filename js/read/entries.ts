// Duty: get and getMany with the expiry of the entries.

import { call } from "../session/call.js";
import { checkReadOptions, noKeys, overLimit } from "../arguments/check.js";
import { decodeKey } from "../codec/key.js";
import { option } from "../arguments/options.js";
import { Writer } from "../codec/writer.js";
import { readU32 } from "../native/frame.js";
import { CALL_ENTRIES, STAMP_BYTES } from "../native/contract.js";
import { WHOLE } from "./list-options.js";
import { beforeKeys, putKey, requireKey } from "./reads.js";
import { END_BYTES, readEntry, rowEnd } from "./scan.js";
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
  const page = await call(session, session.readCommand(CALL_ENTRIES, consistency), frame);
  let at = 0;
  return own.map((key) => {
    const keyEnd = at + 4;
    const present = page[keyEnd + STAMP_BYTES] !== 0;
    const entry = present
      ? (readEntry(page, keyEnd, key, WITH_EXPIRY) as Entry)
      : { key, value: null, versionstamp: null, expireAt: null };
    at = rowEnd(page, at) + END_BYTES;
    return entry;
  });
}
