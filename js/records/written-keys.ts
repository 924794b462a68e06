// Duty: reads the keys that encoded writes change and check from their records.

import { OP_CHECK, OP_CHECK_RANGE, OP_PATCHES, OP_SET, SUFFIXED } from "../native/contract.js";
import { RecordLayout } from "./layout.js";
import { NONE, firstInKey } from "./patches.js";

/** Receives the keys in `buf`, in the order of the records. */
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

/** Shared by all visits, which do not nest. */
const record = new RecordLayout();

/** Visits the keys of the whole records in `buf[at..end)`. */
export function visitKeys(buf: Buffer, at: number, end: number, visitor: KeyVisitor): void {
  while (at < end) {
    at = record.read(buf, at);
    const { op, flags, keyStart, keyEnd } = record;
    if (op === OP_CHECK_RANGE) {
      visitor.checksRange(buf, record.fromStart, record.fromEnd, record.toStart, record.toEnd);
    }
    if (keyStart < 0) continue;
    if (op === OP_CHECK) {
      visitor.checks(buf, keyStart, keyEnd);
      continue;
    }
    let complete = keyEnd - keyStart;
    let completes = op === OP_SET && (flags & SUFFIXED) !== 0;
    if (at < end && buf[at] === OP_PATCHES) {
      at = record.read(buf, at);
      const patched = firstInKey(buf, record.patchesAt);
      completes ||= patched !== NONE;
      if (patched !== NONE) complete = patched;
    }
    if (completes) visitor.completes(buf, keyStart, keyStart + complete);
    else visitor.changes(buf, keyStart, keyEnd);
  }
}
