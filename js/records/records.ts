// Duty: writes the parts of records, as js/native/contract.md describes them, with the checks that
// encoded bytes allow. Rust checks every limit again; here they bound memory.
// Invariant: a function that throws may leave bytes behind; its caller removes them.

import { invalid, misuse, tooLarge, codeOf } from "../model/errors.js";
import { atCommit } from "../arguments/at-commit.js";
import type { Limits, QueueOptions } from "../arguments/check.js";
import { overLimit, shown, wrongShape } from "../arguments/check.js";
import type { Expiry } from "../arguments/expiry-options.js";
import { encodeKey, encodeKeyParts, noKey } from "../codec/key.js";
import { encodeCbor, encodeValue } from "../codec/value/encode.js";
import type { Writer } from "../codec/writer.js";
import { OP_DEDUPLICATE, SET_EXPIRY_REQUIRED, STAMP_BYTES, SUFFIXED } from "../native/contract.js";
import {
  putCheckHead,
  putEnqueueHead,
  putEnqueueNamedHead,
  putEnqueueNamedTail,
  putSetExpiryHead,
  putSetHead,
} from "./layout.js";
import { printGiven, printKey } from "../codec/key-text.js";
import { IN_KEY, IN_MESSAGE, IN_VALUE, endPlace } from "./patches.js";
import type { KvKey } from "../model/types.js";
import { isTypeError } from "../model/brands.js";

/**
 * Placeholder for the versionstamp of the commit. One for each thread; a symbol with the same
 * description is different.
 */
export const COMMIT_VERSIONSTAMP = Symbol("KvCommitVersionstamp");

/** Starts a SET; its key ({@link putSetKey}) and value follow. */
export function putSet(writer: Writer, key: KvKey, { afterMs, atMs }: Expiry): void {
  putSetHead(writer, isSuffixed(key) ? SUFFIXED : 0, afterMs, atMs);
}

/** The key of a SET, without the symbol that sets SUFFIXED. */
export function putSetKey(writer: Writer, key: KvKey, limits: Limits): void {
  if (!isSuffixed(key)) {
    putKey(writer, key, limits);
    return;
  }
  const at = writer.pos;
  writer.u32(0);
  encodeKeyParts(writer, key, key.length - 1);
  endKey(writer, at, key, limits);
}

/** Whether the commit appends its versionstamp to the key. */
export function isSuffixed(key: KvKey): boolean {
  return Array.isArray(key) && key.length > 0 && key[key.length - 1] === COMMIT_VERSIONSTAMP;
}

/** A key after its length. */
export function putKey(writer: Writer, key: KvKey, limits: Limits): void {
  const at = writer.pos;
  writer.u32(0);
  // Deno's text for a write without a key.
  if (key == null)
    throw invalid(`Cannot read properties of ${key} (reading 'length'): ${noKey(key)}`);
  try {
    encodeKey(writer, key);
  } catch (error) {
    if (isTypeError(error) && codeOf(error) === "TOO_LARGE") {
      throw tooLarge(`Invalid mutation: ${error.message}`);
    }
    throw error;
  }
  endKey(writer, at, key, limits);
}

function endKey(writer: Writer, at: number, key: KvKey, limits: Limits): void {
  const length = writer.pos - at - 4;
  if (length > limits.keyBytesMax) {
    throw overLimit("Key too large for write", "keyBytesMax", limits, length, key);
  }
  writer.patchU32(at, length);
  if (writer.marks !== null) endPlace(writer, IN_KEY);
}

/**
 * A value: u8 encoding, u32 length, bytes. Contents that are still to come have their room; they
 * are in `writer.fills`, with offsets in `writer.buf`.
 */
export function putValue(writer: Writer, key: KvKey, value: unknown, limits: Limits): void {
  const at = writer.pos;
  writer.u8(0);
  writer.u32(0);
  let encoding: number;
  try {
    encoding = encodeValue(writer, value, limits.valueBytesMax);
  } catch (error) {
    throw tellKey(error, key);
  }
  writer.buf[at] = encoding;
  endValue(writer, at + 1, IN_VALUE);
}

/** Adds the key and the option to an error of the encoder about the size. */
function tellKey(error: unknown, key: KvKey): unknown {
  if (!isTypeError(error) || codeOf(error) !== "TOO_LARGE") return error;
  return atCommit(
    tooLarge(
      `${error.message} for key ${printKey(key)}; raise limits.valueBytesMax of openKv to allow it`,
    ),
  );
}

/** Items for a stored array: u32 length, CBOR. */
export function putItems(
  writer: Writer,
  key: KvKey,
  items: readonly unknown[],
  limits: Limits,
): void {
  const at = writer.pos;
  writer.u32(0);
  try {
    encodeCbor(writer, items, limits.valueBytesMax);
  } catch (error) {
    throw tellKey(error, key);
  }
  endValue(writer, at, IN_VALUE);
}

function endValue(writer: Writer, at: number, place: number): void {
  const start = at + 4;
  if (writer.marks !== null) endPlace(writer, place);
  writer.patchU32(at, writer.pos - start);
  if (writer.fills !== null) for (const fill of writer.fills) fill.offset += start;
}

