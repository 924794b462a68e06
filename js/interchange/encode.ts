// Duty: encodes an entry as a line of NDJSON, in the form of @deno/kv-utils if that is lossless
// (docs/format.md §5).
// Invariant: decode.ts decodes the line to the same key and value.

import { isU64 } from "../codec/u64.js";
import { fillBlobs } from "../codec/value/blob.js";
import { encodeCbor } from "../codec/value/encode.js";
import { Writer } from "../codec/writer.js";
import type { KvKey } from "../model/types.js";

/** An entry to be written. */
export interface ExportedEntry {
  readonly key: KvKey;
  readonly value: unknown;
  readonly versionstamp: string;
  /** The expiry of the entry, if it has one. */
  readonly expireAt?: Date | null;
}

/** A value that the common form cannot represent: it is written as CBOR. */
const UNSAYABLE = Symbol("unsayable");

/** The text; a promise of it if the contents of a Blob are to be read first. */
export type Text = string | Promise<string>;

/** One line, without its end. */
export function encodeLine({ key, value, versionstamp, expireAt }: ExportedEntry): Text {
  const end = expireAt == null ? "" : `,"expireAt":${expireAt.getTime()}`;
  const line = (text: string): string =>
    `{"key":${encodeKey(key)},"value":${text},"versionstamp":"${versionstamp}"${end}}`;
  const text = encodeValue(value);
  return typeof text === "string" ? line(text) : text.then(line);
}

/** A key as in a line. */
export function encodeKey(key: KvKey): string {
  let text = "[";
  for (let i = 0; i < key.length; i++) text += (i === 0 ? "" : ",") + encodePart(key[i]);
  return `${text}]`;
}

function encodePart(part: unknown): string {
  switch (typeof part) {
    case "string":
      return `{"type":"string","value":${JSON.stringify(part)}}`;
    case "number":
      return encodeNumber(part) ?? `{"type":"number","value":"-0"}`;
    case "bigint":
      return `{"type":"bigint","value":"${part}"}`;
    case "boolean":
      return part ? TRUE : FALSE;
    default:
      return encodeBytes("Uint8Array", part as Uint8Array);
  }
}

/** A value as in a line. */
export function encodeValue(value: unknown): Text {
  const met = spare ?? new Set();
  spare = null;
  try {
    return encode(value, met);
  } catch (error) {
    if (error !== UNSAYABLE) throw error;
    return encodeAsCbor(value);
  } finally {
    met.clear();
    spare = met;
  }
}

/** A set that is reused: most values add one object to it. */
let spare: Set<object> | null = null;

/** Names of properties as in a line, cached: similar entries have the same ones. */
const NAMES = new Map<string, string>();
const NAMES_MAX = 1000;

function encodeName(name: string): string {
  let text = NAMES.get(name);
  if (text === undefined) {
    text = `${JSON.stringify(name)}:`;
    if (NAMES.size < NAMES_MAX) NAMES.set(name, text);
  }
  return text;
}

const TRUE = '{"type":"boolean","value":true}';
const FALSE = '{"type":"boolean","value":false}';

/** Undefined for −0: JSON has it, but many readers turn it into 0. */
function encodeNumber(n: number): string | undefined {
  if (Number.isFinite(n)) {
    return Object.is(n, -0) ? undefined : `{"type":"number","value":${n}}`;
  }
  return `{"type":"number","value":"${n}"}`;
}

/** `met`: the objects that contain this one or precede it. One that occurs again has an identity, which
 * the common form would lose. */
function encode(value: unknown, met: Set<object>): string {
  switch (typeof value) {
    case "string":
      return encodeString(value);
    case "number":
      return encodeNumber(value) ?? unsayable();
    case "boolean":
      return value ? TRUE : FALSE;
    case "bigint":
      return `{"type":"bigint","value":"${value}"}`;
    case "undefined":
      return '{"type":"undefined"}';
    case "object":
      return value === null ? '{"type":"null","value":null}' : encodeObject(value, met);
    default:
      return unsayable();
  }
}

