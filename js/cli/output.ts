// Duty: what is printed, and how: for people with colours where a terminal takes them, or lossless
// JSON, one entry a line.

import { inspect } from "node:util";
import { type ExportedEntry, encodeKey, encodeLine, encodeValue } from "../interchange/encode.js";

/** How to print. */
export interface Style {
  readonly json: boolean;
  readonly color: boolean;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Tells people of something beside the result. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

export function fail(message: string): void {
  process.stderr.write(`openkv: ${message}\n`);
}

function show(value: unknown, { color }: Style): string {
  return inspect(value, { colors: color, depth: null, maxArrayLength: null, maxStringLength: null });
}

export function printEntry(entry: ExportedEntry, style: Style): void {
  if (style.json) {
    print(encodeLine(entry));
    return;
  }
  print(`${showKey(entry.key, style)} ${dim(`@${entry.versionstamp}`, style)}${ending(entry)}`);
  print(indented(show(entry.value, style)));
}

export function printKey(entry: { key: readonly unknown[]; versionstamp: string }, style: Style): void {
  const { key, versionstamp } = entry;
  if (style.json) print(`{"key":${encodeKey(key as never)},"versionstamp":"${versionstamp}"}`);
  else print(`${showKey(key, style)} ${dim(`@${versionstamp}`, style)}`);
}

export function printValue(value: unknown, style: Style): void {
  print(style.json ? encodeValue(value) : show(value, style));
}

/** A record of plain facts: aligned names and values, or one line of JSON. */
export function printFacts(facts: Readonly<Record<string, unknown>>, style: Style): void {
  if (style.json) {
    print(JSON.stringify(facts, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)));
    return;
  }
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  for (const [name, value] of Object.entries(facts)) {
    const shown = typeof value === "string" ? value : show(value, style);
    print(`${name.padEnd(width)}  ${shown}`);
  }
}

function showKey(key: readonly unknown[], style: Style): string {
  return `[${key.map((part) => showPart(part, style)).join(", ")}]`;
}

function showPart(part: unknown, style: Style): string {
  if (part instanceof Uint8Array) return `u8"${Buffer.from(part).toString("hex")}"`;
  return typeof part === "string" ? JSON.stringify(part) : show(part, style);
}

function ending({ expireAt }: ExportedEntry): string {
  return expireAt == null ? "" : ` until ${expireAt.toISOString()}`;
}

function dim(text: string, { color }: Style): string {
  return color ? `\u001b[2m${text}\u001b[22m` : text;
}

function indented(text: string): string {
  return text.replace(/^/gm, "  ");
}
