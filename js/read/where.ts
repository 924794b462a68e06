// Duty: encodes the option `where`. Rust checks its operators and operands.

import { shown } from "../arguments/check.js";
import { encodeCbor } from "../codec/value/encode.js";
import { borrowWriter, returnWriter } from "../codec/writer.js";
import { isTypeError } from "../model/brands.js";
import { codeOf, invalid, misuse, tooLarge } from "../model/errors.js";
import { FILTER_BYTES_MAX } from "../model/limits.js";

/** Encodes a filter at the call, so that later changes of the object have no effect. */
export function encodeWhere(method: string, where: unknown): Buffer | null {
  if (where === undefined) return null;
  if (!isPlainObject(where)) {
    throw invalid(`${method}: where must be an object of conditions: received ${shown(where)}`);
  }
  const writer = borrowWriter();
  try {
    encodeCbor(writer, where, FILTER_BYTES_MAX);
  } catch (error) {
    if (!isTypeError(error)) throw error;
    const message = `${method}: where: ${error.message}`;
    throw codeOf(error) === "TOO_LARGE" ? tooLarge(message) : misuse(message);
  }
  if (writer.fills !== null) throw misuse(`${method}: where: a Blob is compared with nothing`);
  const bytes = writer.copy();
  returnWriter(writer);
  return bytes;
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
