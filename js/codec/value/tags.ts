/**
 * The numbers of docs/format.md §2: encoding ids, CBOR tags and bounds.
 */

/** V8's format. Only values that Rust could not convert arrive in it. */
export const ENCODING_V8 = 1;
/** `KvU64`: eight bytes, little-endian. */
export const ENCODING_LE64 = 2;
/** A top-level `Uint8Array`, as it is. */
export const ENCODING_BYTES = 3;
/** Everything else. */
export const ENCODING_CBOR = 67;

export const TAG_DATE = 1;
export const TAG_BIGINT_POSITIVE = 2;
export const TAG_BIGINT_NEGATIVE = 3;
export const TAG_OBJECT = 27;
export const TAG_SHAREABLE = 28;
export const TAG_SHARED = 29;
export const TAG_SET = 258;
export const TAG_MAP = 259;
export const TAG_WTF8 = 273;

/** The views of RFC 8746, little-endian, by class name. */
export const VIEW_TAGS: Readonly<Record<string, number>> = {
  Uint8ClampedArray: 68,
  Uint16Array: 69,
  Uint32Array: 70,
  BigUint64Array: 71,
  Int8Array: 72,
  Int16Array: 77,
  Int32Array: 78,
  BigInt64Array: 79,
  Float16Array: 84,
  Float32Array: 85,
  Float64Array: 86,
};

/** Bytes per element of every view class. */
export const VIEW_BYTES: Readonly<Record<string, number>> = {
  Uint8Array: 1,
  Uint8ClampedArray: 1,
  Int8Array: 1,
  DataView: 1,
  Uint16Array: 2,
  Int16Array: 2,
  Float16Array: 2,
  Uint32Array: 4,
  Int32Array: 4,
  Float32Array: 4,
  BigUint64Array: 8,
  BigInt64Array: 8,
  Float64Array: 8,
};

/** The classes of a decoded Error; every other name becomes `Error`. */
export const ERROR_NAMES = [
  "Error",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
] as const;
