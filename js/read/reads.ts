// Duty: get and getMany. First the synchronous lane, on the held snapshot; when it refuses (the
// turn's budget is spent, the answer does not fit), the batch of the asynchronous lane.
// Invariant: between encoding a request into the scratch and decoding its answer no user code runs.

import { invalid } from "../model/errors.js";
import { checkReadOptions, noKeys, overLimit } from "../arguments/check.js";
import { decodeKey, encodeKey, noKey } from "../codec/key.js";
import { decodeValue } from "../codec/value/decode.js";
import { option } from "../arguments/options.js";
import { Writer } from "../codec/writer.js";
import { readStamp, readU32 } from "../native/frame.js";
import {
  EVENTUAL,
  MISS,
  POINT_HEAD_BYTES,
  RANGE_HEAD_BYTES,
  STAMP_BYTES,
  TOGETHER,
  TOO_LARGE,
} from "../native/contract.js";
import { NativePromise } from "../model/native-promise.js";
import type { Session } from "../session/session.js";
// A key that could be encoded for a read has no symbols and placeholders: it is a KvEntryKey.
import type { KvConsistencyLevel, KvEntryKey, KvEntryMaybe, KvKey } from "../model/types.js";

interface ReadOptions {
  consistency?: KvConsistencyLevel | undefined;
}

/**
 * The entry, when the synchronous lane has it. Undefined: call {@link getLater} with the same key
 * before anything else happens; the encoded key is still in the scratch.
 */
export function getNow(
  session: Session,
  key: KvKey,
  options: ReadOptions | null | undefined,
): KvEntryMaybe<unknown> | undefined {
  if (options != null) checkReadOptions(options);
  const here = !session.replica || freshness(session, options) !== 0;
  const writer = session.port.begin();
  const use = session.port.uses;
  const plain = encodeKey(writer, requireKey(key));
  if (use !== session.port.uses) restoreKey(session, key);
  const own = plain ? null : decodeKey(writer.buf, 0, writer.pos);
  if (writer.pos >= session.limits.rangeKeyBytesMax) throw keyTooLarge(session, writer.pos, key);
  session.requireOpen();
  if (session.order.underWay !== 0 && session.order.beforeKey(writer.buf, 0, writer.pos) !== null) {
    return undefined;
  }
  return here ? readNow(session, key, own) : undefined;
}

/** Reads the key in the scratch; `own` is a copy of `key`, if there is one already. */
function readNow(
  session: Session,
  key: KvKey,
  own: KvEntryKey | null,
): KvEntryMaybe<unknown> | undefined {
  const { port } = session;
  if (session.spent || !port.fits) return undefined;
  session.hold(1);
  const { buf, pos } = port.writer;
  const answer = port.native.get(session.lane, pos);
  if (answer >= 0) {
    const value = valueOf(buf, pos, answer);
    const versionstamp = readStamp(buf, pos);
    // Last: copying an array can run a getter, and that can use the scratch.
    return { key: own ?? (key.slice() as KvEntryKey), value, versionstamp };
  }
  if (answer === MISS) return { key: key as KvEntryKey, value: null, versionstamp: null };
  session.refused(answer);
  if (answer === TOO_LARGE) port.grow();
  return undefined;
}

/**
 * Gets the key that {@link getNow} has left in the scratch, in the next turn or in the other lane.
 */
export async function getLater(
  session: Session,
  key: KvKey,
  options: ReadOptions | null | undefined,
): Promise<KvEntryMaybe<unknown>> {
  const { port } = session;
  const own = decodeKey(port.writer.buf, 0, port.writer.pos);
  const before = session.order.beforeKey(port.writer.buf, 0, port.writer.pos);
  const flags = freshness(session, options);
  const here = session.answers(flags);
  if (before !== null && flags !== EVENTUAL) {
    await before;
    session.requireOpen();
    encodeKey(port.begin(), own);
    const entry = here ? readNow(session, key, own) : undefined;
    if (entry !== undefined) return entry;
  }
  for (let turn = here ? session.nextTurn() : null; turn !== null; turn = session.nextTurn()) {
    await turn;
    session.requireOpen();
    if (session.spent) continue;
    encodeKey(port.begin(), own);
    const entry = readNow(session, key, own);
    if (entry !== undefined) return entry;
  }
  encodeKey(port.begin(), own);
  const batch = session.joinRead();
  const index = batch.point(port.writer.buf, 0, port.writer.pos, flags);
  await batch.arrived;
  return pointAnswer(batch.data, batch.start(index), own, key);
}

