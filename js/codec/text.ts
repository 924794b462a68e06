/**
 * UTF-8 text in and out of buffers, by the fastest means that each runtime has. Shared by keys and
 * values.
 */

import { Buffer } from "node:buffer";
import { LATIN1, SHORT_TEXT_BYTES_MAX, shortText } from "./short-text";

/** Buffer's per-encoding methods: present in Node, Bun and Deno, absent from the typings. */
interface Slices {
  utf8Write?(text: string, offset: number, length: number): number;
  latin1Slice?(start: number, end: number): string;
  utf8Slice?(start: number, end: number): string;
  ucs2Slice?(start: number, end: number): string;
}

const methods = Buffer.prototype as Buffer & Slices;
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

const ucs2: (buf: Buffer, start: number, end: number) => string =
  typeof methods.ucs2Slice === "function"
    ? (buf, start, end) => (buf as Buffer & Required<Slices>).ucs2Slice(start, end)
    : (buf, start, end) => buf.toString("utf16le", start, end);

/** The first version of V8 in whose runtimes UTF-8 is decoded many bytes at a time. */
const V8_WITH_FAST_UTF8 = 12;
const hasFastUtf8 =
  process.versions.bun !== undefined ||
  Number.parseInt(process.versions.v8 ?? "0", 10) >= V8_WITH_FAST_UTF8;
/** Text of UTF-8 up to this many bytes is decoded by a loop here; a native call costs more. */
const LOOP_TEXT_BYTES_MAX = hasFastUtf8 ? 24 : 192;
/** The same for text that has few ASCII characters. */
const LOOP_DENSE_TEXT_BYTES_MAX = hasFastUtf8 ? 24 : 16_384;
const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** The code units that the loop has decoded, whole and their lower bytes. */
const units = new Uint16Array(LOOP_DENSE_TEXT_BYTES_MAX);
const unitBytes = Buffer.from(units.buffer);
const lowBytes = Buffer.alloc(LOOP_DENSE_TEXT_BYTES_MAX);

/**
 * The text at [start, end), any length. Returns null when the bytes are not UTF-8 (overlong forms,
 * surrogates and cut sequences included). Reads nothing outside the range.
 */
export function readUtf8(buf: Buffer, start: number, end: number): string | null {
  const length = end - start;
  if (
    littleEndian &&
    (length <= LOOP_TEXT_BYTES_MAX ||
      (length <= LOOP_DENSE_TEXT_BYTES_MAX && isDense(buf, start, length)))
  )
    return loopUtf8(buf, start, end);
  const text = utf8(buf, start, end);
  // U+FFFD is what the lenient decoder writes for a fault, and also a character of its own.
  if (!text.includes("\ufffd")) return text;
  try {
    return strict.decode(buf.subarray(start, end));
  } catch {
    return null;
  }
}

/** Whether most characters seem to take several bytes: three of four samples. */
function isDense(buf: Buffer, start: number, length: number): boolean {
  const step = length >> 2;
  const at = start + (step >> 1);
  const many =
    (buf[at] >> 7) + (buf[at + step] >> 7) + (buf[at + 2 * step] >> 7) + (buf[at + 3 * step] >> 7);
  return many >= 3;
}

function loopUtf8(buf: Buffer, start: number, end: number): string | null {
  let n = 0;
  let all = 0;
  let at = start;
  while (at < end) {
    const a = buf[at++];
    let code = a;
    if (a >= 0x80) {
      if (a < 0xc2 || a > 0xf4) return null;
      const more = a < 0xe0 ? 1 : a < 0xf0 ? 2 : 3;
      if (at + more > end) return null;
      const b = buf[at++];
      if ((b & 0xc0) !== 0x80) return null;
      if (more === 1) {
        code = ((a & 0x1f) << 6) | (b & 0x3f);
      } else {
        const c = buf[at++];
        if ((c & 0xc0) !== 0x80) return null;
        if (more === 2) {
          code = ((a & 0x0f) << 12) | ((b & 0x3f) << 6) | (c & 0x3f);
          if (code < 0x800 || (code & 0xf800) === 0xd800) return null;
        } else {
          const d = buf[at++];
          if ((d & 0xc0) !== 0x80) return null;
          code = ((a & 0x07) << 18) | ((b & 0x3f) << 12) | ((c & 0x3f) << 6) | (d & 0x3f);
          if (code < 0x10000 || code > 0x10ffff) return null;
          units[n++] = 0xd800 + ((code - 0x10000) >> 10);
          code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
      }
    }
    all |= code;
    units[n] = code;
    lowBytes[n++] = code;
  }
  if (all >= LATIN1) return ucs2(unitBytes, 0, n * 2);
  // A string of one byte for each unit takes half the memory.
  return (
    (n <= SHORT_TEXT_BYTES_MAX ? shortText(lowBytes, 0, n, LATIN1) : null) ?? latin1(lowBytes, 0, n)
  );
}

/** Whether `text` has no lone surrogate. */
export const isWellFormed: (text: string) => boolean =
  typeof (String.prototype as { isWellFormed?: unknown }).isWellFormed === "function"
    ? (text) => (text as string & { isWellFormed(): boolean }).isWellFormed()
    : (text) => !/\p{Surrogate}/u.test(text);
