// Duty: set, delete and enqueue: each encodes at the call into the batch of the microtask, and
// takes its outcome when the batch has settled.

import { type QueueOptions, checkQueueOptions, checkSetOptions } from "./check.js";
import { now } from "./clock.js";
import { OP_DELETE } from "./native.js";
import { putPatches } from "./patches.js";
import { putEnqueueHead, putKey, putMessage, putSetHead, putSetKey, putValue } from "./records.js";
import { MESSAGES, MUTATIONS, type Segment, fill, joinSegments } from "./segment.js";
import type { Session } from "./session.js";
import type { KvCommitResult, KvKey } from "./types.js";
import type { WriteBatch } from "./write-batch.js";

export async function set(
  session: Session,
  key: KvKey,
  value: unknown,
  options: { expireIn?: number } | null | undefined,
): Promise<KvCommitResult> {
  const expireIn = options == null ? undefined : checkSetOptions(options);
  session.requireOpen();
  const batch = session.joinWrite();
  const { writer } = batch;
  const start = batch.begin();
  try {
    putSetHead(writer, key, expireIn === undefined ? undefined : now() + expireIn);
    putSetKey(writer, key, session.limits);
    putValue(writer, key, value, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (writer.fills !== null) return await filled(session, detach(batch, start, MUTATIONS));
  const index = batch.commit();
  await batch.settled;
  return batch.result(index) as KvCommitResult;
}

export async function remove(session: Session, key: KvKey): Promise<void> {
  session.requireOpen();
  const batch = session.joinWrite();
  const { writer } = batch;
  batch.begin();
  try {
    writer.u8(OP_DELETE);
    putKey(writer, key, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  const index = batch.commit();
  await batch.settled;
  batch.requireCommitted(index);
}

export async function enqueue(
  session: Session,
  value: unknown,
  options: { delay?: number; keysIfUndelivered?: readonly KvKey[] } | null | undefined,
): Promise<KvCommitResult> {
  return await enqueueChecked(session, value, checkQueueOptions(options, session.limits));
}

/** Commits one message, into whichever queue. */
export async function enqueueChecked(
  session: Session,
  value: unknown,
  checked: QueueOptions,
): Promise<KvCommitResult> {
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
  if (writer.fills !== null) return await filled(session, detach(batch, start, MESSAGES));
  const index = batch.commit();
  await batch.settled;
  return batch.result(index) as KvCommitResult;
}

/** Takes the record that is being written out of the batch, because it is not complete yet. */
function detach(batch: WriteBatch, start: number, rank: number): Segment {
  const { writer } = batch;
  const { fills } = writer;
  const buf = writer.copy(start);
  batch.abort();
  return {
    rank,
    buf,
    start: 0,
    end: buf.length,
    afterMs: undefined,
    fills: fills!.map((open) => ({ ...open, offset: open.offset - start })),
  };
}

/** Commits a record when the contents of its Blobs are here. */
async function filled(session: Session, segment: Segment): Promise<KvCommitResult> {
  const segments = [segment];
  await fill(segments);
  const batch = joinSegments(session, segments);
  const index = batch.last;
  await batch.settled;
  return batch.result(index) as KvCommitResult;
}