/** The flags for the consistency that a remote database must keep. */
function freshness(session: Session, options: ReadOptions | null | undefined): number {
  if (!session.hasFlags) return 0;
  return session.freshness(options == null ? undefined : option(options, "consistency"));
}

/**
 * After a getter in the key has used the scratch: encodes into another buffer, then copies the
 * bytes.
 */
function restoreKey(session: Session, key: KvKey): void {
  const aside = new Writer();
  encodeKey(aside, key);
  session.port.begin().bytes(aside.buf.subarray(0, aside.pos));
}

/** As {@link getNow}, for several keys in one snapshot. */
export function getManyNow(
  session: Session,
  keys: readonly KvKey[],
  options: ReadOptions | null | undefined,
): KvEntryMaybe<unknown>[] | undefined {
  if (options != null) checkReadOptions(options);
  if (!Array.isArray(keys)) throw noKeys("kv.getMany", keys);
  const here = !session.replica || freshness(session, options) !== 0;
  // Read once, because a getter of a key can change the array.
  const count = keys.length;
  const plain = encodeKeys(session, keys, count);
  session.requireOpen();
  if (count === 0) return [];
  if (session.order.underWay !== 0 && beforeKeys(session, session.port.writer) !== null) {
    return undefined;
  }
  return here ? readManyNow(session, keys, count, plain) : undefined;
}

/**
 * Reads the first `count` keys, which are in the scratch; `plain`: copies of the given arrays are
 * what they decode to.
 */
function readManyNow(
  session: Session,
  keys: readonly KvKey[],
  count: number,
  plain: boolean,
): KvEntryMaybe<unknown>[] | undefined {
  const { port } = session;
  if (session.spent || !port.fits) return undefined;
  session.hold(count);
  const { buf, pos } = port.writer;
  const answer = session.native.getMany(count, pos);
  if (answer >= 0) return manyAnswer(buf, pos, keys, count, plain);
  session.refused(answer);
  // This request takes the other lane; the next one of its size has room.
  if (answer === TOO_LARGE) port.grow();
  return undefined;
}

/**
 * Encodes u32 length and key of each of the first `count` keys at the start of the scratch. True if
 * all are plain: a copy of the array is what the bytes decode to.
 */
function encodeKeys(session: Session, keys: readonly KvKey[], count: number): boolean {
  if (count > session.limits.rangesMax) {
    throw overLimit("Too many ranges", "rangesMax", session.limits, count);
  }
  const { port } = session;
  const writer = port.begin();
  const use = port.uses;
  let plain = true;
  for (let i = 0; i < count; i++) {
    const at = writer.pos;
    writer.u32(0);
    if (!encodeKey(writer, requireKey(keys[i]))) plain = false;
    if (use !== port.uses) {
      encodeKeysAside(session, keys, count);
      return false;
    }
    endKey(session, writer, at, keys[i]);
  }
  return plain;
}

/** The promise that a read of the keys in `frame` waits for; null if it need not wait. */
export function beforeKeys(session: Session, frame: Writer): Promise<unknown> | null {
  if (session.order.underWay === 0) return null;
  const found: Promise<unknown>[] = [];
  for (let at = 0; at < frame.pos; ) {
    const start = at + 4;
    at = start + readU32(frame.buf, at);
    const before = session.order.beforeKey(frame.buf, start, at);
    if (before !== null) found.push(before);
  }
  return found.length === 0 ? null : NativePromise.all(found);
}

/** As {@link restoreKey}. */
function encodeKeysAside(session: Session, keys: readonly KvKey[], count: number): void {
  const aside = new Writer();
  for (let i = 0; i < count; i++) putKey(session, aside, keys[i]);
  session.port.begin().bytes(aside.buf.subarray(0, aside.pos));
}

/** Appends u32 length and key. */
export function putKey(session: Session, writer: Writer, key: KvKey): void {
  const at = writer.pos;
  writer.u32(0);
  encodeKey(writer, key);
  endKey(session, writer, at, key);
}

function endKey(session: Session, writer: Writer, at: number, key: KvKey): void {
  const length = writer.pos - at - 4;
  if (length >= session.limits.rangeKeyBytesMax) throw keyTooLarge(session, length, key);
  writer.patchU32(at, length);
}

