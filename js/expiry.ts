// Duty: ttl, touch and persist: when an entry ends, as data; its value is never read or written.

import { checkOptions, requireKey } from "./check.js";
import { call } from "./call.js";
import { END_OPTIONS, type End, checkEnd, endNow } from "./end.js";
import { Writer } from "./codec/writer.js";
import { CALL_TTL } from "./native.js";
import { putPatches } from "./patches.js";
import { putRetime, putTtl } from "./records.js";
import { MUTATIONS } from "./segment.js";
import type { Session } from "./session.js";
import type { KvCommitRefusal, KvCommitResult, KvKey } from "./types.js";
import { late } from "./writes.js";

/** First byte of the answer about an entry that ends; its end follows. */
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
  const answer = await call(session, CALL_TTL, frame);
  return answer[0] === ENDS ? { expireAt: new Date(answer.readDoubleLE(1)) } : null;
}

/** The end that `touch` is given, which has no default. */
export function checkTouch(method: string, options: unknown): End {
  const end = checkEnd(checkOptions(method, options, END_OPTIONS));
  if (end.afterMs === undefined && end.atMs === undefined) {
    throw new TypeError(
      `${method}: expireIn (milliseconds) or expireAt is missing; persist() removes the end`,
    );
  }
  return end;
}

export async function touch(
  session: Session,
  key: KvKey,
  options: unknown,
): Promise<KvCommitResult | KvCommitRefusal> {
  requireKey("kv.touch", key);
  return await retime(session, key, endNow(checkTouch("kv.touch", options)));
}

export async function persist(
  session: Session,
  key: KvKey,
): Promise<KvCommitResult | KvCommitRefusal> {
  requireKey("kv.persist", key);
  return await retime(session, key, undefined);
}

async function retime(
  session: Session,
  key: KvKey,
  expireAt: number | undefined,
): Promise<KvCommitResult | KvCommitRefusal> {
  session.requireOpen();
  const batch = session.joinWrite();
  const start = batch.begin();
  try {
    putRetime(batch.writer, key, expireAt, true, session.limits);
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
