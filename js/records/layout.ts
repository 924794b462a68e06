// Duty: the records of a write: where their parts are, and writing the parts that need no encoder.
// Generated from crates/wire/src/protocol/frame/records.rs by `npm run generate`: do not edit.

import type { Writer } from "../codec/writer.js";
import {
  APPEND_EXPIRES,
  APPEND_FRONT,
  CALCULATE_CLAMP,
  CALCULATE_EXPIRES,
  CALCULATE_MAX,
  CALCULATE_MIN,
  EXPIRES,
  LIMIT_PEEK,
  OP_ACKNOWLEDGE,
  OP_APPEND,
  OP_CALCULATE,
  OP_CHECK,
  OP_CHECK_FOUND,
  OP_CHECK_ORDER,
  OP_CHECK_RANGE,
  OP_DEDUPLICATE,
  OP_DELETE,
  OP_END,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_LIMIT,
  OP_MAX,
  OP_MIN,
  OP_PATCHES,
  OP_RETURN,
  OP_SCHEDULE,
  OP_SET,
  OP_SET_EXPIRY,
  OP_SUM,
  OP_UNSCHEDULE,
  OP_WRITE_ID,
  RELATIVE,
  RETURN_VALUES,
  SET_EXPIRY_EXPIRES,
  SET_EXPIRY_REQUIRED,
  SET_EXPIRY_SHORTENS,
  SUFFIXED,
} from "../native/contract.js";
import { putText, readU32 } from "../native/frame.js";

/** The first byte of a record, without RELATIVE. */
export type Op =
  | typeof OP_END
  | typeof OP_CHECK
  | typeof OP_CHECK_RANGE
  | typeof OP_CHECK_FOUND
  | typeof OP_CHECK_ORDER
  | typeof OP_SET
  | typeof OP_DELETE
  | typeof OP_SUM
  | typeof OP_MIN
  | typeof OP_MAX
  | typeof OP_CALCULATE
  | typeof OP_APPEND
  | typeof OP_SET_EXPIRY
  | typeof OP_ENQUEUE
  | typeof OP_ENQUEUE_NAMED
  | typeof OP_PATCHES
  | typeof OP_RETURN
  | typeof OP_WRITE_ID
  | typeof OP_ACKNOWLEDGE
  | typeof OP_DEDUPLICATE
  | typeof OP_LIMIT
  | typeof OP_SCHEDULE
  | typeof OP_UNSCHEDULE;

/** Offsets of a part that a record does not have. */
const NONE = -1;

const SET_FLAGS = EXPIRES | SUFFIXED;
const CALCULATE_FLAGS = CALCULATE_MIN | CALCULATE_MAX | CALCULATE_CLAMP | CALCULATE_EXPIRES;
const APPEND_FLAGS = APPEND_FRONT | APPEND_EXPIRES;
const SET_EXPIRY_FLAGS = SET_EXPIRY_EXPIRES | SET_EXPIRY_REQUIRED | SET_EXPIRY_SHORTENS;
const RETURNS_FLAGS = RETURN_VALUES;
const LIMIT_FLAGS = LIMIT_PEEK;

/**
 * Offsets in the buffer of the last record read. A part that this record may lack is at -1 then, and so are the
 * key and the time of every other record; further parts of other records are stale.
 */
export class RecordLayout {
  op: Op = OP_END;
  /** Whether the time is in ms from the commit. */
  relative = false;
  stampAt = NONE;
  keyStart = NONE;
  keyEnd = NONE;
  fromStart = NONE;
  fromEnd = NONE;
  toStart = NONE;
  toEnd = NONE;
  seenAt = NONE;
  nowAt = NONE;
  filterAt = NONE;
  pathsAt = NONE;
  afterAt = NONE;
  untilAt = NONE;
  flags = 0;
  timeAt = NONE;
  valueAt = NONE;
  calculationAt = NONE;
  minAt = NONE;
  maxAt = NONE;
  backoffAt = NONE;
  undeliveredAt = NONE;
  priorityAt = NONE;
  deadRetentionAt = NONE;
  queueAt = NONE;
  deduplicationAt = NONE;
  patchesAt = NONE;
  idAt = NONE;
  messageAt = NONE;
  lockAt = NONE;
  modeAt = NONE;
  algorithmAt = NONE;
  limitAt = NONE;
  costAt = NONE;
  perAt = NONE;
  missedAt = NONE;
  everyAt = NONE;
  offsetAt = NONE;
  cronAt = NONE;
  zoneAt = NONE;
  nameAt = NONE;

