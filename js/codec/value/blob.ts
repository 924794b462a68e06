/**
 * Blob and File are stored with their contents. Their size is known at once, their bytes only later:
 * the encoder reserves the room and records it, and the caller fills it before the value is sent.
 */

import { NativePromise } from "../../model/native-promise.js";
import { misuse } from "../../model/errors";
import type { Fill } from "../writer";
import type { Encoder } from "./encoder";

/** The runtime's own getter of a Blob or File, which no subclass can override. */
function getterOf(type: { prototype: object } | undefined, name: string) {
  return type && Object.getOwnPropertyDescriptor(type.prototype, name)?.get;
}
const sizeOf = getterOf(globalThis.Blob, "size");
const typeOf = getterOf(globalThis.Blob, "type");
const bytesOf = globalThis.Blob?.prototype.arrayBuffer;
const files = (globalThis as { File?: { prototype: object } }).File;
const nameOf = getterOf(files, "name");
const modifiedOf = getterOf(files, "lastModified");

/**
 * Writes tag 27 `["Blob", bytes, type]` or `["File", bytes, type, name, lastModified]` with the
 * bytes left open.
 */
export function writeBlob(encoder: Encoder, blob: Blob): void {
  const file = fileOf(blob);
  const size = sizeOf!.call(blob) as number;
  encoder.object(file === null ? "Blob" : "File", file === null ? 3 : 5);
  encoder.head(2, size);
  encoder.room(size);
  (encoder.fills ??= []).push({ offset: encoder.pos, size, blob });
  encoder.pos += size;
  encoder.text(typeOf!.call(blob) as string);
  if (file !== null) {
    encoder.text(file.name);
    encoder.number(file.lastModified);
  }
}

/** The properties of a File beside those of a Blob; null if it only has the prototype. */
function fileOf(blob: Blob): { name: string; lastModified: number } | null {
  if (nameOf === undefined || modifiedOf === undefined) return null;
  try {
    const name = nameOf.call(blob) as unknown;
    const lastModified = modifiedOf.call(blob) as unknown;
    if (typeof name !== "string" || typeof lastModified !== "number") return null;
    return { name, lastModified };
  } catch {
    return null;
  }
}

/**
 * Reads the contents into the room left for them. `value` is the encoded value. Throws TypeError
 * when a blob is not as long as it was when the value was encoded (a file that changed meanwhile).
 */
export async function fillBlobs(value: Uint8Array, fills: readonly Fill[]): Promise<void> {
  await NativePromise.all(
    fills.map(async ({ offset, size, blob }) => {
      const bytes = new Uint8Array(await bytesOf.call(blob));
      if (bytes.length !== size) throw misuse("A Blob changed its size while it was being stored");
      value.set(bytes, offset);
    }),
  );
}
