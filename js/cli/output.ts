// Duty: prints results: for people, with colours if the terminal has them, or as JSON, one entry a
// line, lossless or plain.
// Invariant: all control characters on the terminal come from this file. One in a stored string, or in
// the message of an error, is printed as its escape.

import { inspect } from "node:util";
import type { KvChange, KvExplanation, KvKey, KvSearchEntry, KvVersion } from "../model/types.js";
import { visible } from "../codec/key-text.js";
import { type ExportedEntry, encodeKey, encodeLine, encodeValue } from "../interchange/encode.js";
import { printKeyPart, printLiteral } from "./print-literal.js";
import { askShell, printsOutput } from "./shell-context.js";
import { plainKey, plainLine, plainValue } from "./plain-json.js";

/** The size of a terminal that does not say it. */
const SCREEN_ROWS = 24;
const SCREEN_COLUMNS = 80;

/** The style of the output. */
export interface Style {
  readonly json: boolean;
  /** With `json`: plain JSON instead of the lossless form. */
  readonly plain: boolean;
  readonly color: boolean;
}

/** The output could not be written. */
export class OutputError extends Error {
  /** Whether the reader has closed the pipe, as `| head` does. */
  readonly readerGone: boolean;

  constructor(cause: NodeJS.ErrnoException) {
    super(`the output could not be written: ${cause.message}`, { cause });
    this.readerGone = cause.code === "EPIPE";
  }
}

/**
 * Writes to the standard output. Resolves once the system has accepted it: an acknowledgement of what
 * was printed waits for that. Rejects with {@link OutputError}.
 */
export function put(output: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!printsOutput())
      return reject(new OutputError(Object.assign(new Error("nobody reads"), { code: "EPIPE" })));
    const done = (error?: Error | null): void => {
      if (error) reject(new OutputError(error));
      // Writes to a terminal are synchronous; without a turn of the event loop Ctrl-C would have no
      // effect.
      else if (askShell() !== undefined) setImmediate(resolve);
      else resolve();
    };
    try {
      process.stdout.write(output, done);
    } catch (error) {
      done(error as Error);
    }
  });
}

/** Prints one line of plain text or JSON. */
export function print(line: string): Promise<void> {
  return put(`${visible(line)}\n`);
}

