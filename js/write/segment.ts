// Duty: records that are encoded before their commit: their bytes, the contents of Blobs to be filled
// in, and how they join a batch.
// Invariant: except for contents that are filled in, the bytes of a segment never change, so that a
// commit can be repeated.

import { now } from "../model/clock.js";
import { expiryAfter } from "../arguments/expiry-options.js";
import { fillBlobs } from "../codec/value/blob.js";
import { type Fill, Writer } from "../codec/writer.js";
import { putBytes } from "../native/frame.js";
import {
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_RETURN,
  RELATIVE,
  RETURN_VALUES,
} from "../native/contract.js";
import { timeOffsetOf } from "../records/layout.js";
import { NativePromise } from "../model/native-promise.js";
import type { Session } from "../session/session.js";
import { Touched } from "../records/touched.js";
import { visitKeys } from "../records/written-keys.js";
import { WriteBatch } from "../session/write-batch.js";

/** The order of records in a write. */
export const CHECKS = 0;
export const ACKS = 1;
export const MUTATIONS = 2;
export const MESSAGES = 3;

export interface Segment {
  readonly rank: number;
  /** The record is `buf[start..end)`. */
  readonly buf: Buffer;
  readonly start: number;
  readonly end: number;
  /** Contents still to come, at offsets in `buf`, where there is room for them. */
  fills: readonly Fill[] | null;
}

/** Requests the results of the calculations. Must be the last segment. */
export const RETURNS_VALUES: Segment = {
  rank: MESSAGES + 1,
  buf: Buffer.of(OP_RETURN, RETURN_VALUES),
  start: 0,
  end: 2,
  fills: null,
};

/** Records of many operations share memory of this size. */
const CHUNK_BYTES = 32 * 1024;

let chunk: Writer | null = null;

/**
 * A writer for one record, which the caller returns. If a getter needs one meanwhile, it gets
 * another.
 */
export function takeWriter(packs: boolean): Writer {
  const writer = chunk ?? new Writer(CHUNK_BYTES);
  writer.resolves = true;
  writer.packs = packs;
  chunk = null;
  return writer;
}

/** Returns a writer, with `pos` after the bytes to keep. */
export function giveWriter(writer: Writer): void {
  // A writer that is more than half full is not used again.
  if (writer.pos < CHUNK_BYTES / 2 && writer.buf.length === CHUNK_BYTES) chunk = writer;
}

/** The segment of the record that was just written. */
export function segmentOf(writer: Writer, start: number, rank: number): Segment {
  const { buf, pos, fills } = writer;
  writer.fills = null;
  return { rank, buf, start, end: pos, fills };
}

/** Fills in the contents of the segments' Blobs; null when there is none to wait for. */
export function fill(segments: readonly Segment[]): Promise<unknown> | null {
  const open = segments.filter(({ fills }) => fills !== null);
  if (open.length === 0) return null;
  return NativePromise.all(
    open.map(async (segment) => {
      await fillBlobs(segment.buf, segment.fills!);
      segment.fills = null;
    }),
  );
}

/**
 * Commits a write of these segments once the contents of its Blobs are read, and after earlier calls
 * that must come first. Returns its batch and the number of its outcome.
 */
export async function commitLate(
  session: Session,
  segments: readonly Segment[],
): Promise<[WriteBatch, number]> {
  const touched = new Touched();
  for (const { buf, start, end } of segments) visitKeys(buf, start, end, touched);
  const before = session.order.beforeWrite(touched);
  const filled = fill(segments);
  if (before === null && filled === null) {
    const batch = joinSegments(session, segments);
    const index = batch.last;
    await batch.settled;
    return [batch, index];
  }
  const held = session.order.hold(touched);
  try {
    await NativePromise.all([before, filled]);
    const batch = joinSegments(session, segments);
    const index = batch.last;
    held.pass();
    await batch.settled;
    return [batch, index];
  } finally {
    held.end();
  }
}

/** Whether contents of Blobs are missing. */
export function isOpen(segments: readonly Segment[]): boolean {
  return segments.some(({ fills }) => fills !== null);
}

/** Adds a write made of these segments to the batch of the microtask. */
export function joinSegments(session: Session, segments: readonly Segment[]): WriteBatch {
  session.requireOpen();
  const batch = WriteBatch.join(session);
  const { writer } = batch;
  batch.begin();
  try {
    putSegments(writer, segments, session.remote);
  } catch (error) {
    batch.abort();
    throw error;
  }
  batch.commit(segments.length);
  return batch;
}

/** Appends the records, of a write that is committed now. */
export function putSegments(writer: Writer, segments: readonly Segment[], remote: boolean): void {
  for (const segment of segments) {
    const at = writer.pos;
    putBytes(writer, segment.buf, segment.start, segment.end);
    if (segment.buf[segment.start] & RELATIVE) putTimeNow(writer, at, remote);
  }
}

/**
 * Checks the relative time of the record at `at`. Makes it absolute for a remote database, as
 * {@link expiryNow} does.
 */
function putTimeNow(writer: Writer, at: number, remote: boolean): void {
  const op = writer.buf[at] & ~RELATIVE;
  const timeAt = at + timeOffsetOf(op);
  const ms = writer.view.getFloat64(timeAt, true);
  const time = op === OP_ENQUEUE || op === OP_ENQUEUE_NAMED ? now() + ms : expiryAfter(ms);
  if (!remote) return;
  writer.buf[at] = op;
  writer.view.setFloat64(timeAt, time, true);
}
