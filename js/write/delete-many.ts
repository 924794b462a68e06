// Duty: deleteMany: deletes entries by their keys, or by a range and a filter, without reading them
// into JavaScript.

import { invalid } from "../model/errors.js";
import { call } from "../session/call.js";
import { checkOptions, requireSelector, shown } from "../arguments/check.js";
import { Writer } from "../codec/writer.js";
import { putSized, readStamp } from "../native/frame.js";
import { CALL_DELETE_MANY, DELETE_ATOMIC, DELETE_KEYS, SCAN_WHERE } from "../native/contract.js";
import { boundsOf, checkDeletion, refuseUndefined } from "../read/range.js";
import { putKey } from "../records/records.js";
import type { Session } from "../session/session.js";
import { Touched } from "../records/touched.js";
import type { KvKey, KvListSelector } from "../model/types.js";
import { encodeWhere } from "../read/where.js";

const OPTIONS = ["where", "limit", "atomic", "descendants", "signal"] as const;
/** Options that restrict a deletion. */
const NARROWING = ["where", "limit"] as const;
/** The limit that means no limit. */
const NO_LIMIT = 0xffffffff;

export async function deleteMany(
  session: Session,
  which: readonly KvKey[] | KvKey | KvListSelector,
  options: unknown,
  signal?: AbortSignal,
): Promise<{ count: number; versionstamp: string | null }> {
  const given = checkOptions("kv.deleteMany", options, OPTIONS);
  for (const name of NARROWING) refuseUndefined("kv.deleteMany", given, name);
  const { where, limit, atomic, descendants } = given;
  if (limit !== undefined && !(isCount(limit) && limit < NO_LIMIT)) {
    throw invalid(`kv.deleteMany: limit must be a positive integer: received ${shown(limit)}`);
  }
  if (atomic !== undefined && typeof atomic !== "boolean") {
    throw invalid(`kv.deleteMany: atomic must be a boolean: received ${shown(atomic)}`);
  }
  if (descendants !== undefined && typeof descendants !== "boolean") {
    throw invalid(`kv.deleteMany: descendants must be a boolean: received ${shown(descendants)}`);
  }
  const filter = encodeWhere("kv.deleteMany", where);
  const ofOneKey = descendants === true;
  requireSelector("kv.deleteMany", ofOneKey ? "a key" : "keys or a selector", which);
  const byKeys = Array.isArray(which) && !ofOneKey;
  const frame = new Writer(256);
  frame.u8(
    (byKeys ? DELETE_KEYS : 0) |
      (atomic === true ? DELETE_ATOMIC : 0) |
      (filter === null ? 0 : SCAN_WHERE),
  );
  frame.u32((limit as number | undefined) ?? NO_LIMIT);
  if (filter !== null) putSized(frame, filter);
  const touched = new Touched();
  if (byKeys) {
    const keys = which as readonly KvKey[];
    const count = keys.length;
    frame.u32(count);
    for (let i = 0; i < count; i++) {
      if (!Array.isArray(keys[i])) {
        throw invalid(
          `kv.deleteMany: keys[${i}] must be a key (an array): received ${shown(keys[i])}`,
        );
      }
      if (keys[i].length === 0) throw invalid(`kv.deleteMany: keys[${i}] cannot be empty`);
      const at = frame.pos + 4;
      putKey(frame, keys[i], session.limits);
      touched.changes(frame.buf, at, frame.pos);
    }
  } else {
    const { start, end } = ofOneKey
      ? subtreeOf(which, session.limits.rangeKeyBytesMax)
      : boundsOf(checkDeletion("kv.deleteMany", which, OPTIONS), session.limits.rangeKeyBytesMax);
    putSized(frame, start);
    putSized(frame, end);
    touched.emptied.push({ start: start.toString("latin1"), end: end.toString("latin1") });
  }
  session.requireOpen();
  const answer = await carryOut(session, frame, touched, signal);
  return {
    count: answer.readDoubleLE(0),
    versionstamp: answer[COUNT_BYTES] === 1 ? readStamp(answer, COUNT_BYTES + 1) : null,
  };
}

/** The range of a key and of all keys that extend it. */
function subtreeOf(key: unknown, keyBytesMax: number): { start: Buffer; end: Buffer } {
  if (!Array.isArray(key)) {
    throw invalid(
      `kv.deleteMany: with descendants, expected a key (an array): received ${shown(key)}`,
    );
  }
  if (key.length === 0) {
    throw invalid(
      "kv.deleteMany: with descendants, the key cannot be empty: " +
        "deleteMany({ prefix: [] }) deletes everything",
    );
  }
  const { start, end, prefixBytes } = boundsOf(
    { prefix: key, start: undefined, end: undefined },
    keyBytesMax,
  );
  // Nothing lies between a key and the first key that extends it.
  return { start: start.subarray(0, prefixBytes), end };
}

/** Each step is a commit. Later writes that touch its keys wait for the last one. */
async function carryOut(
  session: Session,
  frame: Writer,
  touched: Touched,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const before = session.order.beforeWrite(touched);
  const held = session.order.hold(touched);
  try {
    if (before !== null) await before;
    return await call(session, CALL_DELETE_MANY, frame, signal);
  } finally {
    held.end();
  }
}

/** Bytes of the answer before the flag that says whether there is a stamp. */
const COUNT_BYTES = 8;

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}
