// Duty: pieces of a stream of bytes, cut anew so that each ends where a line does.
// Invariant: bytes that are no UTF-8 throw, instead of becoming other characters.

import { isUtf8 } from "node:buffer";

const LINE_END = 0x0a;

/** Whole lines, as many as have come; the last piece may lack the end of its last line. */
export async function* wholeLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  /** What has come since the last end of a line: joined once, however long the line is. */
  let open: Buffer[] = [];
  for await (const piece of input) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    const end = bytes.lastIndexOf(LINE_END) + 1;
    if (end > 0) {
      const whole = bytes.subarray(0, end);
      yield checked(open.length === 0 ? whole : Buffer.concat([...open, whole]));
      open = [];
    }
    // The stream may use its memory again.
    if (end < bytes.length) open.push(Buffer.from(bytes.subarray(end)));
  }
  if (open.length > 0) yield checked(Buffer.concat(open));
}

function checked(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes;
  throw new TypeError("The input is not UTF-8");
}
