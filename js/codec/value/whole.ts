/**
 * A value as bytes of its own, with nothing left open: for whatever leaves the process by another
 * way than a write, whose segments fill what is open themselves.
 */

import { Writer } from "../writer";
import { fillBlobs } from "./blob";
import { encodeCbor } from "./encode";

/** Any value as CBOR: at once, or a promise of it where the contents of a Blob are read first. */
export function encodeWhole(value: unknown): Buffer | Promise<Buffer> {
  const writer = new Writer();
  encodeCbor(writer, value);
  const bytes = writer.copy();
  const { fills } = writer;
  return fills === null ? bytes : fillBlobs(bytes, fills).then(() => bytes);
}
