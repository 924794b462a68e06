// Duty: the error classes, and the conversion of error records of the addon into thrown errors.
// Never: a native error or stack for a caller. A record has a kind and a message; this file creates
// the error on the caller's stack.

import { isError } from "./brands.js";
import { assign, defineProperty } from "./define.js";
import type { KvEntryKey, KvListSelector } from "./types.js";

/** Codes of a {@link KvError}. The codes are API, the messages are not. */
export type KvErrorCode =
  | "CONFLICT"
  | "UNAVAILABLE"
  | "OUTCOME_UNKNOWN"
  | "CLOSED"
  | "DENIED"
  | "CORRUPT"
  | "INTERNAL"
  | "UNSUPPORTED"
  | "FEED_GAP";

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
}

/** Every attempt of a transaction conflicted with other writers. */
export class KvConflictError extends KvError {
  /** The keys that the last attempt read with `get` and that have changed. */
  readonly keys: KvEntryKey[];
  /** The selectors of the lists of the last attempt in whose range an entry has changed. */
  readonly ranges: KvListSelector[];

  constructor(message: string, { keys, ranges }: Conflict) {
    super("CONFLICT", message);
    this.keys = keys;
    this.ranges = ranges;
  }
}
nameOnPrototype(KvConflictError, "KvConflictError");

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

const CLOSED_KIND = 6;
const OUTCOME_UNKNOWN_KIND = 5;
const FEED_GAP_KIND = 11;

/** Kinds of an error record that become a {@link KvError}, by number (src/model/error.rs). */
const CODES: Record<number, KvErrorCode> = {
  3: "CONFLICT",
  4: "UNAVAILABLE",
  7: "DENIED",
  8: "CORRUPT",
  9: "INTERNAL",
  10: "UNSUPPORTED",
};

/** The advice in the message about a closed handle. */
const CLOSED_REMEDY = "this database handle is closed; open another one with openKv()";

/** The facts of an error. {@link errorOf} creates the error where it is thrown. */
export interface Failure {
  readonly kind: number;
  readonly message: string;
}

export const CLOSED: Failure = { kind: CLOSED_KIND, message: "Bad resource ID" };

/** Creates the error of a failure. Call it on the caller's stack. */
export function errorOf({ kind, message }: Failure): Error {
  if (kind === 1) return new TypeError(message);
  if (kind === 2) return new RangeError(message);
  if (kind === CLOSED_KIND) return closedError();
  if (kind === OUTCOME_UNKNOWN_KIND) return new KvOutcomeUnknownError(message);
  if (kind === FEED_GAP_KIND) return new KvFeedGapError(message);
  return new KvError(CODES[kind] ?? "INTERNAL", message);
}

/** The error of every call on a closed handle. */
export function closedError(): Error {
  const error = badResource(`${CLOSED.message}: ${CLOSED_REMEDY}`);
  if (!(error instanceof KvError)) assign(error, "code", "CLOSED");
  return error;
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
  return { kind: 9, message: `The addon refused a call: ${message}` };
}
