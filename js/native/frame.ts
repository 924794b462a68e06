// Duty: reads and writes the small parts of frames: integers, versionstamps, bytes, texts.

import { LOOP_BYTES_MAX, type Writer } from "../codec/writer.js";

/** The little-endian u32 at `at`. */
export function readU32(buf: Uint8Array, at: number): number {
  return (buf[at] | (buf[at + 1] << 8) | (buf[at + 2] << 16) | (buf[at + 3] << 24)) >>> 0;
}

/** The versionstamp at `at`. One call with twenty arguments is twice as fast as a latin1 slice. */
export function readStamp(b: Uint8Array, at: number): string {
  // biome-ignore format: a row for every five bytes
  return String.fromCharCode(
    b[at],
    b[at + 1],
    b[at + 2],
    b[at + 3],
    b[at + 4],
    b[at + 5],
    b[at + 6],
    b[at + 7],
    b[at + 8],
    b[at + 9],
    b[at + 10],
    b[at + 11],
    b[at + 12],
    b[at + 13],
    b[at + 14],
    b[at + 15],
    b[at + 16],
    b[at + 17],
    b[at + 18],
    b[at + 19],
  );
}

/** Appends bytes behind their length. */
export function putSized(frame: Writer, bytes: Uint8Array): void {
  frame.u32(bytes.length);
  frame.bytes(bytes);
}

/** Appends `from[start..end)`. */
export function putBytes(writer: Writer, from: Uint8Array, start: number, end: number): void {
  const length = end - start;
  writer.ensure(length);
  const { buf, pos } = writer;
  if (length <= LOOP_BYTES_MAX) {
    for (let i = 0; i < length; i++) buf[pos + i] = from[start + i];
  } else {
    buf.set(from.subarray(start, end), pos);
  }
  writer.pos = pos + length;
}

/** Text with its length. */
export function putText(writer: Writer, text: string): void {
  const bytes = Buffer.from(text);
  writer.u32(bytes.length);
  writer.ensure(bytes.length);
  writer.buf.set(bytes, writer.pos);
  writer.pos += bytes.length;
}
