// Duty: parses arguments and options for the API. One that cannot be parsed is wrong usage, reported
// before a database is opened.

import { type Command, InvalidArgumentError, Option } from "commander";
import { checkDuration, parseDuration } from "../arguments/duration.js";
import type { KvFilter, KvKey, KvListSelector, KvOrder } from "../model/types.js";
import { LiteralError, parseKey, parseLiteral } from "./literal.js";
import { WrongUsage } from "./outcome.js";

export const key = (text: string): KvKey => parseKey(text) as KvKey;

/** A key, as one array or as one argument for each part. */
export const keyOf = (words: readonly string[]): KvKey => parseKey(...words) as KvKey;

/** The description of such a key. */
export const KEY_WORDS = "the key: an array, or a word for each part";
export const PREFIX_WORDS = "only keys that extend this one: an array, or a word for each part";

/** Collects several keys. */
export const keys = (text: string, before: KvKey[] = []): KvKey[] => [...before, key(text)];

/** A whole number that is not negative. */
export function count(text: string): number {
  const n = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(n) || n < 0) {
    throw new InvalidArgumentError("Not a whole number.");
  }
  return n;
}

/** A whole number of at least 1. */
export function some(text: string): number {
  const n = count(text);
  if (n === 0) throw new InvalidArgumentError("Give at least 1.");
  return n;
}

/** The end of the description of an option with a duration. */
export const UNITS = "30s, 1h30m or 2d; a number alone is milliseconds";

/** A duration in milliseconds: a number alone, or numbers with units. */
export function duration(text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) : parseDuration(text);
  if (Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError(
    "Give a duration, as 30s, 1h30m or 2d (units: ms, s, m, h, d), or a whole number of milliseconds.",
  );
}

/** Durations with commas between them. */
export function durations(text: string): number[] {
  return text.split(",").map(duration);
}

/** A duration in milliseconds: `name` is that of the option. */
export function durationOf(name: string, given: string): number {
  try {
    return checkDuration(name, given);
  } catch (error) {
    throw new WrongUsage((error as Error).message);
  }
}

/** Whole numbers with commas between them. */
export function counts(text: string): number[] {
  return text.split(",").map(count);
}

/** Conditions on values: an object literal. */
export function filter(text: string): KvFilter {
  const parsed = parseLiteral(text);
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
    return parsed as KvFilter;
  throw new LiteralError("conditions must be an object, as { age: { $gte: 18 } }", text, 0);
}

/** The order of a list: a path, or an object literal of paths. */
export function order(text: string): KvOrder {
  if (!text.trimStart().startsWith("{")) return text;
  return parseLiteral(text) as KvOrder;
}

/** A path of a value index: a name, or an object literal with its order. */
export function indexPath(text: string): string | { path: string; order?: "asc" | "desc" } {
  if (!text.trimStart().startsWith("{")) return text;
  return parseLiteral(text) as { path: string };
}

/** The options of commands that take bounds beside a prefix. */
export interface RangeOptions {
  start?: KvKey;
  end?: KvKey;
}

export function withRange(command: Command): Command {
  return command
    .option("--start <key>", "from this key on", key)
    .option("--end <key>", "up to, and without, this key", key);
}

export function withWhere(command: Command): Command {
  return command.option(
    "-w, --where <filter>",
    "only values that meet these conditions: '{ age: { $gte: 18 } }'",
    filter,
  );
}

/** The description of the option that explains instead of reading. */
export const EXPLAIN: readonly [string, string] = [
  "--explain",
  "instead: the value indexes that it reads, and how many entries it visits, leaves out and returns",
];

export function selectorOf(prefix: KvKey, { start, end }: RangeOptions): KvListSelector {
  if (start !== undefined && end !== undefined && prefix.length === 0) return { start, end };
  return { prefix, ...(start && { start }), ...(end && { end }) } as KvListSelector;
}

/** The option that confirms an irreversible command. */
export const YES: readonly [string, string] = [
  "-y, --yes",
  "do not ask; required without a terminal",
];

/** The encoding of the values of a file that a command creates. */
export const ENCODING: readonly [string, string] = [
  "--encoding <how>",
  "of a new file: cbor, or v8, which Deno opens (default: cbor)",
];

/** Bounds of one served database. */
export interface QuotaOptions {
  quotaBytes?: number;
  quotaOperations?: number;
  quotaQueueDepth?: number;
  quotaWatches?: number;
}

export function withQuotas(command: Command): Command {
  const quota = (flags: string, what: string): Option => new Option(flags, what).argParser(count);
  return command
    .addOption(
      quota(
        "--quota-bytes <bytes>",
        "bytes at which writes that add are refused (default: no bound)",
      ),
    )
    .addOption(quota("--quota-operations <count>", "requests per second (default: no bound)"))
    .addOption(
      quota(
        "--quota-queue-depth <count>",
        "messages at which new ones are refused (default: no bound)",
      ),
    )
    .addOption(quota("--quota-watches <count>", "watches at one time (default: no bound)"));
}

export interface Quotas {
  bytes?: number;
  operationsPerSecond?: number;
  queueDepth?: number;
  watches?: number;
}

/** The given quotas, with the names of the API. */
export function quotasOf(options: QuotaOptions): Quotas {
  return {
    ...(options.quotaBytes !== undefined && { bytes: options.quotaBytes }),
    ...(options.quotaOperations !== undefined && { operationsPerSecond: options.quotaOperations }),
    ...(options.quotaQueueDepth !== undefined && { queueDepth: options.quotaQueueDepth }),
    ...(options.quotaWatches !== undefined && { watches: options.quotaWatches }),
  };
}
