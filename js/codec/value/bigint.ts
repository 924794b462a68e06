/**
 * Bigints, in and out (docs/format.md §2.1). Those of one or two 64-bit words go without a string.
 */

import type { Buffer } from "node:buffer";
import { type Decoder, malformed } from "./decoder";
import type { Encoder } from "./encoder";
import { valueTooLarge } from "./reject";
import { TAG_BIGINT_NEGATIVE, TAG_BIGINT_POSITIVE } from "./tags";

/** Writes tag 2 or 3 and the magnitude without leading zeros. */
export function writeBigint(encoder: Encoder, value: bigint): void {
  let rest = value;
  if (value >= 0n) encoder.head(6, TAG_BIGINT_POSITIVE);
  else {
    encoder.head(6, TAG_BIGINT_NEGATIVE);
    rest = -1n - value;
  }
  if (rest <= 0xffff_ffff_ffff_ffffn) {
    if (encoder.pos + 9 > encoder.end) encoder.grow(9);
    const at = encoder.pos;
    encoder.view.setBigUint64(at + 1, rest);
    let skip = 0;
    while (skip < 8 && encoder.buf[at + 1 + skip] === 0) skip++;
    if (skip > 0)
      for (let i = at + 1; i + skip <= at + 8; i++) encoder.buf[i] = encoder.buf[i + skip];
    encoder.buf[at] = 0x40 | (8 - skip);
    encoder.pos = at + 9 - skip;
    return;
  }
  if (rest >> 128n === 0n) {
    // Two words, the upper one without its leading zeros.
    if (encoder.pos + 18 > encoder.end) encoder.grow(18);
    const at = encoder.pos;
    encoder.view.setBigUint64(at + 1, rest >> 64n);
    let skip = 0;
    while (encoder.buf[at + 1 + skip] === 0) skip++;
    if (skip > 0)
      for (let i = at + 1; i + skip <= at + 8; i++) encoder.buf[i] = encoder.buf[i + skip];
    encoder.view.setBigUint64(at + 9 - skip, BigInt.asUintN(64, rest));
    encoder.buf[at] = 0x40 | (16 - skip);
    encoder.pos = at + 17 - skip;
    return;
  }
  const hex = rest.toString(16);
  const n = (hex.length + 1) >>> 1;
  if (n > encoder.bytesMax) throw valueTooLarge(encoder.bytesMax);
  encoder.head(2, n);
  if (encoder.pos + n > encoder.end) encoder.grow(n);
  const padded = hex.length & 1 ? `0${hex}` : hex;
  encoder.buf.write(padded, encoder.pos, n, "hex");
  encoder.pos += n;
}

/** Reads what stands behind tag 2 or 3. */
export function readBigint(decoder: Decoder, tag: number): bigint {
  const byte = decoder.next();
  if (byte >> 5 !== 2) malformed();
  const length = decoder.argument(byte);
  const at = decoder.skip(length);
  const { buf } = decoder;
  if (length > 0 && buf[at] === 0) malformed();
  let value: bigint;
  if (length <= 6) {
    value = BigInt(readSmall(buf, at, at + length));
  } else if (length === 7) {
    value = (BigInt(readSmall(buf, at, at + 1)) << 48n) | BigInt(readSmall(buf, at + 1, at + 7));
  } else if (length <= 14) {
    const low = at + length - 8;
    value = (BigInt(readSmall(buf, at, low)) << 64n) | buf.readBigUInt64BE(low);
  } else {
    value = BigInt(`0x${buf.toString("hex", at, at + length)}`);
  }
  return tag === TAG_BIGINT_POSITIVE ? value : -1n - value;
}

/** A big-endian integer of at most 6 bytes. */
function readSmall(buf: Buffer, at: number, end: number): number {
  let value = 0;
  for (let i = at; i < end; i++) value = value * 256 + buf[i];
  return value;
}
