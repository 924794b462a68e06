// Duty: a text of any length as a part of a key, which has at most 2048 bytes.

import { createHash } from "node:crypto";

/** A longer text is in a key as its hash. */
const TEXT_BYTES_MAX = 256;

/** The text itself, or of a long text its SHA-256, as bytes. */
export function keyPart(text: string): string | Uint8Array {
  if (Buffer.byteLength(text) <= TEXT_BYTES_MAX) return text;
  return new Uint8Array(createHash("sha256").update(text).digest());
}
