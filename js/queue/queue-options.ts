// Duty: checks the arguments of named queues. An error names the argument, its bounds and the given
// value; an unknown option is refused.

import { invalid, misuse, tooLarge } from "../model/errors.js";
import {
  type Limits,
  type QueueOptions,
  checkBackoff,
  checkDelay,
  checkOptions,
  checkUndelivered,
  raising,
  shown,
} from "../arguments/check.js";
import { exponential, isRule } from "./exponential.js";
import { LIMIT_ALGORITHMS } from "../model/limit-algorithms.js";
import { checkDuration, checkDurationIn, inMs } from "../arguments/duration.js";
import { option, without } from "../arguments/options.js";
import type { OnError } from "./handler-failures.js";
import { checkSignal } from "../arguments/signal.js";
import { timeOfDate } from "../model/brands.js";
import { LIMITER_LIMIT_MAX, NAMED_BACKOFF_DEFAULT_MS, TIME_MS_MAX } from "../model/limits.js";

/** The bounds of the addon, by name. */
type Bounds = Readonly<Record<string, number>>;

/** The default duration of the lock of a received message. */
const RECEIVE_LOCK_MS = 30_000;
/** Messages that a listener of a named queue handles at a time, by default. */
const CONCURRENCY = 10;
/** Dead letters of a page, by default. */
const DEAD_LIST = 100;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Text that is not empty, of at most so many bytes in UTF-8. */
export function checkText(what: string, text: unknown, bytesMax: number): string {
  if (typeof text !== "string") {
    throw invalid(`${what} must be a string: received ${shown(text)}`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes === 0) throw invalid(`${what} must not be empty`);
  if (bytes > bytesMax) {
    throw tooLarge(`${what} is too long (max ${bytesMax} bytes): ${bytes} bytes given`);
  }
  if (LONE_SURROGATE.test(text)) {
    throw invalid(`${what} must be well-formed: it has half of a surrogate pair`);
  }
  return text;
}

function checkInteger(what: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw invalid(`${what} must be an integer from ${min} to ${max}: received ${shown(value)}`);
}

function optionalInteger<Default>(
  what: string,
  value: unknown,
  min: number,
  max: number,
  otherwise: Default,
): number | Default {
  return value === undefined ? otherwise : checkInteger(what, value, min, max);
}

/** As {@link optionalInteger}, of ms: a text with units is a duration. */
function optionalMs<Default>(
  what: string,
  value: unknown,
  min: number,
  max: number,
  otherwise: Default,
): number | Default {
  return value === undefined ? otherwise : checkDurationIn(what, value, min, max);
}

export function checkQueueName(name: unknown, bounds: Bounds): string {
  return checkName("kv.queue: name", name, bounds);
}

/** The name of a queue. Those of openkv's own queues begin with U+0001. */
function checkName(what: string, name: unknown, bounds: Bounds): string {
  const text = checkText(what, name, bounds.queueNameBytesMax);
  if (text.startsWith("\u0001")) {
    throw invalid(`${what} must not begin with U+0001, as those of openkv's own queues do`);
  }
  return text;
}

/** What messages of a queue have, unless their own options say otherwise. */
export interface QueueDefaults {
  readonly deadRetentionMs: number | undefined;
  readonly keepResultMs: number | undefined;
}

const NO_DEFAULTS: QueueDefaults = { deadRetentionMs: undefined, keepResultMs: undefined };

/** The options that `kv.queue` itself takes. */
export function checkQueueDefaults(options: unknown, bounds: Bounds): QueueDefaults {
  const method = "kv.queue";
  const { deadRetention, keepResult } = checkOptions(method, options, [
    "deadRetention",
    "keepResult",
  ]);
  return {
    deadRetentionMs: checkRetention(method, deadRetention, bounds),
    keepResultMs: checkKeepResult(method, keepResult),
  };
}

function checkKeepResult(method: string, value: unknown): number | undefined {
  return value === undefined ? undefined : checkDuration(`${method}: keepResult`, value);
}

function checkRetention(method: string, value: unknown, bounds: Bounds): number | undefined {
  return optionalMs(`${method}: deadRetention`, value, 0, bounds.deadRetentionMsMax, undefined);
}

/** The options of a message of a named queue, without its due time. */
export const MESSAGE_OPTIONS = [
  "backoffSchedule",
  "keysIfUndelivered",
  "deduplicationKey",
  "deduplication",
  "priority",
  "deadRetention",
  "timeout",
  "keepResult",
  "group",
] as const;

const ENQUEUE_OPTIONS = ["delay", "at", ...MESSAGE_OPTIONS] as const;

/** What a message does whose key is taken, by the numbers in frames. */
export const DEDUPLICATIONS = ["drop", "replace", "debounce", "again"] as const;

/** The options of an enqueue into the queue `name`. */
export function checkNamedEnqueue(
  method: string,
  name: string,
  options: unknown,
  limits: Limits,
  bounds: Bounds,
  now: () => number,
  defaults = NO_DEFAULTS,
): QueueOptions {
  const given = checkOptions(method, options, ENQUEUE_OPTIONS);
  if (given.delay != null && given.at != null) {
    throw invalid(`${method}: give either delay or at, not both`);
  }
  const { deduplicationKey: key } = given;
  return {
    delayMs: checkDelay(given.delay, limits),
    atMs: checkAt(method, given.at, limits, now),
    keysIfUndelivered: checkUndelivered(given.keysIfUndelivered),
    backoffMs: isRule(given.backoffSchedule)
      ? exponential(method, given.backoffSchedule, limits, Math.random)
      : checkBackoff(given.backoffSchedule, limits, NAMED_BACKOFF_DEFAULT_MS),
    named: {
      queue: name,
      priority: optionalInteger(`${method}: priority`, given.priority, 0, bounds.priorityMax, 0),
      deadRetentionMs:
        checkRetention(method, given.deadRetention, bounds) ?? defaults.deadRetentionMs,
      keepResultMs: checkKeepResult(method, given.keepResult) ?? defaults.keepResultMs,
      deduplicationKey:
        key === undefined
          ? undefined
          : checkText(`${method}: deduplicationKey`, key, bounds.deduplicationKeyBytesMax),
      deduplication: checkDeduplication(method, given.deduplication, key),
      timeoutMs: checkTimeout(method, given.timeout, bounds),
      group: given.group === undefined ? undefined : checkGroup(method, given.group, bounds),
    },
  };
}

const CONTROL = /\p{Control}/u;

/** The name of a group. */
export function checkGroup(method: string, group: unknown, bounds: Bounds): string {
  const text = checkText(`${method}: group`, group, bounds.messageGroupBytesMax);
  if (!CONTROL.test(text)) return text;
  throw invalid(`${method}: group must have no control characters: received ${shown(group)}`);
}

/** The options of `pause` and `resume`. */
export function checkPause(method: string, options: unknown, bounds: Bounds): string | undefined {
  const { group } = checkOptions(method, options, ["group"]);
  return group === undefined ? undefined : checkGroup(method, group, bounds);
}

/** The limit of a queue or of a group. */
export interface RunLimit {
  readonly concurrency: number | undefined;
  readonly rate:
    | { readonly limit: number; readonly perMs: number; readonly algorithm: number }
    | undefined;
}

/** The limits of a queue, and of each of its groups. */
export function checkLimits(method: string, limits: unknown, bounds: Bounds): RunLimit[] {
  if (typeof limits !== "object" || limits === null) {
    throw invalid(
      `${method}: limits must be { concurrency, rate, group }: received ${shown(limits)}`,
    );
  }
  const { group, ...queue } = checkOptions(method, limits, ["concurrency", "rate", "group"]);
  const ofGroup = checkOptions(`${method}: group`, group, ["concurrency", "rate"]);
  return [
    checkRunLimit(`${method}: `, queue, bounds),
    checkRunLimit(`${method}: group.`, ofGroup, bounds),
  ];
}

function checkRunLimit(
  method: string,
  { concurrency, rate }: { concurrency?: unknown; rate?: unknown },
  bounds: Bounds,
): RunLimit {
  const most = bounds.concurrencyLimitMax;
  const running = optionalInteger(`${method}concurrency`, concurrency, 1, most, undefined);
  if (rate === undefined) return { concurrency: running, rate: undefined };
  if (typeof rate !== "object" || rate === null) {
    throw invalid(`${method}rate must be { limit, per, algorithm }: received ${shown(rate)}`);
  }
  const given = checkOptions(`${method}rate`, rate, ["limit", "per", "algorithm"]);
  const { algorithm = LIMIT_ALGORITHMS[0] } = given;
  const number = (LIMIT_ALGORITHMS as readonly unknown[]).indexOf(algorithm);
  if (number < 0) {
    throw invalid(
      `${method}rate.algorithm must be "fixed", "sliding" or "token-bucket": received ${shown(algorithm)}`,
    );
  }
  return {
    concurrency: running,
    rate: {
      limit: checkInteger(`${method}rate.limit`, given.limit, 1, LIMITER_LIMIT_MAX),
      perMs: checkDuration(`${method}rate.per`, given.per),
      algorithm: number,
    },
  };
}

export type GroupsOptions = Pick<PeekOptions, "limit" | "cursor">;

/** The options of `kv.queue().groups`. */
export function checkGroupsPage(options: unknown, bounds: Bounds): GroupsOptions {
  const method = "kv.queue().groups";
  const { limit, cursor } = checkOptions(method, options, ["limit", "cursor"]);
  return {
    limit: optionalInteger(`${method}: limit`, limit, 1, bounds.groupsListMax, PEEK),
    cursor: checkCursor(method, "groups", cursor),
  };
}

function checkDeduplication(method: string, mode: unknown, key: unknown): number {
  if (mode === undefined) return 0;
  const number = (DEDUPLICATIONS as readonly unknown[]).indexOf(mode);
  if (number < 0) {
    throw invalid(
      `${method}: deduplication must be "drop", "replace", "debounce" or "again": received ${shown(mode)}`,
    );
  }
  if (key === undefined) throw invalid(`${method}: deduplication needs a deduplicationKey`);
  return number;
}

/** A time of delivery, in ms since the epoch. */
function checkAt(
  method: string,
  at: unknown,
  limits: Limits,
  now: () => number,
): number | undefined {
  if (at == null) return undefined;
  const time = timeOfDate(at);
  const ms = time ?? at;
  if (typeof ms !== "number" || !Number.isFinite(ms)) {
    throw invalid(`${method}: at must be a Date or ms since the epoch: received ${shown(at)}`);
  }
  const delay = ms - now();
  if (delay > limits.delayMsMax) {
    throw invalid(
      `${method}: at is too late (max ${limits.delayMsMax} ms from now): ${Math.ceil(delay)} ms ` +
        `from now given${raising("delayMsMax")}`,
    );
  }
  return Math.trunc(ms);
}

/** The `queue` of options of `atomic().schedule` and `unschedule`, and the other options. */
export function queueOf(
  method: string,
  options: unknown,
  bounds: Bounds,
): { queue: string; rest: unknown } {
  if (typeof options !== "object" || options === null) {
    throw invalid(`${method}: options must have the queue: received ${shown(options)}`);
  }
  const queue = checkName(
    `${method}: queue`,
    option(options as { queue?: unknown }, "queue"),
    bounds,
  );
  return { queue, rest: without(options, "queue") };
}

/** The options of `atomic().enqueue`: undefined for a message of Deno's queue. */
export function checkAtomicEnqueue(
  options: unknown,
  limits: Limits,
  bounds: Bounds,
  now: () => number,
): QueueOptions | undefined {
  if (typeof options !== "object" || options === null) return undefined;
  const queue = option(options as { queue?: unknown }, "queue");
  if (queue === undefined) return undefined;
  const method = "atomic().enqueue";
  const name = checkName(`${method}: queue`, queue, bounds);
  return checkNamedEnqueue(method, name, without(options, "queue"), limits, bounds, now);
}

function checkLock(method: string, value: unknown, bounds: Bounds, otherwise: number): number {
  const { lockDurationMsMin, lockDurationMsMax } = bounds;
  const what = `${method}: lockDuration`;
  return optionalMs(what, value, lockDurationMsMin, lockDurationMsMax, otherwise);
}

export interface ListenOptions {
  readonly credits: number;
  readonly lockMs: number;
  /** Longest wait for running handlers at the end. */
  readonly drainMs: number;
  /** The longest time of a handler. */
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onError: OnError | undefined;
}

export function checkListen(handler: unknown, options: unknown, bounds: Bounds): ListenOptions {
  const method = "kv.queue().listen";
  if (typeof handler !== "function") {
    throw misuse(`${method}: handler must be a function: received ${shown(handler)}`);
  }
  const names = ["concurrency", "lockDuration", "timeout", "drain", "onError", "signal"] as const;
  const given = checkOptions(method, options, names);
  const { concurrencyMax } = bounds;
  const lockMs = checkLock(method, given.lockDuration, bounds, bounds.lockMs);
  return {
    credits: optionalInteger(
      `${method}: concurrency`,
      given.concurrency,
      1,
      concurrencyMax,
      CONCURRENCY,
    ),
    lockMs,
    drainMs: checkDrain(method, given.drain, bounds, lockMs),
    timeoutMs: checkTimeout(method, given.timeout, bounds),
    signal: checkSignal(method, given.signal),
    onError: checkOnError(method, given.onError),
  };
}

/** The longest time of a handler. */
function checkTimeout(method: string, value: unknown, bounds: Bounds): number | undefined {
  return optionalMs(`${method}: timeout`, value, 1, bounds.lockDurationMsMax, undefined);
}

/** The options of `kv.listenQueue`. */
export function checkListenQueue(
  options: unknown,
  bounds: Bounds,
): Pick<ListenOptions, "drainMs" | "signal"> {
  const method = "kv.listenQueue";
  const { drain, signal } = checkOptions(method, options, ["drain", "signal"]);
  return {
    drainMs: checkDrain(method, drain, bounds, bounds.lockMs),
    signal: checkSignal(method, signal),
  };
}

function checkDrain(method: string, value: unknown, bounds: Bounds, otherwise: number): number {
  return optionalMs(`${method}: drain`, value, 0, bounds.lockDurationMsMax, otherwise);
}

function checkOnError(method: string, onError: unknown): OnError | undefined {
  if (onError === undefined || typeof onError === "function") return onError as OnError | undefined;
  throw misuse(`${method}: onError must be a function: received ${shown(onError)}`);
}

export interface ReceiveOptions {
  readonly lockMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

export function checkReceive(options: unknown, bounds: Bounds): ReceiveOptions {
  const method = "kv.queue().receive";
  const given = checkOptions(method, options, ["lockDuration", "wait", "signal"]);
  return {
    lockMs: checkLock(method, given.lockDuration, bounds, RECEIVE_LOCK_MS),
    waitMs: optionalMs(`${method}: wait`, given.wait, 0, bounds.receiveWaitMsMax, 0),
    signal: checkSignal(method, given.signal),
  };
}

export interface NackOptions {
  /** −1: by the backoff schedule. */
  readonly delayMs: number;
  readonly error: unknown;
  readonly retries: boolean;
}

export function checkNack(options: unknown, limits: Limits): NackOptions {
  const method = "message.nack";
  const { delay, error, retry } = checkOptions(method, options, ["delay", "error", "retry"]);
  const { delayMsMax } = limits;
  const ms = inMs(delay);
  if (typeof ms === "number" && ms > delayMsMax) {
    throw invalid(
      `${method}: delay is too long (max ${delayMsMax} ms): ${ms} ms given${raising("delayMsMax")}`,
    );
  }
  const delayMs = optionalMs(`${method}: delay`, delay, 0, delayMsMax, -1);
  if (retry !== undefined && typeof retry !== "boolean") {
    throw invalid(`${method}: retry must be a boolean: received ${shown(retry)}`);
  }
  if (retry === false && delay !== undefined) {
    throw invalid(`${method}: give either delay or retry: false, not both`);
  }
  return { delayMs, error, retries: retry !== false };
}

export function checkExtend(ms: unknown, bounds: Bounds): number {
  const { lockDurationMsMin, lockDurationMsMax } = bounds;
  const what = "message.extend: ms";
  return checkDurationIn(what, ms, lockDurationMsMin, lockDurationMsMax);
}

const CURSOR = /^(\d{1,16})-(\d{1,16})$/;

export interface DeadListOptions {
  readonly limit: number;
  /** Time and id of the dead letter to continue after. */
  readonly after: readonly [number, number];
}

export function checkDeadList(options: unknown, bounds: Bounds): DeadListOptions {
  const method = "kv.queue().dead.list";
  const { limit, cursor } = checkOptions(method, options, ["limit", "cursor", "signal"]);
  const after = cursor == null ? ["", "0", "0"] : CURSOR.exec(String(cursor));
  if (after === null || (cursor != null && typeof cursor !== "string")) {
    throw invalid(`${method}: cursor must be one that list() gave: received ${shown(cursor)}`);
  }
  return {
    limit: optionalInteger(`${method}: limit`, limit, 1, bounds.deadListMax, DEAD_LIST),
    after: [Number(after[1]), Number(after[2])],
  };
}

export function cursorOf(diedMs: number, id: number): string {
  return `${diedMs}-${id}`;
}

/** The states of messages that are not dead, by their numbers in frames. */
export const MESSAGE_STATES = ["pending", "delayed", "processing"] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

/** Messages of a page, unless another number is given. */
const PEEK = 100;
const PEEK_CURSOR = /^(?:pending|delayed|processing)\.-?\d{1,16}\.-?\d{1,16}\.\d\.\d{1,16}$/;

export interface PeekOptions {
  readonly limit: number;
  readonly state: MessageState | undefined;
  /** Empty: from the start. */
  readonly cursor: string;
}

export function checkPeek(options: unknown, bounds: Bounds): PeekOptions {
  const method = "kv.queue().peek";
  const { limit, state, cursor } = checkOptions(method, options, [
    "limit",
    "state",
    "cursor",
    "signal",
  ]);
  if (state !== undefined && !MESSAGE_STATES.includes(state as MessageState)) {
    throw invalid(
      `${method}: state must be "pending", "delayed" or "processing": received ${shown(state)}`,
    );
  }
  return {
    limit: optionalInteger(`${method}: limit`, limit, 1, bounds.peekMax, PEEK),
    state: state as MessageState | undefined,
    cursor: checkCursor(method, "peek", cursor),
  };
}

function checkCursor(method: string, name: string, cursor: unknown): string {
  if (cursor == null) return "";
  if (typeof cursor === "string" && PEEK_CURSOR.test(cursor)) return cursor;
  throw invalid(`${method}: cursor must be one that ${name}() gave: received ${shown(cursor)}`);
}

/** The options of `kv.queue().schedules`. */
export function checkSchedulesPage(
  method: string,
  options: unknown,
  bounds: Bounds,
): Pick<PeekOptions, "limit" | "cursor"> {
  const { limit, cursor } = checkOptions(method, options, ["limit", "cursor", "signal"]);
  return {
    limit: optionalInteger(`${method}: limit`, limit, 1, bounds.schedulesListMax, PEEK),
    cursor: checkCursor(method, "schedules", cursor),
  };
}

export interface DrainOptions {
  readonly delayed: boolean;
  readonly group: string | undefined;
}

export function checkDrainOptions(options: unknown, bounds: Bounds): DrainOptions {
  const method = "kv.queue().drain";
  const { delayed, group } = checkOptions(method, options, ["delayed", "group", "signal"]);
  if (delayed !== undefined && typeof delayed !== "boolean") {
    throw invalid(`${method}: delayed must be a boolean: received ${shown(delayed)}`);
  }
  return {
    delayed: delayed === true,
    group: group === undefined ? undefined : checkGroup(method, group, bounds),
  };
}

/** How long `result` waits. */
export function checkResult(options: unknown, bounds: Bounds): number {
  const method = "kv.queue().result";
  const { wait } = checkOptions(method, options, ["wait", "signal"]);
  return optionalMs(`${method}: wait`, wait, 0, bounds.receiveWaitMsMax, 0);
}

export function checkEvents(options: unknown): {
  since: string | undefined;
  signal: AbortSignal | undefined;
} {
  const method = "kv.queue().events";
  const { since, signal } = checkOptions(method, options, ["since", "signal"]);
  return { since: since as string | undefined, signal: checkSignal(method, signal) };
}

const ID = /^[1-9]\d{0,15}$/;

/** The id of a message: a number, which the API shows as text. */
export function checkId(method: string, id: unknown): number {
  const number = typeof id === "string" && ID.test(id) ? Number(id) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalid(`${method}: id must be the id of a message: received ${shown(id)}`);
}

/** The time before which dead letters are purged. */
export function checkPurge(options: unknown, now: () => number): number {
  const method = "kv.queue().dead.purge";
  const { olderThan } = checkOptions(method, options, ["olderThan", "signal"]);
  const age = optionalMs(`${method}: olderThan`, olderThan, 0, TIME_MS_MAX, undefined);
  return age === undefined ? TIME_MS_MAX : Math.max(0, now() - age);
}