/** As {@link getLater}, for the keys that {@link getManyNow} has left in the scratch. */
export async function getManyLater(
  session: Session,
  keys: readonly KvKey[],
  options: ReadOptions | null | undefined,
): Promise<KvEntryMaybe<unknown>[]> {
  const { port } = session;
  const { writer } = port;
  const given = keys.slice();
  const own: KvEntryKey[] = [];
  for (let at = 0; at < writer.pos; ) {
    const start = at + 4;
    at = start + readU32(writer.buf, at);
    own.push(decodeKey(writer.buf, start, at));
  }
  const before = beforeKeys(session, writer);
  // After the keys are out of the scratch: reading an option can run a getter.
  let flags = freshness(session, options);
  const here = session.answers(flags);
  if (before !== null && flags !== EVENTUAL) {
    await before;
    session.requireOpen();
    encodeKeys(session, own, own.length);
    const entries = here ? readManyNow(session, given, own.length, false) : undefined;
    if (entries !== undefined) return entries;
  }
  for (let turn = here ? session.nextTurn() : null; turn !== null; turn = session.nextTurn()) {
    await turn;
    session.requireOpen();
    if (session.spent) continue;
    encodeKeys(session, own, own.length);
    const entries = readManyNow(session, given, own.length, false);
    if (entries !== undefined) return entries;
  }
  encodeKeys(session, own, own.length);
  const batch = session.joinRead();
  let last = 0;
  for (let at = 0; at < writer.pos; ) {
    const start = at + 4;
    at = start + readU32(writer.buf, at);
    last = batch.point(writer.buf, start, at, flags);
    if (session.hasFlags) flags |= TOGETHER;
  }
  await batch.arrived;
  const first = last + 1 - own.length;
  return own.map((key, i) => pointAnswer(batch.data, batch.start(first + i), key, given[i]));
}

function manyAnswer(
  buf: Buffer,
  at: number,
  keys: readonly KvKey[],
  count: number,
  plain: boolean,
): KvEntryMaybe<unknown>[] {
  const entries: KvEntryMaybe<unknown>[] = [];
  // The keys were encoded before the answers: [0, at) still holds them.
  let keyAt = 0;
  for (let i = 0; i < count; i++) {
    const keyStart = keyAt + 4;
    keyAt = keyStart + readU32(buf, keyAt);
    const row = at + 4;
    const rowLength = readU32(buf, at);
    at = row + rowLength;
    entries.push(
      rowLength === 0
        ? { key: keys[i] as KvEntryKey, value: null, versionstamp: null }
        : {
            key: plain ? (keys[i] as KvEntryKey) : decodeKey(buf, keyStart, keyAt),
            value: valueOf(buf, row, rowLength),
            versionstamp: readStamp(buf, row),
          },
    );
  }
  // Last: copying an array can run a getter, and that can use the scratch.
  for (let i = 0; plain && i < entries.length; i++) {
    if (entries[i].versionstamp !== null) entries[i].key = entries[i].key.slice();
  }
  return entries;
}

/**
 * The entry in a point answer (a range answer of at most one row without key) at `at`: with the
 * key `own` when there is one, with the caller's own array when there is none.
 */
export function pointAnswer(
  data: Buffer,
  at: number,
  own: KvEntryKey,
  given: KvKey,
): KvEntryMaybe<unknown> {
  if (readU32(data, at) === 0) return { key: given as KvEntryKey, value: null, versionstamp: null };
  const row = at + RANGE_HEAD_BYTES + 4 + readU32(data, at + RANGE_HEAD_BYTES);
  const start = row + POINT_HEAD_BYTES + 4;
  const end = start + readU32(data, row + POINT_HEAD_BYTES);
  return {
    key: own,
    value: decodeValue(data[row + STAMP_BYTES], data, start, end),
    versionstamp: readStamp(data, row),
  };
}

/** The value of an answer `stamp encoding value` that is `length` bytes long. */
function valueOf(buf: Buffer, at: number, length: number): unknown {
  return decodeValue(buf[at + STAMP_BYTES], buf, at + POINT_HEAD_BYTES, at + length);
}

/** Deno's text for a missing key. */
export function requireKey(key: KvKey): KvKey {
  if (key == null) throw invalid(`Invalid range: ${noKey(key)}`);
  return key;
}

/** The bound of a read that ends behind a key of `bytes` bytes is one byte longer. */
export function keyTooLarge({ limits }: Session, bytes: number, key: KvKey): TypeError {
  return overLimit("Key too large for read", "rangeKeyBytesMax", limits, bytes + 1, key);
}
