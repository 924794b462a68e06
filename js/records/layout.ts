// Duty: finds the parts of an encoded record. Only this file reads the records of a write;
// js/native/contract.md describes their layout.
// Invariant: the compiler rejects a record of contract.ts that `read` does not handle, and `read`
// throws at an unknown flag.

import type * as contract from "../native/contract.js";
import {
  APPEND_EXPIRES,
  APPEND_FRONT,
  CALCULATE_CLAMP,
  CALCULATE_EXPIRES,
  CALCULATE_MAX,
  CALCULATE_MIN,
  EXPIRES,
  OP_APPEND,
  OP_CALCULATE,
  OP_CHECK,
  OP_CHECK_RANGE,
  OP_DELETE,
  OP_END,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_MAX,
  OP_MIN,
  OP_PATCHES,
  OP_SET_EXPIRY,
  OP_SET,
  OP_SUM,
  OP_TELL,
  RELATIVE,
  SET_EXPIRY_EXPIRES,
  SET_EXPIRY_REQUIRED,
  STAMP_BYTES,
  SUFFIXED,
  TELL_VALUES,
} from "../native/contract.js";
import { readU32 } from "../native/frame.js";
import { IN_KEY, PATCH_BYTES } from "./patches.js";

/** The first byte of a record: every `OP_` of contract.ts. */
export type Op = (typeof contract)[Extract<keyof typeof contract, `OP_${string}`>];

const SET_FLAGS = EXPIRES | SUFFIXED;
const CALCULATE_FLAGS = CALCULATE_MIN | CALCULATE_MAX | CALCULATE_CLAMP | CALCULATE_EXPIRES;
const APPEND_FLAGS = APPEND_FRONT | APPEND_EXPIRES;
const SET_EXPIRY_FLAGS = SET_EXPIRY_EXPIRES | SET_EXPIRY_REQUIRED;
/** The records that may be RELATIVE. */
const TIMED: readonly Op[] = [
  OP_SET,
  OP_CALCULATE,
  OP_APPEND,
  OP_SET_EXPIRY,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
];
/** The flag of a CHECK: a versionstamp follows. */
const PRESENT = 1;

const TIME_BYTES = 8;
const NONE = -1;

/** The offset of the time in a record that has one. Reading the whole record takes longer. */
export function timeOffsetOf(op: number): number {
  if (op === OP_ENQUEUE || op === OP_ENQUEUE_NAMED) return 1;
  return op === OP_CALCULATE ? 3 : 2;
}

/**
 * Offsets in the buffer of the last record read. For a part that the record does not have, the
 * offset is stale, unless the comment below says -1.
 */
export class RecordLayout {
  op: Op = OP_END;
  flags = 0;
  /** The operation of a CALCULATE. */
  calculation = 0;
  /** The time: a f64. -1: none. */
  timeAt = NONE;
  /** Whether the time is in ms from the commit. */
  relative = false;
  /** The key; of a range check the first key. `keyStart` -1: none. */
  keyStart = NONE;
  keyEnd = NONE;
  /** The end of a checked range: a key. */
  rangeStart = NONE;
  rangeEnd = NONE;
  /** The versionstamp of a check. -1: none. */
  stampAt = NONE;
  /** A value: u8 encoding, u32 length, bytes; of an APPEND and of a message without the encoding. */
  valueAt = NONE;
  /** The bounds of a calculation: values. -1: none. */
  minAt = NONE;
  maxAt = NONE;
  /** The backoff of a message: u8 count, count × u32. */
  backoffAt = NONE;
  /** The keys of an undelivered message: u16 count, count × (u32 length, key). */
  undeliveredAt = NONE;
  /** Of a message of a named queue: u8 priority, f64 retention, then the name: u32 length, text. */
  priorityAt = NONE;
  /** The deduplication key of a message: u32 length, text. -1: none. */
  deduplicationAt = NONE;
  /** The commit completes the key from this offset on. -1: the key is complete. */
  completedFrom = NONE;

