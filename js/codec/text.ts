/**
 * UTF-8 text in and out of buffers, by the fastest means that each runtime has. Shared by keys and
 * values.
 */

import { Buffer } from "node:buffer";

/** Buffer's per-encoding methods: present in Node, Bun and Deno, absent from the typings. */
interface Slices {
  utf8Write?(text: string, offset: number, length: number): number;
  latin1Slice?(start: number, end: number): string;
  utf8Slice?(start: number, end: number): string;
}

const methods = Buffer.prototype as Buffer & Slices;
const fromCharCode = String.fromCharCode;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Writes `text` as UTF-8 at `at`; lone surrogates become U+FFFD. The room must be there. Returns
 * the bytes written.
 */
export const writeUtf8: (buf: Buffer, text: string, at: number) => number =
  typeof methods.utf8Write === "function"
    ? (buf, text, at) => (buf as Buffer & Required<Slices>).utf8Write(text, at, buf.length - at)
    : (buf, text, at) => buf.write(text, at, buf.length - at, "utf8");

/** The bytes of [start, end) as code units 0 … 255. */
export const latin1: (buf: Buffer, start: number, end: number) => string =
  typeof methods.latin1Slice === "function"
    ? (buf, start, end) => (buf as Buffer & Required<Slices>).latin1Slice(start, end)
    : (buf, start, end) => buf.toString("latin1", start, end);

const utf8: (buf: Buffer, start: number, end: number) => string =
  typeof methods.utf8Slice === "function"
    ? (buf, start, end) => (buf as Buffer & Required<Slices>).utf8Slice(start, end)
    : (buf, start, end) => buf.toString("utf8", start, end);

/** Non-ASCII text up to this many bytes is decoded by a loop here; a native call costs more. */
const LOOP_TEXT_BYTES_MAX = 64;

const units: number[] = [];

/**
 * The text at [start, end), any length. Returns null when the bytes are not UTF-8 (overlong forms,
 * surrogates and cut sequences included). Reads nothing outside the range.
 */
export function readUtf8(buf: Buffer, start: number, end: number): string | null {
  const length = end - start;
  if (length > LOOP_TEXT_BYTES_MAX) {
    const text = utf8(buf, start, end);
    // U+FFFD is what the lenient decoder writes for a fault, and also a character of its own.
    if (!text.includes("\ufffd")) return text;
    try {
      return strict.decode(buf.subarray(start, end));
    } catch {
      return null;
    }
  }
  let n = 0;
  let at = start;
  while (at < end) {
    const a = buf[at++];
    if (a < 0x80) {
      units[n++] = a;
      continue;
    }
    if (a < 0xc2 || a > 0xf4) return null;
    const more = a < 0xe0 ? 1 : a < 0xf0 ? 2 : 3;
    if (at + more > end) return null;
    const b = buf[at++];
    if ((b & 0xc0) !== 0x80) return null;
    if (more === 1) {
      units[n++] = ((a & 0x1f) << 6) | (b & 0x3f);
      continue;
    }
    const c = buf[at++];
    if ((c & 0xc0) !== 0x80) return null;
    if (more === 2) {
      const code = ((a & 0x0f) << 12) | ((b & 0x3f) << 6) | (c & 0x3f);
      if (code < 0x800 || (code & 0xf800) === 0xd800) return null;
      units[n++] = code;
      continue;
    }
    const d = buf[at++];
    if ((d & 0xc0) !== 0x80) return null;
    const code = ((a & 0x07) << 18) | ((b & 0x3f) << 12) | ((c & 0x3f) << 6) | (d & 0x3f);
    if (code < 0x10000 || code > 0x10ffff) return null;
    units[n++] = 0xd800 + ((code - 0x10000) >> 10);
    units[n++] = 0xdc00 + ((code - 0x10000) & 0x3ff);
  }
  units.length = n;
  return fromCharCode.apply(null, units);
}

/** The ASCII text at [start, end), short; the caller has seen that every byte is below 0x80. */
export function readAscii(buf: Buffer, start: number, end: number): string {
  switch (end - start) {
    case 0:
      return "";
    case 1:
      return fromCharCode(buf[start]);
    case 2:
      return fromCharCode(buf[start], buf[start + 1]);
    case 3:
      return fromCharCode(buf[start], buf[start + 1], buf[start + 2]);
    case 4:
      return fromCharCode(buf[start], buf[start + 1], buf[start + 2], buf[start + 3]);
    case 5:
      return fromCharCode(
        buf[start],
        buf[start + 1],
        buf[start + 2],
        buf[start + 3],
        buf[start + 4],
      );
    case 6:
      return fromCharCode(
        buf[start],
        buf[start + 1],
        buf[start + 2],
        buf[start + 3],
        buf[start + 4],
        buf[start + 5],
      );
    case 7:
      return fromCharCode(
        buf[start],
        buf[start + 1],
        buf[start + 2],
        buf[start + 3],
        buf[start + 4],
        buf[start + 5],
        buf[start + 6],
      );
    case 8:
      return fromCharCode(
        buf[start],
        buf[start + 1],
        buf[start + 2],
        buf[start + 3],
        buf[start + 4],
        buf[start + 5],
        buf[start + 6],
        buf[start + 7],
      );
    default:
      return latin1(buf, start, end);
  }
}

/** Whether `text` has no lone surrogate. */
export const isWellFormed: (text: string) => boolean =
  typeof (String.prototype as { isWellFormed?: unknown }).isWellFormed === "function"
    ? (text) => (text as string & { isWellFormed(): boolean }).isWellFormed()
    : (text) => !/\p{Surrogate}/u.test(text);
