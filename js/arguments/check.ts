// Duty: checks option objects, with the texts of Deno KV. Keys and values are checked when they are
// encoded; their sizes are compared with the limits of the handle there.

import { invalid, misuse, tooLarge } from "../model/errors.js";
import { atCommit } from "./at-commit.js";
import { inMs, textAdvice } from "./duration.js";
import { printGiven, printKey, quote } from "../codec/key-text.js";
import { refuseMistaken, refuseUnknown } from "./names.js";
import { option, optionsOf } from "./options.js";
import { nameOf, shown } from "./shown.js";
import type { KvKey } from "../model/types.js";
import { BACKOFF_DEFAULT_MS } from "../model/limits.js";

export { nameOf, shown } from "./shown.js";

/** The limits of a handle, by their names in the option `limits` of `openKv`. */
export type Limits = Readonly<Record<string, number>>;

/** Deno's text for an argument of the wrong type. */
export function wrongShape(expected: string, given: unknown, remedy?: string): TypeError {
  const words = `invalid type; expected: ${expected}, got: ${nameOf(given)}`;
  return atCommit(invalid(remedy === undefined ? words : `${words}: ${remedy}`));
}

/** The error for an argument that is not a list of keys. */
export function noKeys(method: string, given: unknown): TypeError {
  const remedy = `${method}: keys are ${printGiven(given)}; write an array of keys: [["users", 1]]`;
  return wrongShape("array", given, remedy);
}

/**
 * The error for a count or size over a limit of the handle: Deno's text, and the option that raises
 * the limit.
 */
export function overLimit(
  words: string,
  name: string,
  limits: Limits,
  given: number,
  key?: KvKey,
): TypeError {
  const unit = name.includes("Bytes") ? " bytes" : "";
  const suffix = key === undefined ? "" : ` for key ${printKey(key)}`;
  return tooLarge(
    `${words} (max ${limits[name]}${unit}): ${given}${unit} given${suffix}${raising(name)}`,
  );
}

/** What the refusal of something over a limit of the handle says beside. */
export function raising(name: string): string {
  return `; raise limits.${name} of openKv to allow it`;
}

/** A call of set without its value: Deno stores undefined. */
export function missingValue(method: string): TypeError {
  return misuse(
    `${method}: the value is missing: write ${method}(key, value), with undefined if that is to be stored`,
  );
}

const READ_OPTIONS = ["consistency", "withExpiry", "signal"];
const SET_OPTIONS = ["expireIn", "expireAt"];
const ENQUEUE_OPTIONS = ["delay", "keysIfUndelivered", "backoffSchedule"];
const NAMED_ONLY = [
  "queue",
  "at",
  "deduplicationKey",
  "deduplication",
  "priority",
  "deadRetention",
] as const;
const WATCH_OPTIONS = ["raw", "signal"];
const CHECK_PROPERTIES = ["key", "versionstamp", "value"];
const MUTATION_PROPERTIES = ["key", "type", "value", "expireIn", "expireAt"];

/** Checks the options of `get` and `getMany`. Both levels mean the same on a local database. */
export function checkReadOptions(options: { consistency?: unknown; withExpiry?: unknown }): void {
  refuseMistaken(options, READ_OPTIONS);
  checkFlag("withExpiry", option(options, "withExpiry"));
  checkConsistency(option(options, "consistency"));
}

export function checkConsistency(level: unknown): void {
  if (level == null || level === "strong" || level === "eventual") return;
  if (typeof level !== "string")
    throw wrongShape("enum", level, 'consistency is "strong" or "eventual"');
  throw invalid(
    `unknown variant \`${quote(level).slice(1, -1)}\`, expected \`strong\` or \`eventual\`: the option consistency`,
  );
}

/** Checks the names of the options of a set. */
export function checkSetOptions(options: object): void {
  refuseMistaken(options, SET_OPTIONS);
}

/** The upper bound is that of the resulting time ({@link expiryAfter} of expiry-options.ts). */
export function checkExpireIn(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const expireIn = inMs(given);
  if (typeof expireIn !== "number" || !(expireIn >= 0) || !Number.isInteger(expireIn)) {
    throw invalid(
      `expireIn must be a non-negative integer: received ${shown(expireIn)}${textAdvice(expireIn)}`,
    );
  }
  return expireIn;
}

