// Duty: a line of NDJSON back to an entry; the other direction of encode.ts.
// Invariant: a line that is not of the form throws NdjsonError, which names what and where; it never
// gives a value that was not meant.

import { decodeValue } from "../codec/value/decode.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import { KvU64 } from "../codec/u64.js";

/** An entry that was read. */
export interface ImportedEntry {
  readonly key: unknown[];
  readonly value: unknown;
  /** The end of the entry in ms since the epoch, if the line names one. */
  readonly expireAt: number | undefined;
}

/** What is wrong with a line. */
export class NdjsonError extends Error {}
Object.defineProperty(NdjsonError.prototype, "name", { value: "NdjsonError" });

/** Reads one line. */
export function decodeLine(line: string): ImportedEntry {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (error) {
    throw new NdjsonError(`not JSON: ${(error as Error).message}`);
  }
  const { key, value, expireAt } = fields(parsed, "the line");
  if (!Array.isArray(key) || key.length === 0) throw new NdjsonError("key must be an array of parts");
  if (value === undefined) throw new NdjsonError("value is missing");
  if (expireAt !== undefined && !Number.isSafeInteger(expireAt)) {
    throw new NdjsonError("expireAt must be milliseconds since the epoch");
  }
  return {
    key: key.map(decodePart),
    value: decode(value, "value"),
    expireAt: expireAt as number | undefined,
  };
}

type Fields = Record<string, unknown>;

function fields(value: unknown, where: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new NdjsonError(`${where} must be an object`);
}

function decodePart(part: unknown, at: number): unknown {
  const where = `key[${at}]`;
  const { type } = fields(part, where);
  if (!["string", "number", "bigint", "boolean", "Uint8Array"].includes(type as string)) {
    throw new NdjsonError(`${where}: unknown type of a key part: ${String(type)}`);
  }
  return decode(part, where);
}

function decode(node: unknown, where: string): unknown {
  const { type, value } = fields(node, where);
  switch (type) {
    case "undefined":
      return undefined;
    case "null":
      return null;
    case "string":
      return text(value, where);
    case "boolean":
      if (typeof value === "boolean") return value;
      throw new NdjsonError(`${where}: value must be true or false`);
    case "number":
      return number(value, where);
    case "bigint":
      return integer(value, where);
    case "KvU64":
      return u64(value, where);
    case "object":
      return object(fields(value, where), where);
    case "Array":
      return items(value, where).map((item, i) => decode(item, `${where}[${i}]`));
    case "Set":
      return new Set(items(value, where).map((item, i) => decode(item, `${where}[${i}]`)));
    case "Map":
      return new Map(items(value, where).map((pair, i) => entry(pair, `${where}[${i}]`)));
    case "Date":
      return date(value, where);
    case "RegExp":
      return regexp(text(value, where), where);
    case "CBOR":
      return cbor(bytes(value, where), where);
    default:
      return other(String(type), value, where);
  }
}

function other(type: string, value: unknown, where: string): unknown {
  const error = ERRORS.get(type);
  if (error !== undefined) return errorOf(error, fields(value, where), where);
  if (type === "ArrayBuffer") return new Uint8Array(bytes(value, where)).buffer;
  const view = VIEWS.get(type);
  if (view === undefined) throw new NdjsonError(`${where}: unknown type ${type}`);
  // A buffer of its own: typed arrays need theirs aligned, and nobody else should see it.
  const own = new Uint8Array(bytes(value, where)).buffer;
  try {
    return view(own);
  } catch {
    throw new NdjsonError(`${where}: ${own.byteLength} bytes are no whole ${type}`);
  }
}

type ViewClass = new (buffer: ArrayBuffer) => unknown;

/** Node 20 has no Float16Array. */
const { Float16Array } = globalThis as { Float16Array?: ViewClass };

const VIEWS: ReadonlyMap<string, (buffer: ArrayBuffer) => unknown> = new Map(
  (
    [
      ...[DataView, Uint8Array, Uint8ClampedArray, Int8Array, Uint16Array, Int16Array],
      ...[Uint32Array, Int32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array],
      ...(Float16Array === undefined ? [] : [Float16Array]),
    ] as ViewClass[]
  ).map((type) => [type.name, (buffer: ArrayBuffer) => new type(buffer)] as const),
);

const ERRORS: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map(
    (type) => [type.name, type as ErrorConstructor] as const,
  ),
);

function text(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw new NdjsonError(`${where}: value must be a string`);
}

const NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
  "-0": -0,
};

function number(value: unknown, where: string): number {
  if (typeof value === "number") return value;
  if (typeof value === "string" && Object.hasOwn(NUMBERS, value)) return NUMBERS[value];
  throw new NdjsonError(`${where}: value must be a number`);
}

function integer(value: unknown, where: string): bigint {
  if (typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value);
  throw new NdjsonError(`${where}: value must be a string of decimal digits`);
}

function u64(value: unknown, where: string): KvU64 {
  try {
    return new KvU64(integer(value, where));
  } catch (error) {
    throw new NdjsonError(`${where}: ${(error as Error).message}`);
  }
}

function items(value: unknown, where: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new NdjsonError(`${where}: value must be an array`);
}

function entry(pair: unknown, where: string): [unknown, unknown] {
  if (!Array.isArray(pair) || pair.length !== 2) {
    throw new NdjsonError(`${where}: must be a pair`);
  }
  return [decode(pair[0], `${where}[0]`), decode(pair[1], `${where}[1]`)];
}

function object(given: Fields, where: string): object {
  const made: Fields = {};
  for (const name of Object.keys(given)) {
    const value = decode(given[name], `${where}.${name}`);
    if (name === "__proto__") {
      const own = { value, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(made, name, own);
    } else {
      made[name] = value;
    }
  }
  return made;
}

function date(value: unknown, where: string): Date {
  const made = new Date(value === null ? Number.NaN : text(value, where));
  if (value !== null && Number.isNaN(made.getTime())) {
    throw new NdjsonError(`${where}: not a time: ${String(value)}`);
  }
  return made;
}

function regexp(value: string, where: string): RegExp {
  const end = value.lastIndexOf("/");
  try {
    if (value.startsWith("/") && end > 0) return new RegExp(value.slice(1, end), value.slice(end + 1));
  } catch {
    // Told below.
  }
  throw new NdjsonError(`${where}: not a regular expression: ${value}`);
}

function errorOf(type: ErrorConstructor, given: Fields, where: string): Error {
  const error = new type();
  const put = (name: string, value: unknown): void => {
    Object.defineProperty(error, name, { value, writable: true, configurable: true });
  };
  if (given.message !== undefined) put("message", text(given.message, `${where}.message`));
  put("stack", given.stack === undefined ? undefined : text(given.stack, `${where}.stack`));
  if (given.cause !== undefined) put("cause", decode(given.cause, `${where}.cause`));
  return error;
}

const BASE64 = /^[A-Za-z0-9_+/-]*={0,2}$/;

function bytes(value: unknown, where: string): Buffer {
  const given = text(value, where);
  if (BASE64.test(given)) return Buffer.from(given, "base64url");
  throw new NdjsonError(`${where}: value must be base64url`);
}

function cbor(encoded: Buffer, where: string): unknown {
  try {
    return decodeValue(ENCODING_CBOR, encoded, 0, encoded.length);
  } catch {
    throw new NdjsonError(`${where}: not a value in CBOR`);
  }
}