/** Replaces what is on the terminal by these lines; those that do not fit are cut. */
export function redraw(lines: readonly string[]): Promise<void> {
  const { rows = SCREEN_ROWS, columns = SCREEN_COLUMNS } = process.stdout;
  const shown = lines.slice(0, rows - 1).map((line) => visible(line).slice(0, columns - 1));
  return put(`\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
}

/** Prints lines whose parts are visible, and may be coloured. */
function printShown(lines: string): Promise<void> {
  return put(`${lines}\n`);
}

/** Prints a note on standard error. */
export function note(line: string): void {
  if (!printsOutput()) return;
  process.stderr.write(`${visible(line)}\n`);
}

export function fail(message: string): void {
  if (!printsOutput()) return;
  process.stderr.write(`openkv: ${visible(message)}\n`);
}

/** A fact that is no text, as people read it. */
function showFact(value: unknown, { color }: Style): string {
  const whole = { depth: null, maxArrayLength: null, maxStringLength: null };
  const plain = inspect(value, { ...whole, colors: false });
  const shown = visible(plain, true);
  // inspect() escapes strings, but not the text of errors and regular expressions. Control
  // characters in these could be mistaken for colours, so such a value is printed without colours.
  return color && shown === plain ? inspect(value, { ...whole, colors: true }) : shown;
}

function lineOf(entry: ExportedEntry, { plain }: Style): string | Promise<string> {
  return plain ? plainLine(entry) : encodeLine(entry);
}

function keyOf(key: readonly unknown[], { plain }: Style): string {
  return plain ? plainKey(key) : encodeKey(key as KvKey);
}

function valueOf(value: unknown, { plain }: Style): string | Promise<string> {
  return plain ? plainValue(value) : encodeValue(value);
}

export async function printEntry(entry: ExportedEntry, style: Style): Promise<void> {
  if (style.json) return await print(await lineOf(entry, style));
  const head = `${showKey(entry.key, style)} ${dim(`@${entry.versionstamp}`, style)}${ending(entry)}`;
  await printShown(`${head}\n${indented(await printLiteral(entry.value, style.color))}`);
}

export function printKey(
  entry: { key: readonly unknown[]; versionstamp: string; expireAt?: Date | null },
  style: Style,
): Promise<void> {
  const { key, versionstamp, expireAt } = entry;
  if (!style.json)
    return printShown(`${showKey(key, style)} ${dim(`@${versionstamp}`, style)}${ending(entry)}`);
  const end =
    expireAt == null
      ? ""
      : `,"expireAt":${style.plain ? JSON.stringify(expireAt) : expireAt.getTime()}`;
  return print(`{"key":${keyOf(key, style)},"versionstamp":"${versionstamp}"${end}}`);
}

/** A key that has no entry. */
export function printGone(key: readonly unknown[], style: Style): Promise<void> {
  return style.json
    ? print(`{"key":${keyOf(key, style)},"gone":true}`)
    : printShown(`${showKey(key, style)} ${dim("(no entry)", style)}`);
}

/** Prints the change of one key: its type, then the entry. */
export async function printChange(change: KvChange<unknown>, style: Style): Promise<void> {
  const { type, key, versionstamp } = change;
  if (type === "set") {
    if (style.json) await print(`{"type":"set",${(await lineOf(change, style)).slice(1)}`);
    else await printEntry(change, style);
  } else if (style.json) {
    await print(`{"type":"delete","key":${keyOf(key, style)},"versionstamp":"${versionstamp}"}`);
  } else {
    await printShown(`${showKey(key, style)} ${dim(`@${versionstamp}`, style)} deleted`);
  }
}

/** A version of an entry: its type, and when it was made. */
export async function printVersion(version: KvVersion, style: Style): Promise<void> {
  const { type, key, versionstamp, committedAt, value } = version;
  const expireAt = type === "delete" ? undefined : version.expireAt;
  if (style.json) {
    const at =
      committedAt === undefined
        ? ""
        : `,"committedAt":${style.plain ? JSON.stringify(committedAt) : committedAt.getTime()}`;
    const rest =
      type === "delete"
        ? `"key":${keyOf(key, style)},"versionstamp":"${versionstamp}"}`
        : (await lineOf({ key, value, versionstamp, expireAt: expireAt ?? null }, style)).slice(1);
    return await print(`{"type":"${type}"${at},${rest}`);
  }
  const when = committedAt === undefined ? "before the history" : committedAt.toISOString();
  const head = `${when} ${dim(`@${versionstamp}`, style)}${ending({ expireAt: expireAt ?? null })}`;
  if (type === "delete") return await printShown(`${head} deleted`);
  const what = type === "expiry" ? " (expiry changed)" : "";
  await printShown(`${head}${what}\n${indented(await printLiteral(value, style.color))}`);
}

/** An entry that differs between two moments. */
export interface Difference {
  readonly type: "added" | "changed" | "removed";
  /** null if there was none. */
  readonly before: ExportedEntry | null;
  readonly after: ExportedEntry | null;
}

const SIGNS = { added: "+", changed: "~", removed: "-" };

export async function printDifference(difference: Difference, style: Style): Promise<void> {
  const { type, before, after } = difference;
  const sides = { before, after };
  if (style.json) {
    let line = `{"type":"${type}","key":${keyOf((after ?? before)!.key, style)}`;
    for (const [name, entry] of Object.entries(sides)) {
      if (entry !== null) line += `,"${name}":${await lineOf(entry, style)}`;
    }
    return await print(`${line}}`);
  }
  const lines = [`${SIGNS[type]} ${showKey((after ?? before)!.key, style)}`];
  for (const [name, entry] of Object.entries(sides)) {
    if (entry === null) continue;
    const sign = name === "before" ? "-" : "+";
    lines.push(`  ${sign} ${dim(`@${entry.versionstamp}`, style)}${ending(entry)}`);
    lines.push(indented(indented(await printLiteral(entry.value, style.color))));
  }
  await printShown(lines.join("\n"));
}

/** A value with facts about it: a message, or a search result. */
export async function printValued(
  facts: Readonly<Record<string, unknown>>,
  value: unknown,
  style: Style,
): Promise<void> {
  if (style.json) {
    return await print(
      `${JSON.stringify(facts).slice(0, -1)},"value":${await valueOf(value, style)}}`,
    );
  }
  const parts = Object.entries(facts).map(([name, fact]) => {
    const text =
      fact instanceof Date
        ? fact.toISOString()
        : typeof fact === "string"
          ? fact
          : showFact(fact, UNSTYLED);
    return `${name} ${text}`;
  });
  await printShown(
    `${dim(parts.join("  "), style)}\n${indented(await printLiteral(value, style.color))}`,
  );
}

/** A search result. */
export async function printFound(entry: KvSearchEntry<unknown>, style: Style): Promise<void> {
  const { score, highlights } = entry;
  if (style.json) {
    const found = JSON.stringify(highlights === undefined ? { score } : { score, highlights });
    return await print(`${(await lineOf(entry, style)).slice(0, -1)},${found.slice(1)}`);
  }
  const { key, value } = entry;
  const head = `${showKey(key, style)} ${dim(`@${entry.versionstamp} score ${score.toPrecision(4)}`, style)}`;
  const below = Object.entries(highlights ?? {}).map(([field, text]) =>
    visible(`${field}: ${text}`, true),
  );
  const shown = highlights === undefined ? [await printLiteral(value, style.color)] : below;
  await printShown([head, ...shown.map(indented)].join("\n"));
}

const UNSTYLED: Style = { json: false, plain: false, color: false };

/** A key in a message. */
export function shownKey(key: readonly unknown[]): string {
  return showKey(key, UNSTYLED);
}

export async function printValue(value: unknown, style: Style): Promise<void> {
  if (style.json) await print(await valueOf(value, style));
  else await printShown(await printLiteral(value, style.color));
}

/** A record of plain facts: aligned names and values, or one line of JSON. */
export function printFacts(facts: Readonly<Record<string, unknown>>, style: Style): Promise<void> {
  if (style.json) {
    return print(
      JSON.stringify(facts, (_, value: unknown) =>
        typeof value === "bigint" ? `${value}` : value,
      ),
    );
  }
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  const lines = Object.entries(facts).map(([name, value]) => {
    const shown = typeof value === "string" ? visible(value) : showFact(value, style);
    return `${name.padEnd(width)}  ${shown}`;
  });
  return printShown(lines.join("\n"));
}

/** Prints what a list reads. */
export function printExplanation(explained: KvExplanation, style: Style): Promise<void> {
  if (style.json) return print(JSON.stringify(explained));
  const { method, branches, reason, indexEntries, visited, filtered, returned, complete } =
    explained;
  const branch = ({ index, bounds }: KvExplanation["branches"][number]): string => {
    const of = bounds.map(({ path, ranges }) => `${path}: ${ranges.join(", ")}`);
    return of.length === 0 ? index : `${index} (${of.join("; ")})`;
  };
  return printFacts(
    {
      method,
      ...(branches.length === 0 ? {} : { reads: branches.map(branch).join(" or ") }),
      ...(reason === null ? {} : { reason }),
      ...{ indexEntries, visited, filtered, returned },
      ...(complete ? {} : { complete }),
    },
    style,
  );
}

function showKey(key: readonly unknown[], style: Style): string {
  return `[${key.map((part) => printKeyPart(part, style.color)).join(", ")}]`;
}

function ending({ expireAt }: { expireAt?: Date | null }): string {
  return expireAt == null ? "" : ` until ${expireAt.toISOString()}`;
}

function dim(text: string, { color }: Style): string {
  return color ? `\u001b[2m${visible(text)}\u001b[22m` : visible(text);
}

function indented(text: string): string {
  return text.replace(/^/gm, "  ");
}