  /** Reads the record at `at`. Returns where the next one starts. */
  read(buf: Buffer, at: number): number {
    const first = buf[at++];
    const op = (first & ~RELATIVE) as Op;
    this.op = op;
    this.relative = op !== first;
    this.timeAt = NONE;
    this.keyStart = NONE;
    switch (op) {
      case OP_END:
        if (this.relative) throw unknown(`record ${first}`);
        return at;
      case OP_CHECK:
        if (this.relative) throw unknown(`record ${first}`);
        this.stampAt = NONE;
        if (buf[at++] !== 0) {
          this.stampAt = at;
          at += 20;
        }
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        return at;
      case OP_CHECK_RANGE:
        if (this.relative) throw unknown(`record ${first}`);
        this.fromStart = at + 4;
        at = this.fromEnd = at + 4 + readU32(buf, at);
        this.toStart = at + 4;
        at = this.toEnd = at + 4 + readU32(buf, at);
        this.seenAt = at;
        at += 4;
        for (let left = readU32(buf, this.seenAt); left > 0; left--) {
          at += 24 + readU32(buf, at + 20);
        }
        return at;
      case OP_CHECK_FOUND:
        if (this.relative) throw unknown(`record ${first}`);
        this.nowAt = at;
        at += 8;
        this.filterAt = at;
        at += 4 + readU32(buf, at);
        return at;
      case OP_CHECK_ORDER:
        if (this.relative) throw unknown(`record ${first}`);
        this.pathsAt = at;
        at += 1;
        for (let left = buf[this.pathsAt]; left > 0; left--) {
          at += 5 + readU32(buf, at + 1);
        }
        this.afterAt = NONE;
        if (buf[at++] !== 0) {
          this.afterAt = at;
          at += 4 + readU32(buf, at);
        }
        this.untilAt = NONE;
        if (buf[at++] !== 0) {
          this.untilAt = at;
          at += 4 + readU32(buf, at);
        }
        return at;
      case OP_SET:
        this.readFlags(buf[at++], SET_FLAGS);
        if (this.flags & EXPIRES) {
          this.timeAt = at;
          at += 8;
        }
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        this.valueAt = at;
        at += 5 + readU32(buf, at + 1);
        return at;
      case OP_DELETE:
        if (this.relative) throw unknown(`record ${first}`);
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        return at;
      case OP_SUM:
      case OP_MIN:
      case OP_MAX:
        if (this.relative) throw unknown(`record ${first}`);
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        this.valueAt = at;
        at += 5 + readU32(buf, at + 1);
        return at;
      case OP_CALCULATE:
        this.calculationAt = at;
        at += 1;
        this.readFlags(buf[at++], CALCULATE_FLAGS);
        if (this.flags & CALCULATE_EXPIRES) {
          this.timeAt = at;
          at += 8;
        }
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        this.valueAt = at;
        at += 5 + readU32(buf, at + 1);
        this.minAt = NONE;
        if (this.flags & CALCULATE_MIN) {
          this.minAt = at;
          at += 5 + readU32(buf, at + 1);
        }
        this.maxAt = NONE;
        if (this.flags & CALCULATE_MAX) {
          this.maxAt = at;
          at += 5 + readU32(buf, at + 1);
        }
        return at;
      case OP_APPEND:
        this.readFlags(buf[at++], APPEND_FLAGS);
        if (this.flags & APPEND_EXPIRES) {
          this.timeAt = at;
          at += 8;
        }
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        this.valueAt = at;
        at += 4 + readU32(buf, at);
        return at;
      case OP_SET_EXPIRY:
        this.readFlags(buf[at++], SET_EXPIRY_FLAGS);
        if (this.flags & SET_EXPIRY_EXPIRES) {
          this.timeAt = at;
          at += 8;
        }
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        return at;
      case OP_ENQUEUE:
        this.timeAt = at;
        at += 8;
        this.backoffAt = at;
        at += 1 + 4 * buf[at];
        this.undeliveredAt = at;
        at += 2;
        for (let left = readU16(buf, this.undeliveredAt); left > 0; left--) {
          at += 4 + readU32(buf, at);
        }
        this.valueAt = at;
        at += 4 + readU32(buf, at);
        return at;
      case OP_ENQUEUE_NAMED:
        this.timeAt = at;
        at += 8;
        this.backoffAt = at;
        at += 1 + 4 * buf[at];
        this.undeliveredAt = at;
        at += 2;
        for (let left = readU16(buf, this.undeliveredAt); left > 0; left--) {
          at += 4 + readU32(buf, at);
        }
        this.priorityAt = at;
        at += 1;
        this.deadRetentionAt = at;
        at += 8;
        this.queueAt = at;
        at += 4 + readU32(buf, at);
        this.deduplicationAt = NONE;
        if (buf[at++] !== 0) {
          this.deduplicationAt = at;
          at += 4 + readU32(buf, at);
        }
        this.valueAt = at;
        at += 4 + readU32(buf, at);
        return at;
      case OP_PATCHES:
        if (this.relative) throw unknown(`record ${first}`);
        this.patchesAt = at;
        at += 4 + 13 * readU32(buf, at);
        return at;
      case OP_RETURN:
        if (this.relative) throw unknown(`record ${first}`);
        this.readFlags(buf[at++], RETURNS_FLAGS);
        return at;
      case OP_WRITE_ID:
        if (this.relative) throw unknown(`record ${first}`);
        this.idAt = at;
        at += 16;
        return at;
      case OP_ACKNOWLEDGE:
        if (this.relative) throw unknown(`record ${first}`);
        this.messageAt = at;
        at += 8;
        this.lockAt = at;
        at += 8;
        return at;
      case OP_DEDUPLICATE:
        if (this.relative) throw unknown(`record ${first}`);
        this.modeAt = at;
        at += 1;
        return at;
      case OP_LIMIT:
        if (this.relative) throw unknown(`record ${first}`);
        this.readFlags(buf[at++], LIMIT_FLAGS);
        this.algorithmAt = at;
        at += 1;
        this.limitAt = at;
        at += 4;
        this.costAt = at;
        at += 4;
        this.perAt = at;
        at += 8;
        this.keyStart = at + 4;
        at = this.keyEnd = at + 4 + readU32(buf, at);
        return at;
      case OP_SCHEDULE:
        if (this.relative) throw unknown(`record ${first}`);
        this.missedAt = at;
        at += 1;
        this.everyAt = at;
        at += 8;
        this.offsetAt = at;
        at += 8;
        this.cronAt = NONE;
        if (buf[at++] !== 0) {
          this.cronAt = at;
          at += 4 + readU32(buf, at);
        }
        this.zoneAt = at;
        at += 4 + readU32(buf, at);
        this.nameAt = at;
        at += 4 + readU32(buf, at);
        return at;
      case OP_UNSCHEDULE:
        if (this.relative) throw unknown(`record ${first}`);
        this.queueAt = at;
        at += 4 + readU32(buf, at);
        this.nameAt = at;
        at += 4 + readU32(buf, at);
        return at;
      default:
        throw unknown(`record ${op satisfies never}`);
    }
  }

