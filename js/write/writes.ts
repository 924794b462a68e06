// Duty: set, delete and enqueue: each encodes at the call into the batch of the microtask, and
// takes its outcome when the batch has settled.

import { type QueueOptions, checkQueueOptions } from "../arguments/check.js";
import { checkSetExpiry, expiryNow } from "../arguments/expiry-options.js";
import { option } from "../arguments/options.js";
import { contextBytes, ownHeaders } from "../codec/message-context.js";
import type { Writer } from "../codec/writer.js";
import { ENQUEUES, type QueueOperation } from "../instruments/channels.js";
import { now } from "../model/clock.js";
import { OP_DELETE } from "../native/contract.js";
import { putPatches } from "../records/patches.js";
import { putEnqueue, putKey, putMessage, putSet, putSetKey, putValue } from "../records/records.js";
import { MESSAGES, MUTATIONS, type Segment, commitLate } from "./segment.js";
import type { Session } from "../session/session.js";
import { abortable } from "../arguments/signal.js";
import type {
  KvCallOptions,
  KvCommitResult,
  KvDuration,
  KvEnqueueResult,
  KvExpireOptions,
  KvKey,
} from "../model/types.js";
import { WriteBatch } from "../session/write-batch.js";

export async function set(
  session: Session,
  key: KvKey,
  value: unknown,
  options: (KvExpireOptions & KvCallOptions) | null | undefined,
): Promise<KvCommitResult> {
  if (options != null && option(options, "signal") !== undefined) {
    return await abortableSet(session, key, value, options);
  }
  const expiry = checkSetExpiry(options);
  session.requireOpen();
  const batch = WriteBatch.join(session);
  const { writer } = batch;
  const start = batch.begin();
  try {
    putSet(writer, key, expiryNow(expiry, session.remote));
    putSetKey(writer, key, session.limits);
    putValue(writer, key, value, session.limits);
    if (writer.patches !== null) putPatches(writer);
  } catch (error) {
    batch.abort();
    throw error;
  }
  if (writer.fills !== null || session.order.held !== 0) {
    const [done, index] = await late(session, batch, start, MUTATIONS);
    return done.committed(index);
  }
  const index = batch.commit();
  await batch.settled;
  return batch.committed(index);
}

/** A separate function, because a closure in set() would cost memory in each call. */
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
  const batch = WriteBatch.join(session);
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
  options:
    | { delay?: KvDuration | undefined; keysIfUndelivered?: readonly KvKey[] | undefined }
    | null
    | undefined,
): Promise<KvEnqueueResult> {
  return await send(session, value, checkQueueOptions(options, session.limits));
}

/** Commits one message, and publishes that where a subscriber wants to know. */
export function send(
  session: Session,
  value: unknown,
  checked: QueueOptions,
): Promise<KvEnqueueResult> {
  if (!ENQUEUES.isObserved) return enqueueChecked(session, value, checked);
  const event = enqueueEvent(session, "enqueue", checked);
  return ENQUEUES.trace(event, enqueueChecked, session, value, checked, event.headers);
}

/** The event of a message that is enqueued. */
export function enqueueEvent(
  { database }: Session,
  operation: "enqueue" | "create",
  { named }: QueueOptions,
): QueueOperation {
  const synchronous = operation === "create";
  return { operation, database, synchronous, queue: named?.queue ?? "", headers: {} };
}

/** The bytes of the context that a message carries: what openkv itself keeps there, and the headers of its trace. */
export function contextFor(
  { port }: Session,
  { named }: QueueOptions,
  headers: Record<string, string> | null,
): Buffer | null {
  const own = ownHeaders(named?.timeoutMs, named?.keepResultMs, named?.group);
  return contextBytes({ ...own, ...headers }, port.bounds.messageContextBytesMax);
}

/** The options with an absolute time, by the clock of this machine: for a remote database. */
function dueNow(checked: QueueOptions): QueueOptions {
  const { atMs = now() + checked.delayMs } = checked;
  return { ...checked, atMs };
}

/** Commits one message, into Deno's queue or a named one. */
async function enqueueChecked(
  session: Session,
  value: unknown,
  checked: QueueOptions,
  headers?: Record<string, string>,
): Promise<KvEnqueueResult> {
  return await commitMessage(session, (writer) => {
    putEnqueue(writer, session.remote ? dueNow(checked) : checked, session.limits);
    const context = contextFor(session, checked, headers ?? null);
    putMessage(writer, value, checked, session.limits, context);
  });
}

/** Commits the records of one message, which `put` writes. */
export async function commitMessage(
  session: Session,
  put: (writer: Writer) => void,
): Promise<KvEnqueueResult> {
  session.requireOpen();
  const batch = WriteBatch.join(session);
  const { writer } = batch;
  const start = batch.begin();
  try {
    put(writer);
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
 * Removes the record that was just written from the batch and commits it later, because it is
 * incomplete or must wait for earlier calls.
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
  return { rank, buf, start: 0, end: buf.length, fills };
}