function encodeString(text: string): string {
  return `{"type":"string","value":${JSON.stringify(text)}}`;
}

function encodeObject(value: object, met: Set<object>): string {
  if (met.has(value)) unsayable();
  met.add(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return encodePlain(value, met);
  if (Array.isArray(value)) return encodeArray(value, met);
  if (ArrayBuffer.isView(value)) return encodeView(value, met);
  if (isU64(value)) return `{"type":"KvU64","value":"${value.value}"}`;
  if (value instanceof Map) {
    const pairs = Array.from(value, ([k, v]) => `[${encode(k, met)},${encode(v, met)}]`);
    return `{"type":"Map","value":[${pairs.join(",")}]}`;
  }
  if (value instanceof Set) {
    const items = Array.from(value, (item) => encode(item, met));
    return `{"type":"Set","value":[${items.join(",")}]}`;
  }
  if (value instanceof Date) {
    const time = Number.isNaN(value.getTime()) ? "null" : `"${value.toISOString()}"`;
    return `{"type":"Date","value":${time}}`;
  }
  if (value instanceof RegExp) {
    return `{"type":"RegExp","value":${JSON.stringify(String(value))}}`;
  }
  if (value instanceof ArrayBuffer) {
    const resizable = (value as { resizable?: boolean }).resizable === true;
    return resizable ? unsayable() : encodeBytes("ArrayBuffer", new Uint8Array(value));
  }
  if (value instanceof Error && ERRORS.has(value.name) && prototype === ERRORS.get(value.name)) {
    return encodeError(value, met);
  }
  return unsayable();
}

const ERRORS: ReadonlyMap<string, unknown> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map(
    (type) => [type.name, type.prototype] as const,
  ),
);

function encodePlain(value: object, met: Set<object>): string {
  let text = "";
  for (const name of Object.keys(value)) {
    const item = encode((value as Record<string, unknown>)[name], met);
    text += (text === "" ? "" : ",") + encodeName(name) + item;
  }
  return `{"type":"object","value":{${text}}}`;
}

function encodeArray(value: unknown[], met: Set<object>): string {
  // Holes and additional properties change the number of names.
  if (Object.keys(value).length !== value.length) unsayable();
  let text = "";
  for (let i = 0; i < value.length; i++) {
    if (!(i in value)) unsayable();
    text += (i === 0 ? "" : ",") + encode(value[i], met);
  }
  return `{"type":"Array","value":[${text}]}`;
}

function encodeView(view: ArrayBufferView, met: Set<object>): string {
  // A buffer that is shared, or larger than the view, has an identity that the common form would lose.
  if (met.has(view.buffer)) unsayable();
  met.add(view.buffer);
  if (view.byteLength !== view.buffer.byteLength) unsayable();
  if ((view.buffer as { resizable?: boolean }).resizable === true) unsayable();
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return encodeBytes(view.constructor.name, bytes);
}

function encodeBytes(type: string, bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
  return `{"type":"${type}","value":"${text}","byteLength":${bytes.byteLength}}`;
}

function encodeError(error: Error, met: Set<object>): string {
  const parts: string[] = [];
  if (Object.hasOwn(error, "message")) parts.push(`"message":${JSON.stringify(error.message)}`);
  if (typeof error.stack === "string") parts.push(`"stack":${JSON.stringify(error.stack)}`);
  if (Object.hasOwn(error, "cause")) parts.push(`"cause":${encode(error.cause, met)}`);
  return `{"type":"${error.name}","value":{${parts.join(",")}}}`;
}

function encodeAsCbor(value: unknown): Text {
  const writer = new Writer();
  encodeCbor(writer, value);
  const bytes = writer.copy();
  const text = (): string => encodeBytes("CBOR", bytes);
  return writer.fills === null ? text() : fillBlobs(bytes, writer.fills).then(text);
}

function unsayable(): never {
  throw UNSAYABLE;
}
