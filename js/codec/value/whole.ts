/**
 * A value as complete bytes, with the contents of Blobs, for callers other than writes. The segments
 * of a write fill the contents themselves.
 */

import { Writer } from "../writer";
import { fillBlobs } from "./blob";
import { encodeCbor } from "./encode";

/** A value as CBOR; a promise of it if the contents of a Blob are to be read first. */
export function encodeWhole(value: unknown): Buffer | Promise<Buffer> {
  const writer = new Writer();
  encodeCbor(writer, value);
  const bytes = writer.copy();
  const { fills } = writer;
  return fills === null ? bytes : fillBlobs(bytes, fills).then(() => bytes);
}