  private readFlags(flags: number, known: number): void {
    if (flags & ~known) throw unknown(`flag of record ${this.op}: ${flags}`);
    this.flags = flags;
  }
}

/** The little-endian u16 at `at`. */
function readU16(buf: Buffer, at: number): number {
  return buf[at] | (buf[at + 1] << 8);
}

function unknown(what: string): Error {
  return new Error(`a write has an unknown ${what}; please report this`);
}

/** The offset of the time in a record that has one. Reading the whole record takes longer. */
export function timeOffsetOf(op: number): number {
  switch (op) {
    case OP_SET:
    case OP_APPEND:
    case OP_SET_EXPIRY:
      return 2;
    case OP_CALCULATE:
      return 3;
    case OP_ENQUEUE:
    case OP_ENQUEUE_NAMED:
      return 1;
    default:
      throw unknown(`record with a time: ${op}`);
  }
}

/** Starts a record CHECK: stamp. */
export function putCheckHead(writer: Writer, stamp: string | null): void {
  writer.u8(OP_CHECK);
  writer.u8(stamp === null ? 0 : 1);
  if (stamp !== null) writer.ascii(stamp);
}

/** Starts a record SET: flags, time. */
export function putSetHead(
  writer: Writer,
  flags: number,
  afterMs: number | undefined,
  atMs: number | undefined,
): void {
  writer.u8(afterMs === undefined ? OP_SET : OP_SET | RELATIVE);
  const time = afterMs ?? atMs;
  writer.u8(time === undefined ? flags : flags | EXPIRES);
  if (time !== undefined) writer.f64(time);
}

