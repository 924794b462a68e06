// Duty: ttl, touch and persist: the expiry of an entry. They never read or write its value.

import { misuse } from "../model/errors.js";
import { checkOptions, requireKey } from "../arguments/check.js";
import { call } from "../session/call.js";
import {
  EXPIRY_OPTIONS,
  type Expiry,
  NO_EXPIRY,
  checkExpiry,
  expiryNow,
} from "../arguments/expiry-options.js";
import { Writer } from "../codec/writer.js";
import { CALL_TTL } from "../native/contract.js";
import { putPatches } from "../records/patches.js";
import { putSetExpiry, putTtl } from "../records/records.js";
import { MUTATIONS } from "./segment.js";
import { entryNow } from "../read/entries.js";
import { WHOLE } from "../read/list-options.js";
import type { Session } from "../session/session.js";
import { WriteBatch } from "../session/write-batch.js";
import type { KvCommitRefusal, KvCommitResult, KvKey } from "../model/types.js";
import { late } from "./writes.js";

const ONLY_EXPIRY = { ...WHOLE, keysOnly: true, withExpiry: true };

/** First byte of the answer for an entry with an expiry, which follows. */
const ENDS = 2;

/** Room for most keys. */
const FRAME_BYTES = 256;

export async function ttl(session: Session, key: KvKey): Promise<{ expireAt: Date } | null> {
  requireKey("kv.ttl", key);
  const frame = new Writer(FRAME_BYTES);
  putTtl(frame, key, session.limits);
  session.requireOpen();
  const before = session.order.beforeKey(frame.buf, 0, frame.pos);
  if (before !== null) await before;
  const entry = entryNow(session, CALL_TTL, frame.buf.subarray(0, frame.pos), ONLY_EXPIRY);
  if (entry !== undefined) return entry?.expireAt ? { expireAt: entry.expireAt } : null;
  const answer = await call(session, session.readCommand(CALL_TTL), frame);
  return answer[0] === ENDS ? { expireAt: new Date(answer.readDoubleLE(1)) } : null;
}

/** The options of `touch`: an expiry is required. */
export function checkTouch(method: string, options: unknown): Expiry {
  const expiry = checkExpiry(checkOptions(method, options, EXPIRY_OPTIONS));
  if (expiry.afterMs === undefined && expiry.atMs === undefined) {
    throw misuse(
      `${method}: expireIn (milliseconds) or expireAt is missing; persist() removes the expiry`,
    );
  }
  return expiry;
}

export async function touch(
  session: Session,
  key: KvKey,
  options: unknown,
): Promise<KvCommitResult | KvCommitRefusal> {
  requireKey("kv.touch", key);
  const expiry = checkTouch("kv.touch", options);
  return await setExpiry(session, key, expiryNow(expiry, session.remote));
}

export async function persist(
  session: Session,
  key: KvKey,
): Promise<KvCommitResult | KvCommitRefusal> {
  requireKey("kv.persist", key);
  return await setExpiry(session, key, NO_EXPIRY);
}

async function setExpiry(
  session: Session,
  key: KvKey,
  expiry: Expiry,
): Promise<KvCommitResult | KvCommitRefusal> {
  session.requireOpen();
  const batch = WriteBatch.join(session);
  const start = batch.begin();
  try {
    putSetExpiry(batch.writer, key, expiry, true, session.limits);
    if (batch.writer.patches !== null) putPatches(batch.writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (session.order.held !== 0) {
    const [done, index] = await late(session, batch, start, MUTATIONS);
    return done.result(index);
  }
  const index = batch.commit();
  await batch.settled;
  return batch.result(index);
}
