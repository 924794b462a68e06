// Duty: keys as they stand in messages, cut to a length that a line can bear.

import { viewBytes } from "./codec/slots.js";

/** Most characters of a key in a message, as src/model/limits.rs has it. */
const KEY_PRINT_CHARS_MAX = 100;

/** A key as one would write it, shortened. Runs no code of its parts'. */
export function printKey(key: unknown): string {
  if (!Array.isArray(key)) return typeof key;
  let text = "[";
  for (let i = 0; i < key.length; i++) {
    text += (i > 0 ? "," : "") + printPart(key[i]);
    if (text.length > KEY_PRINT_CHARS_MAX) return `${text.slice(0, KEY_PRINT_CHARS_MAX)}…`;
  }
  return `${text}]`;
}

function printPart(part: unknown): string {
  if (typeof part === "string") return JSON.stringify(part.slice(0, KEY_PRINT_CHARS_MAX));
  if (typeof part === "bigint") return `${BigInt.asIntN(256, part) === part ? part : "…"}n`;
  if (ArrayBuffer.isView(part)) return `Uint8Array(${viewBytes(part)})`;
  if (typeof part === "object") return "{…}";
  return String(part);
}
