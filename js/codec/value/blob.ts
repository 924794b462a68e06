/**
 * Blob and File are stored with their contents. Their size is known at once, their bytes only
 * later: the encoder leaves room and says what belongs there, and the caller fills it in before the
 * value is sent.
 */

import type { Encoder } from "./encode";

/** Room left in an encoded value. */
export interface Fill {
  /** From the value's first byte, in bytes. */
  offset: number;
  /** In bytes; the blob's size when it was encoded. */
  size: number;
  blob: Blob;
}

/**
 * Writes tag 27 `["Blob", bytes, type]` or `["File", bytes, type, name, lastModified]` with the
 * bytes left open.
 */
export function writeBlob(encoder: Encoder, blob: Blob): void {
  const file = typeof File === "function" && blob instanceof File ? blob : null;
  encoder.object(file === null ? "Blob" : "File", file === null ? 3 : 5);
  const size = blob.size;
  encoder.head(2, size);
  encoder.room(size);
  (encoder.fills ??= []).push({ offset: encoder.pos, size, blob });
  encoder.pos += size;
  encoder.text(blob.type);
  if (file !== null) {
    encoder.text(file.name);
    encoder.number(file.lastModified);
  }
}

/**
 * Reads the contents into the room left for them. `value` is the encoded value. Throws TypeError
 * when a blob is not as long as it was when the value was encoded (a file that changed meanwhile).
 */
export async function fillBlobs(value: Uint8Array, fills: readonly Fill[]): Promise<void> {
  await Promise.all(
    fills.map(async ({ offset, size, blob }) => {
      const bytes = new Uint8Array(await blob.arrayBuffer());
      if (bytes.length !== size)
        throw new TypeError("A Blob changed its size while it was being stored");
      value.set(bytes, offset);
    }),
  );
}
