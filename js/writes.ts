// Duty: set, delete and enqueue: each encodes at the call into the batch of the microtask, and
// takes its outcome when the batch has settled.

import { type QueueOptions, checkQueueOptions } from "./check.js";
import { checkSetEnd, endNow } from "./end.js";
import { now } from "./clock.js";
import { OP_DELETE } from "./native.js";
import { putPatches } from "./patches.js";
import { putEnqueueHead, putKey, putMessage, putSetHead, putSetKey, putValue } from "./records.js";
import { MESSAGES, MUTATIONS, type Segment, commitLate } from "./segment.js";
import type { Session } from "./session.js";
import { abortable } from "./signal.js";
import type {
  KvCallOptions,
  KvCommitResult,
  KvEnqueueResult,
  KvExpireOptions,
  KvKey,
} from "./types.js";
import type { WriteBatch } from "./write-batch.js";

export async function set(
  session: Session,
  key: KvKey,
  value: unknown,
  options: (KvExpireOptions & KvCallOptions) | null | undefined,
): Promise<KvCommitResult> {
  if (options != null && options.signal !== undefined) {
    return await abortableSet(session, key, value, options);
  }
  const end = checkSetEnd(options);
  session.requireOpen();
  const batch = session.joinWrite();
  const { writer } = batch;
  const start = batch.begin();
  try {
    putSetHead(writer, key, endNow(end));
    putSetKey(writer, key, session.limits);
    putValue(writer, key, value, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (writer.fills !== null || session.order.held !== 0) {
    const [done, index] = await late(session, batch, start, MUTATIONS);
    return done.result(index) as KvCommitResult;
  }
  const index = batch.commit();
  await batch.settled;
  return batch.result(index) as KvCommitResult;
}

/** Apart: a closure in set() would cost every call of it a place in memory. */
function abortableSet(
  session: Session,
  key: KvKey,
  value: unknown,
  options: KvExpireOptions & KvCallOptions,
): Promise<KvCommitResult> {
  return abortable("kv.set", options, (rest) => set(session, key, value, rest));
}

export async function remove(session: Session, key: KvKey): Promise<void> {
  session.requireOpen();
  const batch = session.joinWrite();
  const { writer } = batch;
  const start = batch.begin();
  try {
    writer.u8(OP_DELETE);
    putKey(writer, key, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (session.order.held !== 0) {
    const [done, index] = await late(session, batch, start, MUTATIONS);
    done.requireCommitted(index);
    return;
  }
  const index = batch.commit();
  await batch.settled;
  batch.requireCommitted(index);
}

export async function enqueue(
  session: Session,
  value: unknown,
  options: { delay?: number; keysIfUndelivered?: readonly KvKey[] } | null | undefined,
): Promise<KvEnqueueResult> {
  return await enqueueChecked(session, value, checkQueueOptions(options, session.limits));
}

/** Commits one message, into whichever queue. */
export async function enqueueChecked(
  session: Session,
  value: unknown,
  checked: QueueOptions,
): Promise<KvEnqueueResult> {
  session.requireOpen();
  const batch = session.joinWrite();
  const { writer } = batch;
  const start = batch.begin();
  try {
    const dueAt = checked.atMs ?? now() + checked.delayMs;
    putEnqueueHead(writer, dueAt, checked, session.limits);
    putMessage(writer, value, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (writer.fills !== null || session.order.held !== 0) {
    const [done, index] = await late(session, batch, start, MESSAGES);
    return done.enqueued(index);
  }
  const index = batch.commit();
  await batch.settled;
  return batch.enqueued(index);
}

/**
 * Takes the record that was just written out of the batch, and commits it later: it is not complete
 * yet, or may have to wait for earlier calls.
 */
export function late(
  session: Session,
  batch: WriteBatch,
  start: number,
  rank: number,
): Promise<[WriteBatch, number]> {
  return commitLate(session, [detach(batch, start, rank)]);
}

function detach(batch: WriteBatch, start: number, rank: number): Segment {
  const { writer } = batch;
  const fills = writer.fills?.map((open) => ({ ...open, offset: open.offset - start })) ?? null;
  const buf = writer.copy(start);
  batch.abort();
  return { rank, buf, start: 0, end: buf.length, afterMs: undefined, fills };
}
