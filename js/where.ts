// Duty: the `where` of a call as bytes. What its operators are and take, Rust says.

import { nameOf } from "./check.js";
import { encodeCbor } from "./codec/value/encode.js";
import { Writer } from "./codec/writer.js";

/** As FILTER_BYTES_MAX of src/model/limits.rs, which is held there again. */
const WHERE_BYTES_MAX = 256 * 1024;

/** Encodes a filter at the call: what the caller changes afterwards changes nothing. */
export function encodeWhere(method: string, where: unknown): Buffer | null {
  if (where === undefined) return null;
  if (!isPlainObject(where)) {
    throw new TypeError(`${method}: where must be an object of conditions: got ${nameOf(where)}`);
  }
  const writer = new Writer(256);
  try {
    encodeCbor(writer, where, WHERE_BYTES_MAX);
  } catch (error) {
    if (error instanceof TypeError) throw new TypeError(`${method}: where: ${error.message}`);
    throw error;
  }
  if (writer.fills !== null) throw new TypeError(`${method}: where: a Blob is compared with nothing`);
  return writer.copy();
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
