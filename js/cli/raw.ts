// Duty: values as bytes on the standard streams: `get --raw` out, `set --raw` and `set --file` in.

import { isUtf8 } from "node:buffer";
import { decodeLine } from "../interchange/decode.js";
import { parseJson } from "../interchange/integers.js";
import { WrongUsage } from "./outcome.js";
import { put } from "./output.js";
import { plainValue } from "./plain-json.js";

/** The types of a value that is read from bytes. */
export const KINDS = ["bytes", "text", "json", "entry"] as const;
export type Kind = (typeof KINDS)[number];

/**
 * Prints bytes unchanged, a string as UTF-8 without a line feed, and any other value as a line of
 * plain JSON.
 */
export async function putRaw(value: unknown): Promise<void> {
  if (typeof value === "string") return await put(value);
  if (value instanceof Blob) return await put(new Uint8Array(await value.arrayBuffer()));
  if (value instanceof ArrayBuffer) return await put(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) {
    return await put(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  await put(`${await plainValue(value)}\n`);
}

/** `entry` takes the value of a line of `--json` or of an export. */
export function readRaw(bytes: Buffer, kind: Kind): unknown {
  switch (kind) {
    case "bytes":
      return new Uint8Array(bytes);
    case "text":
      return textOf(bytes);
    case "json":
      return readAs(bytes, "JSON", parseJson);
    case "entry":
      return readAs(bytes, "a line of --json", (text) => decodeLine(text).value);
  }
}

/** The text of an input. Bytes that are not UTF-8 would become other characters. */
export function textOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  throw new WrongUsage(
    "the input is not UTF-8: convert it to UTF-8 first; set --as bytes stores it as it is",
  );
}

function readAs(bytes: Buffer, what: string, read: (text: string) => unknown): unknown {
  const text = textOf(bytes).trim();
  try {
    return read(text);
  } catch (error) {
    throw new WrongUsage(`the input is not ${what}: ${(error as Error).message}`);
  }
}
