/**
 * List cursors: URL-safe base64, with padding, of an entry's encoded key without the bytes that
 * every key of the selector begins with. They equal Deno KV's byte for byte, except for one that is
 * empty in Deno. A cursor is the same string forward and in reverse.
 */

import { invalid } from "../model/errors";
import { Buffer } from "node:buffer";
import { typeName } from "./key";
import { printGiven } from "./key-text";

/**
 * The cursor of a key that is itself all that the selector's keys share: of the start of a range, when
 * the end extends it. Deno KV's is empty, which means "from the beginning". A zero follows no whole
 * key.
 */
const CURSOR_OF_START = "AA==";

/** The cursor of the key at [start, end), whose first `common` bytes the selector's keys share. */
export function encodeCursor(buf: Buffer, start: number, end: number, common: number): string {
  const from = start + common;
  return from >= end ? CURSOR_OF_START : textOf(buf, from, end);
}

function textOf(buf: Buffer, from: number, end: number): string {
  const text = Buffer.from(buf.buffer, buf.byteOffset + from, end - from).toString("base64url");
  const rest = text.length & 3;
  return rest === 0 ? text : rest === 2 ? `${text}==` : `${text}=`;
}

/** Whether these bytes of a cursor are those of {@link CURSOR_OF_START}, where the common bytes are a key. */
export function isOfStart(rest: Uint8Array): boolean {
  return rest.length === 1 && rest[0] === 0;
}

/**
 * The bytes that follow the common prefix. Only output of `encodeCursor` is accepted: TypeError
 * "invalid cursor" for another alphabet, missing or wrong padding, stray bits or anything that is
 * not base64.
 */
export function decodeCursor(cursor: unknown): Buffer {
  if (typeof cursor !== "string") {
    throw invalid(
      `serde_v8 error: invalid type; expected: string, got: ${typeName(cursor)}: the cursor is ` +
        `${printGiven(cursor)}; pass on that of an earlier page`,
    );
  }
  const bytes = Buffer.from(cursor, "base64url");
  // The decoder skips what it does not know; writing the bytes again shows whether it skipped
  // anything.
  if (textOf(bytes, 0, bytes.length) !== cursor) {
    throw invalid(
      `invalid cursor: received ${printGiven(cursor)}; pass on that of an earlier page`,
    );
  }
  return bytes;
}

/**
 * The length of the common beginning of `a` and `b`, which cursors of a start/end selector omit.
 */
export function commonLength(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a[i] === b[i]) i++;
  return i;
}
