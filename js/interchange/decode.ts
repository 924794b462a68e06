// Duty: decodes a line of NDJSON to an entry; the reverse of encode.ts.
// Invariant: a malformed line throws NdjsonError, which names the fault and its place; it never results
// in another value.

import { roundedInteger, roundedMessage } from "./integers.js";
import { hasDay } from "./iso-time.js";
import { decodeValue } from "../codec/value/decode.js";
import { ENCODING_CBOR } from "../codec/value/tags.js";
import { KvU64 } from "../codec/u64.js";
import { defineProperty } from "../model/define.js";
import { VALUE_DEPTH_MAX } from "../model/limits.js";

/** An entry that was read. */
export interface ImportedEntry {
  readonly key: unknown[];
  readonly value: unknown;
  /** The expiry of the entry in ms since the epoch, if the line has one. */
  readonly expireAt: number | undefined;
}

/** Most parts of a place in a line, from the outside. */
const WHERE_CHARS_MAX = 100;

/** The fault of a line and its place. */
export class NdjsonError extends Error {
  readonly #what: string;
  #where = "";

  constructor(what: string) {
    super(what);
    this.#what = what;
  }

  /** Adds the part in which the fault is; the innermost part is added first. */
  within(part: string): this {
    const where = part + this.#where;
    const isLong = where.length > WHERE_CHARS_MAX;
    this.#where = isLong ? `${where.slice(0, WHERE_CHARS_MAX)}…` : where;
    this.message = `${this.#where}: ${this.#what}`;
    return this;
  }
}
defineProperty(NdjsonError.prototype, "name", { value: "NdjsonError" });

/** Reads one line. */
export function decodeLine(line: string): ImportedEntry {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (error) {
    throw new NdjsonError(`not JSON: ${(error as Error).message}`);
  }
  const integer = roundedInteger(line);
  if (integer !== undefined) throw new NdjsonError(roundedMessage(integer));
  depth = 0;
  const { key, value, expireAt } = fields(parsed);
  if (!Array.isArray(key) || key.length === 0)
    throw new NdjsonError("key must be an array of parts");
  if (value === undefined) throw new NdjsonError("value is missing");
  if (expireAt !== undefined && !Number.isSafeInteger(expireAt)) {
    throw new NdjsonError("expireAt must be milliseconds since the epoch");
  }
  return {
    key: key.map(decodePart),
    value: decodeValueOf(value),
    expireAt: expireAt as number | undefined,
  };
}

/** Reads a value as in a line, parsed from JSON. */
export function decodeTyped(node: unknown): unknown {
  depth = 0;
  return decode(node);
}

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new NdjsonError("must be an object");
}

/** Adds the place of a fault. */
function found(error: unknown, part: string): unknown {
  return error instanceof NdjsonError ? error.within(part) : error;
}

const PART_TYPES: readonly unknown[] = ["string", "number", "bigint", "boolean", "Uint8Array"];

function decodePart(part: unknown, at: number): unknown {
  try {
    const { type } = fields(part);
    if (PART_TYPES.includes(type)) return decode(part);
    throw new NdjsonError(`unknown type of a key part: ${String(type)}`);
  } catch (error) {
    throw found(error, `key[${at}]`);
  }
}

function decodeValueOf(value: unknown): unknown {
  try {
    return decode(value);
  } catch (error) {
    throw found(error, "value");
  }
}

/** The depth of the current node. Decoding is synchronous, so one variable is enough. */
let depth = 0;

function decode(node: unknown): unknown {
  // What is within the innermost container that can be stored is no deeper than this.
  if (depth > VALUE_DEPTH_MAX)
    throw new NdjsonError(`nested deeper than ${VALUE_DEPTH_MAX} levels`);
  depth++;
  const value = decodeNode(node);
  depth--;
  return value;
}

