/**
 * Strings that are not short ASCII, in, and text with lone surrogates, both ways (docs/format.md
 * §2.1).
 */

import { Buffer } from "node:buffer";
import { isWellFormed, writeUtf8 } from "../text";
import { type Decoder, malformed } from "./decoder";
import type { Encoder } from "./encoder";
import { valueTooLarge } from "./reject";
import { writeHead } from "./splice";
import { TAG_WTF8 } from "./tags";

/** Text that is long or not ASCII. */
export function writeLongText(encoder: Encoder, text: string): void {
  const { length } = text;
  if (length > encoder.bytesMax) throw valueTooLarge(encoder.bytesMax);
  if (encoder.pos + length * 3 + 9 > encoder.end) encoder.grow(length * 3 + 9);
  const { buf, pos } = encoder;
  // The head of an ASCII text; a longer one is put in place when it turns out to be needed.
  const head = headBytes(length);
  const written = writeUtf8(buf, text, pos + head);
  if (written !== length) {
    if (!isWellFormed(text)) return writeWtf8(encoder, text);
    const wider = headBytes(written);
    if (wider !== head) buf.copyWithin(pos + wider, pos + head, pos + head + written);
  }
  encoder.pos = writeHead(buf, pos, 3, written) + written;
}

/** Text with lone surrogates: tag 273 and UTF-8 that lets them through. */
function writeWtf8(encoder: Encoder, text: string): void {
  encoder.head(6, TAG_WTF8);
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i)!;
    if (code > 0xffff) i++;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 0x3f));
    else if (code < 0x10000)
      bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f));
    else {
      bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f));
      bytes.push(0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f));
    }
  }
  encoder.bytes(Uint8Array.from(bytes));
}

/** The text behind tag 273: UTF-8 with at least one lone surrogate. */
export function readWtf8(decoder: Decoder): string {
  const bytes = decoder.bytes();
  const units: number[] = [];
  let lone = false;
  for (let at = 0; at < bytes.length; ) {
    const a = bytes[at];
    const more = a < 0x80 ? 0 : a < 0xe0 ? 1 : a < 0xf0 ? 2 : 3;
    if ((a >= 0x80 && a < 0xc2) || a > 0xf4 || at + more >= bytes.length + (more === 0 ? 1 : 0))
      malformed();
    let code = more === 0 ? a : a & (0x3f >> more);
    for (let i = 1; i <= more; i++) {
      const b = bytes[at + i];
      if ((b & 0xc0) !== 0x80) malformed();
      code = (code << 6) | (b & 0x3f);
    }
    if ((more === 2 && code < 0x800) || (more === 3 && (code < 0x10000 || code > 0x10ffff)))
      malformed();
    if (code > 0xffff) {
      units.push(0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
    } else {
      const before = units.length > 0 ? units[units.length - 1] : 0;
      // Two halves of a pair are one character of four bytes.
      if ((code & 0xfc00) === 0xdc00 && (before & 0xfc00) === 0xd800 && bytes[at - 3] === 0xed)
        malformed();
      if ((code & 0xf800) === 0xd800) lone = true;
      units.push(code);
    }
    at += more + 1;
  }
  if (!lone) malformed();
  return Buffer.from(Uint16Array.from(units).buffer).toString("utf16le");
}

function headBytes(argument: number): number {
  return argument < 24
    ? 1
    : argument < 0x100
      ? 2
      : argument < 0x10000
        ? 3
        : argument < 0x1_0000_0000
          ? 5
          : 9;
}
