// Duty: sizeOf: what the limits count.

import { encodeKey } from "./codec/key.js";
import { encodeValue } from "./codec/value/encode.js";
import { Writer } from "./codec/writer.js";

/** Bytes of a value as `valueBytesMax` counts them. */
function sizeOfValue(value: unknown): number {
  const writer = new Writer();
  writer.resolves = true;
  encodeValue(writer, value);
  return writer.pos;
}

/** Bytes of a key as `keyBytesMax` counts them. */
function sizeOfKey(key: unknown): number {
  const writer = new Writer();
  writer.resolves = true;
  encodeKey(writer, key);
  return writer.pos;
}

export const sizeOf: {
  (value: unknown): number;
  key(key: unknown): number;
} = Object.assign(
  function sizeOf(value: unknown): number {
    return sizeOfValue(value);
  },
  {
    key(key: unknown): number {
      return sizeOfKey(key);
    },
  },
);
