// Duty: splits a stream of bytes into pieces that end at the end of a line.
// Invariant: bytes that are not UTF-8 throw, instead of becoming other characters.

import { invalid } from "../model/errors";
import { isUtf8 } from "node:buffer";

const LINE_END = 0x0a;

/** Pieces of whole lines. The last line may lack its line feed. */
export async function* wholeLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  /** The pieces of an incomplete line, joined once. */
  let open: Buffer[] = [];
  for await (const piece of input) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    const end = bytes.lastIndexOf(LINE_END) + 1;
    if (end > 0) {
      const whole = bytes.subarray(0, end);
      yield checked(open.length === 0 ? whole : Buffer.concat([...open, whole]));
      open = [];
    }
    // The stream may reuse its memory.
    if (end < bytes.length) open.push(Buffer.from(bytes.subarray(end)));
  }
  if (open.length > 0) yield checked(Buffer.concat(open));
}

function checked(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes;
  throw invalid("The input is not UTF-8");
}