/** The error for a check without a key, which may be a key itself. */
export function noCheck(check: unknown, at: number): TypeError {
  const key = Array.isArray(check) ? printKey(check) : '["users", 1]';
  const received = `check was given ${printGiven(check)}, which has no key (checks[${at}])`;
  return wrongShape(
    "array",
    undefined,
    `${received}; write check({ key: ${key}, versionstamp: null })`,
  );
}

/** Checks the names of an AtomicCheck; an entry is one. */
export function checkCheck(check: object): void {
  refuseMistaken(check, CHECK_PROPERTIES);
}

/** Checks the names of a KvMutation. */
export function checkMutation(mutation: object): void {
  refuseMistaken(mutation, MUTATION_PROPERTIES);
}

/** A checked enqueue. */
export interface QueueOptions {
  /** From the commit to the first delivery, in whole milliseconds. */
  readonly delayMs: number;
  readonly keysIfUndelivered: readonly KvKey[];
  /** Waiting times before the retries, in whole milliseconds. */
  readonly backoffMs: readonly number[];
  /** The first delivery in ms since the epoch, in place of the delay. */
  readonly atMs: number | undefined;
  /** The options of messages of named queues. */
  readonly named: NamedOptions | undefined;
}

export interface NamedOptions {
  readonly queue: string;
  readonly priority: number;
  readonly deadRetentionMs: number | undefined;
  readonly deduplicationKey: string | undefined;
  /** The number of its mode; 0: a message whose key is taken adds nothing. */
  readonly deduplication: number;
  /** The longest time of a handler. */
  readonly timeoutMs: number | undefined;
  /** How long its result is kept. */
  readonly keepResultMs: number | undefined;
  /** Its group. */
  readonly group: string | undefined;
}

const NO_KEYS: readonly KvKey[] = [];
const QUEUE_DEFAULTS: QueueOptions = {
  delayMs: 0,
  keysIfUndelivered: NO_KEYS,
  backoffMs: BACKOFF_DEFAULT_MS,
  atMs: undefined,
  named: undefined,
};

interface GivenQueueOptions extends Partial<Record<(typeof NAMED_ONLY)[number], unknown>> {
  delay?: unknown;
  keysIfUndelivered?: unknown;
  backoffSchedule?: unknown;
}

export function checkQueueOptions(
  options: GivenQueueOptions | null | undefined,
  limits: Limits,
): QueueOptions {
  if (options == null) {
    const backoffMs = checkBackoff(undefined, limits);
    return backoffMs === BACKOFF_DEFAULT_MS ? QUEUE_DEFAULTS : { ...QUEUE_DEFAULTS, backoffMs };
  }
  refuseMistaken(options, ENQUEUE_OPTIONS);
  const name = NAMED_ONLY.find((name) => {
    const given = option(options, name);
    // A function is no option: a text and an array have a method "at".
    return given !== undefined && typeof given !== "function";
  });
  if (name !== undefined) {
    throw misuse(
      `enqueue: option '${name}' is for named queues: use kv.queue(name).enqueue(), ` +
        "or atomic().enqueue() with queue",
    );
  }
  return {
    delayMs: checkDelay(option(options, "delay"), limits),
    keysIfUndelivered: checkUndelivered(option(options, "keysIfUndelivered")),
    backoffMs: checkBackoff(option(options, "backoffSchedule"), limits),
    atMs: undefined,
    named: undefined,
  };
}

const MS_PER_DAY = 86_400_000;

export function checkDelay(given: unknown, limits: Limits): number {
  if (given == null) return 0;
  const delay = inMs(given);
  if (typeof delay !== "number" && typeof delay !== "bigint") {
    const received = `delay is ${printGiven(delay)}, and no number of milliseconds`;
    throw wrongShape("integer", delay, received + textAdvice(delay));
  }
  if (delay < 0) throw invalid(`Delay must be >= 0: received ${delay}`);
  if (delay > limits.delayMsMax) {
    const days = limits.delayMsMax / MS_PER_DAY;
    throw invalid(
      `Delay cannot be greater than ${days} days: received ${delay} (max ${limits.delayMsMax} ms)` +
        raising("delayMsMax"),
    );
  }
  const ms = Number(delay);
  if (Number.isNaN(ms)) throw invalid("Delay cannot be NaN");
  return Math.trunc(ms);
}

