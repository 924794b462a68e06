// Duty: keys and texts for messages: shortened, and without control characters.

import { viewBytes } from "./slots.js";
import { KEY_PRINT_CHARS_MAX } from "../model/limits.js";

/** A key as a literal, shortened. Runs no code of its parts. */
export function printKey(key: unknown): string {
  if (!Array.isArray(key)) return typeof key;
  let text = "[";
  for (let i = 0; i < key.length; i++) {
    text += (i > 0 ? "," : "") + printPart(key[i]);
    if (text.length > KEY_PRINT_CHARS_MAX) return `${text.slice(0, KEY_PRINT_CHARS_MAX)}…`;
  }
  return `${text}]`;
}

/** A wrong argument, printed as {@link printKey} prints keys. */
export function printGiven(given: unknown): string {
  return Array.isArray(given) ? printKey(given) : printPart(given);
}

/** A string as a literal, shortened, without characters that a terminal acts upon. */
export function quote(text: string): string {
  const isLong = text.length > KEY_PRINT_CHARS_MAX;
  const shown = visible(JSON.stringify(text.slice(0, KEY_PRINT_CHARS_MAX)));
  return isLong ? `${shown.slice(0, -1)}…"` : shown;
}

/** C0, DEL and C1, which terminals interpret. */
const CONTROLS = /[\0-\x1f\x7f-\x9f]/g;
const CONTROLS_IN_LINES = /[\0-\t\v-\x1f\x7f-\x9f]/g;

/**
 * Text with its control characters as `\u001b`, which means the same in JSON and in a literal;
 * `lines`: but for the ends of lines.
 */
export function visible(text: string, lines = false): string {
  return text.replace(
    lines ? CONTROLS_IN_LINES : CONTROLS,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function printPart(part: unknown): string {
  if (typeof part === "string") return quote(part);
  if (typeof part === "bigint") return `${BigInt.asIntN(256, part) === part ? part : "…"}n`;
  if (ArrayBuffer.isView(part)) return `Uint8Array(${viewBytes(part)})`;
  if (typeof part === "object") return part === null ? "null" : "{…}";
  if (typeof part === "function") return "function";
  return String(part);
}
