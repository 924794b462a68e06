// Duty: the end of a transaction without writes: whether all that it has read is one state of the database.
// Never: a write. Only a server without this call gets a commit of the checks instead.

import { type AtomicOperation, segmentsOf } from "../atomic/atomic.js";
import { Writer, copyOf } from "../codec/writer.js";
import { codeOf } from "../model/errors.js";
import { CALL_CHECK_READS, OP_END, STAMP_BYTES } from "../native/contract.js";
import { readStamp, readU32 } from "../native/frame.js";
import { call } from "../session/call.js";
import type { Session } from "../session/session.js";
import { type Segment, putSegments } from "../write/segment.js";
import type { KvCommitRefusal, KvCommitResult } from "../model/types.js";

/** `checks`: those of the read set; null if nothing was read. The operation is empty. */
export async function checkReads(
  session: Session,
  operation: AtomicOperation,
  checks: Segment | null,
): Promise<KvCommitResult | KvCommitRefusal> {
  const segments = checks === null ? [] : [checks];
  const here = checkHere(session, segments);
  if (here !== null) return resultOf(here);
  const frame = new Writer();
  putChecks(frame, segments);
  try {
    return resultOf(await call(session, CALL_CHECK_READS, frame));
  } catch (error) {
    if (codeOf(error) !== "UNSUPPORTED") throw error;
    segmentsOf(operation).push(...segments);
    return await operation.commit();
  }
}

/** The answer, if it can be had on this thread. */
function checkHere(session: Session, segments: Segment[]): Buffer | null {
  session.requireOpen();
  if (session.spent || !session.answers(0)) return null;
  const writer = session.port.begin();
  putChecks(writer, segments);
  const { buf, pos } = writer;
  if (!session.port.fits) return null;
  session.hold(1);
  const length = session.port.native.step(session.lane, pos, CALL_CHECK_READS);
  if (length >= 0) return copyOf(buf, pos, pos + length);
  session.refused(length);
  return null;
}

function putChecks(writer: Writer, segments: Segment[]): void {
  putSegments(writer, segments, false);
  writer.u8(OP_END);
}

function resultOf(answer: Buffer): KvCommitResult | KvCommitRefusal {
  const failed: number[] = [];
  for (let at = STAMP_BYTES; at < answer.length; at += 4) failed.push(readU32(answer, at));
  if (failed.length > 0) return { ok: false, failed };
  return { ok: true, versionstamp: readStamp(answer, 0) };
}
