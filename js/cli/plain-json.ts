// Duty: entries and values as plain JSON, for jq and other programs that know only JSON.
// Invariant: lossy by the rules of docs/cli.md, which a test compares; never an error: values
// that JSON does not have become null or text.

import { KvU64 } from "../codec/u64.js";
import type { ExportedEntry } from "../interchange/encode.js";

/** An entry as one line. */
export async function plainLine({
  key,
  value,
  versionstamp,
  expireAt,
}: ExportedEntry): Promise<string> {
  const end = expireAt == null ? "" : `,"expireAt":"${expireAt.toISOString()}"`;
  return `{"key":${plainKey(key)},"value":${await plainValue(value)},"versionstamp":"${versionstamp}"${end}}`;
}

export function plainKey(key: readonly unknown[]): string {
  return JSON.stringify(
    key.map((part) => (part instanceof Uint8Array ? base64(part) : simple(part))),
  );
}

export async function plainValue(value: unknown): Promise<string> {
  return JSON.stringify(await plain(value, [])) ?? "null";
}

/** `within`: the objects that hold this value. */
async function plain(value: unknown, within: readonly object[]): Promise<unknown> {
  if (typeof value !== "object" || value === null) return simple(value);
  if (value instanceof KvU64) return simple(value.value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof RegExp) return `${value}`;
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Blob) return base64(new Uint8Array(await value.arrayBuffer()));
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer)
    return base64(new Uint8Array(value));
  if (value instanceof Uint8Array || value instanceof DataView) return base64(value);
  if (value instanceof Number || value instanceof String || value instanceof Boolean)
    return value.valueOf();
  if (value instanceof BigInt) return simple(value.valueOf());
  // A cycle would not end.
  if (within.includes(value)) return null;
  const inner = [...within, value];
  if (ArrayBuffer.isView(value)) return [...(value as Int8Array)].map(simple);
  if (Array.isArray(value)) return await each(value, inner);
  if (value instanceof Set) return await each([...value], inner);
  if (value instanceof Map && ![...value.keys()].every((key) => typeof key === "string")) {
    return await each([...value], inner);
  }
  const pairs = value instanceof Map ? [...value] : Object.entries(value);
  const made: Record<string, unknown> = {};
  for (const [name, held] of pairs) {
    const property = {
      value: await plain(held, inner),
      enumerable: true,
      configurable: true,
      writable: true,
    };
    if (held !== undefined) Object.defineProperty(made, name, property);
  }
  return made;
}

async function each(items: readonly unknown[], within: readonly object[]): Promise<unknown[]> {
  const made: unknown[] = [];
  for (const item of items) made.push(await plain(item, within));
  return made;
}

/** A bigint is a number as long as a number holds it exactly. */
function simple(value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  return BigInt.asIntN(54, value) === value && Number.isSafeInteger(Number(value))
    ? Number(value)
    : `${value}`;
}

function base64({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength).toString("base64");
}