export function checkUndelivered(keys: unknown): readonly KvKey[] {
  if (keys == null) return NO_KEYS;
  if (!Array.isArray(keys)) {
    const received = `keysIfUndelivered are ${printGiven(keys)}`;
    throw wrongShape("array", keys, `${received}; write an array of keys: [["dead", 1]]`);
  }
  return itemsOf<KvKey>(keys);
}

/** Copies by index: an array's iterator may yield other items than its elements. */
function itemsOf<T>(array: readonly T[]): T[] {
  const items: T[] = [];
  for (let i = 0, { length } = array; i < length; i++) items.push(array[i]);
  return items;
}

export function checkBackoff(
  schedule: unknown,
  limits: Limits,
  otherwise: readonly number[] = BACKOFF_DEFAULT_MS,
): readonly number[] {
  if (schedule === undefined) return withinLimits(otherwise, limits);
  // As in Deno: the call refuses null, the commit every other type.
  if (schedule === null) throw invalid("backoffSchedule must be an array: received null");
  if (!Array.isArray(schedule)) {
    const received = `backoffSchedule is ${printGiven(schedule)}`;
    throw wrongShape(
      "array",
      schedule,
      `${received}; write an array of milliseconds: [1000, 5000]`,
    );
  }
  const most = limits.backoffIntervalsMax;
  if (schedule.length > most) {
    throw tooLarge(
      `Invalid backoffSchedule, max ${most} intervals allowed: ${schedule.length} given` +
        raising("backoffIntervalsMax"),
    );
  }
  return itemsOf<unknown>(schedule).map((given, index) => {
    const interval = inMs(given);
    if (typeof interval !== "number") {
      const received = `backoffSchedule[${index}] is ${printGiven(interval)}`;
      const words = `${received}, and no number of milliseconds${textAdvice(interval)}`;
      throw wrongShape("integer", interval, words);
    }
    const longest = limits.backoffIntervalMsMax;
    if (!(interval >= 0 && interval <= longest)) {
      const advice = interval > longest ? raising("backoffIntervalMsMax") : "";
      throw invalid(
        `Invalid backoffSchedule, interval at index ${index} is invalid: it must be from 0 to ` +
          `${longest} ms: received ${interval}${advice}`,
      );
    }
    return Math.trunc(interval);
  });
}

/** The default schedule, cut to the limits of the handle. */
function withinLimits(schedule: readonly number[], limits: Limits): readonly number[] {
  const { backoffIntervalsMax: most, backoffIntervalMsMax: longest } = limits;
  const fits = schedule.length <= most && schedule.every((interval) => interval <= longest);
  return fits ? schedule : schedule.slice(0, most).map((ms) => Math.min(ms, longest));
}

/** An option that is true or false. */
export function checkFlag(name: string, value: unknown): void {
  if (value === undefined || typeof value === "boolean") return;
  throw invalid(`${name} must be a boolean: received ${shown(value)}`);
}

/** The `raw` option of a watch. */
export function checkWatchOptions(options: { raw?: unknown; since?: unknown }): boolean {
  const raw = Boolean(option(options, "raw"));
  refuseMistaken(options, WATCH_OPTIONS);
  if (option(options, "since") !== undefined) {
    throw misuse("kv.watch: since is for a selector: keys tell their newest state");
  }
  return raw;
}

/** A key for a method that Deno does not have: the message names the method. */
export function requireKey(method: string, key: unknown): void {
  if (Array.isArray(key)) return;
  throw invalid(`${method}: key must be an array: received ${shown(key)}`);
}

/** A selector for a method that Deno does not have. */
export function requireSelector(method: string, what: string, selector: unknown): void {
  if (typeof selector === "object" && selector !== null) return;
  throw invalid(`${method}: expected ${what}: received ${shown(selector)}`);
}

/**
 * The options of a method that Deno does not have: an object. Unknown names are refused.
 */
export function checkOptions<Name extends string>(
  method: string,
  options: unknown,
  known: readonly Name[],
): { readonly [N in Name]?: unknown } {
  if (options === undefined || options === null) return NO_OPTIONS as { [N in Name]?: unknown };
  if (typeof options !== "object") {
    throw misuse(`${method}: options must be an object: received ${shown(options)}`);
  }
  refuseUnknown(method, options, known);
  return optionsOf(options, known);
}

const NO_OPTIONS: object = Object.freeze({ __proto__: null });