/** Starts a record CALCULATE: calculation, flags, time. */
export function putCalculateHead(
  writer: Writer,
  calculation: number,
  flags: number,
  afterMs: number | undefined,
  atMs: number | undefined,
): void {
  writer.u8(afterMs === undefined ? OP_CALCULATE : OP_CALCULATE | RELATIVE);
  const time = afterMs ?? atMs;
  writer.u8(calculation);
  writer.u8(time === undefined ? flags : flags | CALCULATE_EXPIRES);
  if (time !== undefined) writer.f64(time);
}

/** Starts a record APPEND: flags, time. */
export function putAppendHead(
  writer: Writer,
  flags: number,
  afterMs: number | undefined,
  atMs: number | undefined,
): void {
  writer.u8(afterMs === undefined ? OP_APPEND : OP_APPEND | RELATIVE);
  const time = afterMs ?? atMs;
  writer.u8(time === undefined ? flags : flags | APPEND_EXPIRES);
  if (time !== undefined) writer.f64(time);
}

/** Starts a record SET_EXPIRY: flags, time. */
export function putSetExpiryHead(
  writer: Writer,
  flags: number,
  afterMs: number | undefined,
  atMs: number | undefined,
): void {
  writer.u8(afterMs === undefined ? OP_SET_EXPIRY : OP_SET_EXPIRY | RELATIVE);
  const time = afterMs ?? atMs;
  writer.u8(time === undefined ? flags : flags | SET_EXPIRY_EXPIRES);
  if (time !== undefined) writer.f64(time);
}

/** Starts a record ENQUEUE: time, backoff, the number of undelivered. */
export function putEnqueueHead(
  writer: Writer,
  afterMs: number | undefined,
  atMs: number | undefined,
  backoff: readonly number[],
  undelivered: number,
): void {
  writer.u8(afterMs === undefined ? OP_ENQUEUE : OP_ENQUEUE | RELATIVE);
  writer.f64((afterMs ?? atMs)!);
  writer.u8(backoff.length);
  for (const item of backoff) writer.u32(item);
  writer.u16(undelivered);
}

/** Starts a record ENQUEUE_NAMED: time, backoff, the number of undelivered. */
export function putEnqueueNamedHead(
  writer: Writer,
  afterMs: number | undefined,
  atMs: number | undefined,
  backoff: readonly number[],
  undelivered: number,
): void {
  writer.u8(afterMs === undefined ? OP_ENQUEUE_NAMED : OP_ENQUEUE_NAMED | RELATIVE);
  writer.f64((afterMs ?? atMs)!);
  writer.u8(backoff.length);
  for (const item of backoff) writer.u32(item);
  writer.u16(undelivered);
}

/** Continues a record ENQUEUE_NAMED: priority, dead retention, queue, deduplication. */
export function putEnqueueNamedTail(
  writer: Writer,
  priority: number,
  deadRetention: number,
  queue: string,
  deduplication: string | undefined,
): void {
  writer.u8(priority);
  writer.f64(deadRetention);
  putText(writer, queue);
  writer.u8(deduplication === undefined ? 0 : 1);
  if (deduplication !== undefined) putText(writer, deduplication);
}

/** Starts a record LIMIT: flags, algorithm. */
export function putLimitHead(writer: Writer, flags: number, algorithm: number): void {
  writer.u8(OP_LIMIT);
  writer.u8(flags);
  writer.u8(algorithm);
}

/** Starts a record SCHEDULE: missed, every, offset, cron, zone, name. */
export function putScheduleHead(
  writer: Writer,
  missed: number,
  every: number,
  offset: number,
  cron: string | undefined,
  zone: string,
  name: string,
): void {
  writer.u8(OP_SCHEDULE);
  writer.u8(missed);
  writer.f64(every);
  writer.f64(offset);
  writer.u8(cron === undefined ? 0 : 1);
  if (cron !== undefined) putText(writer, cron);
  putText(writer, zone);
  putText(writer, name);
}

/** Starts a record UNSCHEDULE: queue, name. */
export function putUnscheduleHead(writer: Writer, queue: string, name: string): void {
  writer.u8(OP_UNSCHEDULE);
  putText(writer, queue);
  putText(writer, name);
}
