// Duty: keys as byte strings: one character for each byte, so that they compare like the bytes and
// can be keys of a Map; and as texts that no other key has.

import { type KeyPart, decodeKey, encodeKey } from "./key.js";
import { Writer } from "./writer.js";
import type { KvEntryKey, KvKey } from "../model/types.js";

/** Room for most keys. */
const KEY_BYTES = 128;

export function bytesOf(key: KvKey): string {
  const writer = new Writer(KEY_BYTES);
  encodeKey(writer, key);
  return writer.buf.toString("latin1", 0, writer.pos);
}

export function keyOf(id: string): KvEntryKey {
  const bytes = Buffer.from(id, "latin1");
  return decodeKey(bytes, 0, bytes.length);
}

/** A text that no other key has, as the default names of indexes begin. */
export function exactText(key: readonly KeyPart[]): string {
  const exactPart = (part: KeyPart): string => {
    if (typeof part === "string") return JSON.stringify(part);
    if (typeof part === "bigint") return `${part}n`;
    if (typeof part === "object") return `0x${Buffer.from(part as Uint8Array).toString("hex")}`;
    return Object.is(part, -0) ? "-0" : String(part);
  };
  return `[${key.map(exactPart).join(",")}]`;
}
