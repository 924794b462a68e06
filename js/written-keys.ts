// Duty: which keys the records of encoded writes change and check, read back from their bytes.
// The layout of the records is that of js/native/contract.md.

import { readU32 } from "./frame.js";
import {
  APPEND_EXPIRES,
  CALCULATE_EXPIRES,
  EXPIRES,
  OP_APPEND,
  OP_CALCULATE,
  OP_CHECK,
  OP_CHECK_RANGE,
  OP_DELETE,
  OP_ENQUEUE,
  OP_ENQUEUE_NAMED,
  OP_END,
  OP_MAX,
  OP_MIN,
  OP_PATCHES,
  OP_RETIME,
  OP_SET,
  OP_SUM,
  OP_TELL,
  STAMP_BYTES,
  SUFFIXED,
} from "./native.js";
import { IN_KEY } from "./patches.js";

/** Told of the keys in `buf`, in the order of the records. */
export interface KeyVisitor {
  /** The key `buf[start..end)` is changed. */
  changes(buf: Buffer, start: number, end: number): void;
  /** A key that begins with `buf[start..end)` is changed; the commit completes it. */
  completes(buf: Buffer, start: number, end: number): void;
  /** The key `buf[start..end)` is checked. */
  checks(buf: Buffer, start: number, end: number): void;
  /** The keys from `buf[start..startEnd)` to `buf[end..endEnd)` are checked. */
  checksRange(buf: Buffer, start: number, startEnd: number, end: number, endEnd: number): void;
}

/** Bytes of one entry of a PATCHES record: its place, its offset, its placeholder. */
const PATCH_BYTES = 1 + 4 + 8;

/** Visits the keys of the whole records in `buf[at..end)`. */
export function visitKeys(buf: Buffer, at: number, end: number, visitor: KeyVisitor): void {
  while (at < end) {
    const op = buf[at++];
    let keyAt = -1;
    let flags = 0;
    switch (op) {
      case OP_END:
        continue;
      case OP_SET:
        flags = buf[at++];
        if (flags & EXPIRES) at += 8;
        keyAt = at;
        at = skipValue(buf, skipSized(buf, at));
        break;
      case OP_DELETE:
        keyAt = at;
        at = skipSized(buf, at);
        break;
      case OP_SUM:
      case OP_MIN:
      case OP_MAX:
        keyAt = at;
        at = skipValue(buf, skipSized(buf, at));
        break;
      case OP_CALCULATE: {
        const bounds = buf[at + 1];
        at += bounds & CALCULATE_EXPIRES ? 10 : 2;
        keyAt = at;
        at = skipValue(buf, skipSized(buf, at));
        if (bounds & 1) at = skipValue(buf, at);
        if (bounds & 2) at = skipValue(buf, at);
        break;
      }
      case OP_APPEND:
        at += buf[at] & APPEND_EXPIRES ? 9 : 1;
        keyAt = at;
        at = skipSized(buf, skipSized(buf, at));
        break;
      case OP_RETIME:
        at += buf[at] & EXPIRES ? 9 : 1;
        keyAt = at;
        at = skipSized(buf, at);
        break;
      case OP_CHECK: {
        at += buf[at] === 1 ? 1 + STAMP_BYTES : 1;
        const start = at + 4;
        at = skipSized(buf, at);
        visitor.checks(buf, start, at);
        continue;
      }
      case OP_CHECK_RANGE: {
        const start = at + 4;
        const startEnd = skipSized(buf, at);
        const rangeEnd = skipSized(buf, startEnd);
        visitor.checksRange(buf, start, startEnd, startEnd + 4, rangeEnd);
        at = rangeEnd + 4;
        for (let left = readU32(buf, rangeEnd); left > 0; left--) {
          at = skipSized(buf, at + STAMP_BYTES);
        }
        continue;
      }
      case OP_TELL:
        at++;
        continue;
      case OP_ENQUEUE:
      case OP_ENQUEUE_NAMED:
        at = skipMessage(buf, at, op === OP_ENQUEUE_NAMED);
        break;
      default:
        throw new Error(`an unknown record ${op} in a write; please report this`);
    }
    let completedFrom = flags & SUFFIXED ? readU32(buf, keyAt) : -1;
    if (at < end && buf[at] === OP_PATCHES) {
      let patch = at + 5;
      for (let left = readU32(buf, at + 1); left > 0; left--, patch += PATCH_BYTES) {
        if (buf[patch] !== IN_KEY) continue;
        const offset = readU32(buf, patch + 1);
        if (completedFrom < 0 || offset < completedFrom) completedFrom = offset;
      }
      at = patch;
    }
    if (keyAt < 0) continue;
    const start = keyAt + 4;
    if (completedFrom < 0) visitor.changes(buf, start, start + readU32(buf, keyAt));
    else visitor.completes(buf, start, start + completedFrom);
  }
}

/** Behind bytes with their length. */
function skipSized(buf: Buffer, at: number): number {
  return at + 4 + readU32(buf, at);
}

/** Behind a value: its encoding, its length, its bytes. */
function skipValue(buf: Buffer, at: number): number {
  return skipSized(buf, at + 1);
}

/** Behind the rest of a message's record. */
function skipMessage(buf: Buffer, at: number, named: boolean): number {
  at += 8;
  at += 1 + 4 * buf[at];
  const keys = buf[at] | (buf[at + 1] << 8);
  at += 2;
  for (let left = keys; left > 0; left--) at = skipSized(buf, at);
  if (named) {
    at = skipSized(buf, at + 1 + 8);
    at = buf[at] === 1 ? skipSized(buf, at + 1) : at + 1;
  }
  return skipSized(buf, at);
}