/** A condition. The stamp is twenty hexadecimal digits, or null for "no entry". */
export function putCheck(writer: Writer, key: KvKey, versionstamp: unknown, limits: Limits): void {
  if (versionstamp != null) {
    if (typeof versionstamp !== "string") {
      const received = `the versionstamp is ${printGiven(versionstamp)}`;
      throw wrongShape(
        "string",
        versionstamp,
        `${received}; use that of an entry, or null for none`,
      );
    }
    if (!isStamp(versionstamp)) {
      throw invalid(
        "Invalid check: the versionstamp must be 20 hexadecimal digits, those of an entry, or null for " +
          `no entry: received ${shown(versionstamp)}`,
      );
    }
  }
  putCheckHead(writer, versionstamp ?? null);
  if (!Array.isArray(key)) {
    throw wrongShape("array", key, noKey(key));
  }
  putFixedKey(writer, key, limits, "check");
}

/** A key that must not contain a placeholder. */
function putFixedKey(writer: Writer, key: KvKey, limits: Limits, what: string): void {
  putKey(writer, key, limits);
  if (writer.patches === null) return;
  throw misuse(`The key of a ${what} cannot have a KvUuidV7: no entry can have it yet`);
}

/** A new expiry, or none. */
export function putSetExpiry(
  writer: Writer,
  key: KvKey,
  { afterMs, atMs }: Expiry,
  required: boolean,
  limits: Limits,
): void {
  putSetExpiryHead(writer, required ? SET_EXPIRY_REQUIRED : 0, afterMs, atMs);
  putKey(writer, key, limits);
}

/** The frame of TTL: the key without its length. */
export function putTtl(writer: Writer, key: KvKey, limits: Limits): void {
  encodeKey(writer, key);
  if (writer.pos === 0) throw invalid("key cannot be empty");
  if (writer.pos > limits.keyBytesMax) {
    throw overLimit("Key too large for read", "keyBytesMax", limits, writer.pos, key);
  }
}

/** Whether it is twenty hexadecimal digits. */
export function isStamp(text: string): boolean {
  if (text.length !== STAMP_BYTES) return false;
  for (let i = 0; i < STAMP_BYTES; i++) {
    const unit = text.charCodeAt(i);
    const digit = unit >= 0x30 && unit <= 0x39;
    const letter = (unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x66;
    if (!digit && !letter) return false;
  }
  return true;
}

/** A message up to its value, which {@link putMessage} writes. */
export function putEnqueue(
  writer: Writer,
  { delayMs, atMs, backoffMs, keysIfUndelivered, named }: QueueOptions,
  limits: Limits,
): void {
  const most = limits.undeliveredKeysMax;
  const keys = keysIfUndelivered.length;
  if (keys > most) {
    throw overLimit("Too many keysIfUndelivered", "undeliveredKeysMax", limits, keys);
  }
  const afterMs = atMs === undefined ? delayMs : undefined;
  if (named === undefined) putEnqueueHead(writer, afterMs, atMs, backoffMs, keys);
  else putEnqueueNamedHead(writer, afterMs, atMs, backoffMs, keys);
  for (const key of keysIfUndelivered) putFixedKey(writer, key, limits, "dead letter");
  if (named === undefined) return;
  const { priority, queue, deduplicationKey } = named;
  putEnqueueNamedTail(writer, priority, named.deadRetentionMs ?? -1, queue, deduplicationKey);
}

/**
 * A message's value: u32 length, CBOR; and what the message does if its key is taken. `context` are bytes that
 * are put before the value, if there is room.
 */
export function putMessage(
  writer: Writer,
  value: unknown,
  { named }: QueueOptions,
  limits: Limits,
  context: Buffer | null = null,
): void {
  const at = writer.pos;
  writer.u32(0);
  try {
    encodeCbor(writer, value, limits.messageBytesMax);
  } catch (error) {
    if (isTypeError(error) && codeOf(error) === "TOO_LARGE") {
      const words = error.message.replace("Value too large", "enqueue payload too large");
      throw atCommit(tooLarge(`${words}; raise limits.messageBytesMax of openKv to allow it`));
    }
    throw error;
  }
  const bytes = writer.pos - at - 4;
  // What the handler or the caller requested is never left out: the addon refuses a message that is too large with it.
  const isNeeded =
    named?.timeoutMs !== undefined ||
    named?.keepResultMs !== undefined ||
    named?.group !== undefined;
  if (context !== null && (isNeeded || bytes + context.length <= limits.messageBytesMax)) {
    putBefore(writer, at + 4, context);
  }
  endValue(writer, at, IN_MESSAGE);
  if (named === undefined || named.deduplication === 0) return;
  writer.u8(OP_DEDUPLICATE);
  writer.u8(named.deduplication);
}

/** Puts bytes before the value that begins at `at` and was written last. */
function putBefore(writer: Writer, at: number, bytes: Buffer): void {
  const { length } = bytes;
  writer.ensure(length);
  writer.buf.copyWithin(at + length, at, writer.pos);
  writer.buf.set(bytes, at);
  writer.pos += length;
  for (const place of [...(writer.marks ?? []), ...(writer.fills ?? [])]) place.offset += length;
}
