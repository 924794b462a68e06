// Duty: the error classes, and the conversion of error records of the addon into thrown errors.
// Never: a native error or stack for a caller. A record has a kind and a message; this file creates
// the error on the caller's stack.

import { isError } from "./brands.js";
import { CODES, type KvErrorCode, type KvInputErrorCode } from "./error-codes.js";
import { assign, defineProperty } from "./define.js";
import type { KvEntryKey, KvListSelector, KvSchemaIssue, KvViolation } from "./types.js";

/** A failure of the database, rather than of the call's arguments. */
export class KvError extends Error {
  readonly code: KvErrorCode;

  constructor(code: KvErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
nameOnPrototype(KvError, "KvError");

/** The changes by other writers that made a transaction fail. */
export interface Conflict {
  readonly keys: KvEntryKey[];
  readonly ranges: KvListSelector[];
  /** The ids of the messages to acknowledge whose locks were lost. */
  readonly messages: string[];
}

/** Every attempt of a transaction conflicted with other writers, or it was to acknowledge a message whose lock is lost. */
export class KvConflictError extends KvError {
  /** The keys that the last attempt read with `get` and that have changed. */
  readonly keys: KvEntryKey[];
  /** The selectors of the lists of the last attempt in whose range an entry has changed. */
  readonly ranges: KvListSelector[];
  /** The ids of the messages that it was to acknowledge and whose locks were lost. */
  readonly messages: string[];

  constructor(message: string, { keys, ranges, messages }: Conflict) {
    super("CONFLICT", message);
    this.keys = keys;
    this.ranges = ranges;
    this.messages = messages;
  }
}
nameOnPrototype(KvConflictError, "KvConflictError");

/** Thrown by a handler: no retry can help, so the message is a dead letter now. */
export class KvDoNotRetry extends Error {}
nameOnPrototype(KvDoNotRetry, "KvDoNotRetry");

/** Whether a handler has thrown a {@link KvDoNotRetry}, also one of another copy of this module. */
export function isDoNotRetry(error: unknown): boolean {
  try {
    if (error instanceof KvDoNotRetry) return true;
    return isError(error) && error.name === "KvDoNotRetry";
  } catch {
    return false;
  }
}

/** A schema has refused a document of a collection. */
export class KvValidationError extends TypeError {
  readonly code = "INVALID";
  readonly issues: readonly KvSchemaIssue[];

  constructor(message: string, issues: readonly KvSchemaIssue[]) {
    super(message);
    this.issues = issues;
  }
}
nameOnPrototype(KvValidationError, "KvValidationError");

/** A write may or may not have happened. */
export class KvOutcomeUnknownError extends KvError {
  constructor(message: string) {
    super("OUTCOME_UNKNOWN", message);
  }
}
nameOnPrototype(KvOutcomeUnknownError, "KvOutcomeUnknownError");

/** The change feed no longer holds the changes after the given versionstamp. */
export class KvFeedGapError extends KvError {
  constructor(message: string) {
    super("FEED_GAP", message);
  }
}
nameOnPrototype(KvFeedGapError, "KvFeedGapError");

/** A unique index has the value for another key already. */
export class KvUniqueError extends KvError {
  /** How the write would have broken unique indexes; empty if a server has only said so. */
  readonly violations: KvViolation[];

  constructor(message: string, violations: KvViolation[] = []) {
    super("UNIQUE", message);
    this.violations = violations;
  }
}
nameOnPrototype(KvUniqueError, "KvUniqueError");

/** The handle is closed. Deno's own class when it runs there, so that `instanceof` holds. */
class OwnBadResource extends KvError {
  constructor(message: string) {
    super("CLOSED", message);
  }
}
nameOnPrototype(OwnBadResource, "BadResource");

type ErrorClass = new (message: string) => Error;
const runtime = globalThis as { Deno?: { errors?: { BadResource?: ErrorClass } } };

export const BadResource: ErrorClass = runtime.Deno?.errors?.BadResource ?? OwnBadResource;

/** A class keeps its name when a bundler renames it, and no instance carries it as own property. */
function nameOnPrototype(type: { readonly prototype: object }, name: string): void {
  const hidden = { value: name, writable: true, configurable: true, enumerable: false };
  defineProperty(type, "name", hidden);
  defineProperty(type.prototype, "name", hidden);
}

/** The error of a code that has a class of its own; other codes are those of a {@link KvError}. */
const CLASSES = {
  INVALID: invalid,
  TOO_LARGE: tooLarge,
  RANGE: outOfRange,
  // Another text than of a handle's own end says why the database cannot be used.
  CLOSED: (message: string) => closedError(message === CLOSED.message ? undefined : message),
  OUTCOME_UNKNOWN: (message: string) => new KvOutcomeUnknownError(message),
  FEED_GAP: (message: string) => new KvFeedGapError(message),
  UNIQUE: (message: string) => new KvUniqueError(message),
} satisfies Partial<Record<KvErrorCode | KvInputErrorCode, (message: string) => Error>>;

/** The advice in the message about a closed handle. */
const CLOSED_REMEDY = "this database handle is closed; open another one with openKv()";

/** The facts of an error. {@link errorOf} creates the error where it is thrown. */
export interface Failure {
  readonly kind: number;
  readonly message: string;
}

export const CLOSED: Failure = { kind: CODES.indexOf("CLOSED"), message: "Bad resource ID" };

/** Creates the error of a failure. Call it on the caller's stack. */
export function errorOf({ kind, message }: Failure): Error {
  const code = CODES[kind] ?? "INTERNAL";
  if (Object.hasOwn(CLASSES, code)) return CLASSES[code as keyof typeof CLASSES](message);
  return new KvError(code as KvErrorCode, message);
}

// The refusals. Each place that refuses an argument chooses one of these:
//
// - A request that is passed on can cause it: what an argument for data holds (a key, a value, a cursor,
//   a query, a filter, a number, a date, a name, a flag). It has a code, so that a handler of HTTP can
//   answer 400 without guessing. More bytes or items than a limit is `TOO_LARGE`; a `RangeError` is
//   `RANGE`; all else is `INVALID`.
// - Only code can cause it: an unknown option, a missing argument, a callback that is no function, a signal
//   that is none, a value that no JSON can hold, an object that is used in a way for which it is not made.
//   It has no code.

/** Adds the code to an error, for the classes that Deno has. */
export function coded<E extends Error>(code: KvErrorCode | KvInputErrorCode, error: E): E {
  return assign(error, "code", code);
}

/** The refusal of an argument that is malformed, of the wrong kind, or outside its bounds. */
export function invalid(message: string): TypeError {
  return coded("INVALID", new TypeError(message));
}

/** The refusal of more bytes or items than a limit. */
export function tooLarge(message: string): TypeError {
  return coded("TOO_LARGE", new TypeError(message));
}

/** The refusal of a number outside the range of its type, and of a nesting that is too deep. */
export function outOfRange(message: string): RangeError {
  return coded("RANGE", new RangeError(message));
}

/** The refusal of a call that only a mistake in the calling code can cause. */
export function misuse(message: string): TypeError {
  return new TypeError(message);
}

/** Whether an error refuses what a call was given. A TypeError of the engine, which a bug causes, has no code. */
export function isRefusedInput(error: unknown): error is TypeError | RangeError {
  const code = codeOf(error);
  return code === "INVALID" || code === "TOO_LARGE" || code === "RANGE";
}

/** The code of an error, if it has one. */
export function codeOf(error: unknown): unknown {
  return isError(error) && Object.hasOwn(error, "code")
    ? (error as { code?: unknown }).code
    : undefined;
}

/** The error of every call on a closed handle. */
export function closedError(message = `${CLOSED.message}: ${CLOSED_REMEDY}`): Error {
  const error = badResource(message);
  return error instanceof KvError ? error : coded("CLOSED", error);
}

function badResource(message: string): Error {
  try {
    return new BadResource(message);
  } catch {
    // Deno's assigns its name, which fails where Error.prototype is frozen.
    return new OwnBadResource(message);
  }
}

/** Bytes of an error record before its message: kind and length. */
const RECORD_HEAD_BYTES = 5;

/** Reads an error record: u8 kind, u32 length, message. */
export function readFailure(bytes: Buffer, at = 0): Failure {
  const start = at + RECORD_HEAD_BYTES;
  const end = start + bytes.readUInt32LE(at + 1);
  return { kind: bytes[at], message: bytes.toString("utf8", start, end) };
}

/** The length of the error record at `at`. */
export function failureBytes(bytes: Buffer, at: number): number {
  return RECORD_HEAD_BYTES + bytes.readUInt32LE(at + 1);
}

/** The failure for an exception of a native call, which is a bug of openkv. */
export function bugOf(error: unknown): Failure {
  const message = isError(error) ? error.message : String(error);
  return { kind: CODES.indexOf("INTERNAL"), message: `The addon refused a call: ${message}` };
}