  /** Reads the record at `at` and the PATCHES behind it. Returns where the next record starts. */
  read(buf: Buffer, at: number, end: number): number {
    const first = buf[at++];
    const op = (first & ~RELATIVE) as Op;
    this.op = op;
    this.relative = op !== first;
    if (this.relative && !TIMED.includes(op)) throw unknown(`record ${first}`);
    this.keyStart = NONE;
    this.timeAt = NONE;
    this.completedFrom = NONE;
    switch (op) {
      case OP_END:
        return at;
      case OP_SET: {
        const flags = this.readFlags(buf[at++], SET_FLAGS);
        if (flags & EXPIRES) at = this.readTime(at);
        this.valueAt = this.readKey(buf, at);
        at = skipValue(buf, this.valueAt);
        if (flags & SUFFIXED) this.completedFrom = this.keyEnd - this.keyStart;
        break;
      }
      case OP_DELETE:
        at = this.readKey(buf, at);
        break;
      case OP_SUM:
      case OP_MIN:
      case OP_MAX:
        this.valueAt = this.readKey(buf, at);
        at = skipValue(buf, this.valueAt);
        break;
      case OP_CALCULATE:
        at = this.readCalculation(buf, at);
        break;
      case OP_APPEND:
        if (this.readFlags(buf[at++], APPEND_FLAGS) & APPEND_EXPIRES) at = this.readTime(at);
        this.valueAt = this.readKey(buf, at);
        at = skipSized(buf, this.valueAt);
        break;
      case OP_SET_EXPIRY:
        if (this.readFlags(buf[at++], SET_EXPIRY_FLAGS) & SET_EXPIRY_EXPIRES)
          at = this.readTime(at);
        at = this.readKey(buf, at);
        break;
      case OP_CHECK: {
        const present = this.readFlags(buf[at++], PRESENT) !== 0;
        this.stampAt = present ? at : NONE;
        return this.readKey(buf, present ? at + STAMP_BYTES : at);
      }
      case OP_CHECK_RANGE:
        return this.readRange(buf, at);
      case OP_TELL:
        this.readFlags(buf[at++], TELL_VALUES);
        return at;
      case OP_ENQUEUE:
      case OP_ENQUEUE_NAMED:
        at = this.readMessage(buf, at, op === OP_ENQUEUE_NAMED);
        break;
      case OP_PATCHES:
        throw unknown("PATCHES without a record");
      default:
        throw unknown(`record ${op satisfies never}`);
    }
    return at < end && buf[at] === OP_PATCHES ? this.readPatches(buf, at) : at;
  }

  private readFlags(flags: number, known: number): number {
    if (flags & ~known) throw unknown(`flag of record ${this.op}: ${flags}`);
    this.flags = flags;
    return flags;
  }

  private readTime(at: number): number {
    this.timeAt = at;
    return at + TIME_BYTES;
  }

  private readKey(buf: Buffer, at: number): number {
    this.keyStart = at + 4;
    return (this.keyEnd = at + 4 + readU32(buf, at));
  }

  private readCalculation(buf: Buffer, at: number): number {
    this.calculation = buf[at++];
    const flags = this.readFlags(buf[at++], CALCULATE_FLAGS);
    if (flags & CALCULATE_EXPIRES) at = this.readTime(at);
    this.valueAt = this.readKey(buf, at);
    at = skipValue(buf, this.valueAt);
    this.minAt = flags & CALCULATE_MIN ? at : NONE;
    if (flags & CALCULATE_MIN) at = skipValue(buf, at);
    this.maxAt = flags & CALCULATE_MAX ? at : NONE;
    return flags & CALCULATE_MAX ? skipValue(buf, at) : at;
  }

  private readRange(buf: Buffer, at: number): number {
    at = this.readKey(buf, at);
    this.rangeStart = at + 4;
    this.rangeEnd = skipSized(buf, at);
    at = this.rangeEnd + 4;
    for (let left = readU32(buf, this.rangeEnd); left > 0; left--) {
      at = skipSized(buf, at + STAMP_BYTES);
    }
    return at;
  }

  private readMessage(buf: Buffer, at: number, named: boolean): number {
    this.backoffAt = this.readTime(at);
    this.undeliveredAt = this.backoffAt + 1 + 4 * buf[this.backoffAt];
    at = this.undeliveredAt + 2;
    let keys = buf[this.undeliveredAt] | (buf[this.undeliveredAt + 1] << 8);
    for (; keys > 0; keys--) at = skipSized(buf, at);
    if (named) {
      this.priorityAt = at;
      at = skipSized(buf, at + 1 + TIME_BYTES);
      const deduplicates = buf[at++] === 1;
      this.deduplicationAt = deduplicates ? at : NONE;
      if (deduplicates) at = skipSized(buf, at);
    }
    this.valueAt = at;
    return skipSized(buf, at);
  }

  private readPatches(buf: Buffer, at: number): number {
    let patch = at + 5;
    for (let left = readU32(buf, at + 1); left > 0; left--, patch += PATCH_BYTES) {
      if (buf[patch] !== IN_KEY) continue;
      const offset = readU32(buf, patch + 1);
      if (this.completedFrom < 0 || offset < this.completedFrom) this.completedFrom = offset;
    }
    return patch;
  }
}

function unknown(what: string): Error {
  return new Error(`a write has an unknown ${what}; please report this`);
}

/** The position after bytes with their length. */
function skipSized(buf: Buffer, at: number): number {
  return at + 4 + readU32(buf, at);
}

/** The position after a value: its encoding, its length, its bytes. */
function skipValue(buf: Buffer, at: number): number {
  return skipSized(buf, at + 1);
}