function decodeNode(node: unknown): unknown {
  const { type, value } = fields(node);
  switch (type) {
    case "undefined":
      return undefined;
    case "null":
      return null;
    case "string":
      return text(value);
    case "boolean":
      if (typeof value === "boolean") return value;
      throw new NdjsonError(`value must be true or false`);
    case "number":
      return number(value);
    case "bigint":
      return integer(value);
    case "KvU64":
      return u64(value);
    case "object":
      return object(fields(value));
    case "Array":
      return each(items(value), decode);
    case "Set":
      return new Set(each(items(value), decode));
    case "Map":
      return new Map(each(items(value), pair));
    case "Date":
      return date(value);
    case "RegExp":
      return regexp(text(value));
    case "CBOR":
      return cbor(bytes(value));
    default:
      return other(String(type), value);
  }
}

function other(type: string, value: unknown): unknown {
  const error = ERRORS.get(type);
  if (error !== undefined) return errorOf(error, fields(value));
  if (type === "ArrayBuffer") return new Uint8Array(bytes(value)).buffer;
  const view = VIEWS.get(type);
  if (view === undefined) throw new NdjsonError(`unknown type ${type}`);
  // A buffer of its own: typed arrays need an aligned one that is not shared.
  const own = new Uint8Array(bytes(value)).buffer;
  try {
    return view(own);
  } catch {
    throw new NdjsonError(`${own.byteLength} bytes are no whole ${type}`);
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

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new NdjsonError(`value must be a string`);
}

const NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
  "-0": -0,
};

function number(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "string" && Object.hasOwn(NUMBERS, value)) return NUMBERS[value];
  throw new NdjsonError(`value must be a number`);
}

function integer(value: unknown): bigint {
  if (typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value);
  throw new NdjsonError(`value must be a string of decimal digits`);
}

function u64(value: unknown): KvU64 {
  try {
    return new KvU64(integer(value));
  } catch (error) {
    throw new NdjsonError(`${(error as Error).message}`);
  }
}

function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new NdjsonError(`value must be an array`);
}

function each<T>(given: unknown[], decodeOne: (item: unknown) => T): T[] {
  const made: T[] = [];
  try {
    for (const item of given) made.push(decodeOne(item));
  } catch (error) {
    throw found(error, `[${made.length}]`);
  }
  return made;
}

function pair(given: unknown): [unknown, unknown] {
  if (!Array.isArray(given) || given.length !== 2) throw new NdjsonError("must be a pair");
  const [key, value] = each(given, decode);
  return [key, value];
}

function object(given: Fields): object {
  const made: Fields = {};
  for (const name in given) {
    let value: unknown;
    try {
      value = decode(given[name]);
    } catch (error) {
      throw found(error, `.${name}`);
    }
    if (name === "__proto__") {
      const own = { value, writable: true, enumerable: true, configurable: true };
      defineProperty(made, name, own);
    } else {
      made[name] = value;
    }
  }
  return made;
}

function date(value: unknown): Date {
  const made = new Date(value === null ? Number.NaN : text(value));
  if (value !== null && (Number.isNaN(made.getTime()) || !hasDay(text(value)))) {
    throw new NdjsonError(`not a time: ${String(value)}`);
  }
  return made;
}

function regexp(value: string): RegExp {
  const end = value.lastIndexOf("/");
  try {
    if (value.startsWith("/") && end > 0)
      return new RegExp(value.slice(1, end), value.slice(end + 1));
  } catch {
    // Reported below.
  }
  throw new NdjsonError(`not a regular expression: ${value}`);
}

function errorOf(type: ErrorConstructor, given: Fields): Error {
  const error = new type();
  const put = (name: string, value: unknown): void => {
    defineProperty(error, name, { value, writable: true, configurable: true });
  };
  if (given.message !== undefined) put("message", text(given.message));
  put("stack", given.stack === undefined ? undefined : text(given.stack));
  if (given.cause !== undefined) put("cause", decode(given.cause));
  return error;
}

const BASE64 = /^[A-Za-z0-9_+/-]*={0,2}$/;

function bytes(value: unknown): Buffer {
  const given = text(value);
  if (BASE64.test(given)) return Buffer.from(given, "base64url");
  throw new NdjsonError(`value must be base64url`);
}

function cbor(encoded: Buffer): unknown {
  try {
    return decodeValue(ENCODING_CBOR, encoded, 0, encoded.length);
  } catch {
    throw new NdjsonError(`not a value in CBOR`);
  }
}
