// Duty: sizeOf: the bytes of keys and values that the limits count.

import { encodeKey } from "../codec/key.js";
import { encodeValue } from "../codec/value/encode.js";
import { assign } from "../model/define.js";
import { Writer } from "../codec/writer.js";

/** A buffer larger than this is not kept for the next call. */
const SPARE_BYTES_MAX = 1024 * 1024;

/** A getter that calls sizeOf uses another one. */
let spare: Writer | null = null;

function measure(encode: (writer: Writer) => void): number {
  const writer = spare ?? new Writer();
  spare = null;
  writer.pos = 0;
  writer.resolves = true;
  try {
    encode(writer);
    return writer.pos;
  } finally {
    writer.fills = writer.marks = writer.patches = null;
    if (writer.buf.length <= SPARE_BYTES_MAX) spare = writer;
  }
}

/** Bytes of a value as `valueBytesMax` counts them. */
function sizeOfValue(value: unknown): number {
  return measure((writer) => void encodeValue(writer, value));
}

/** Bytes of a key as `keyBytesMax` counts them. */
function sizeOfKey(key: unknown): number {
  return measure((writer) => void encodeKey(writer, key));
}

export const sizeOf: {
  (value: unknown): number;
  key(key: unknown): number;
} = assign(
  function sizeOf(value: unknown): number {
    return sizeOfValue(value);
  },
  "key",
  function key(given: unknown): number {
    return sizeOfKey(given);
  },
);
