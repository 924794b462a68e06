// Duty: the codes of errors.
// Generated from crates/core/src/model/error.rs by `npm run generate`: do not edit.

/** Codes of errors that a user's input can cause. The codes are API, the messages are not. */
export type KvInputErrorCode = "INVALID" | "RANGE" | "TOO_LARGE";

/** Codes of a KvError. The codes are API, the messages are not. */
export type KvErrorCode =
  | "CONFLICT"
  | "UNAVAILABLE"
  | "OUTCOME_UNKNOWN"
  | "CLOSED"
  | "DENIED"
  | "CORRUPT"
  | "INTERNAL"
  | "UNSUPPORTED"
  | "FEED_GAP"
  | "UNIQUE";

/** The codes by the number of the kind of an error record. */
export const CODES: readonly (KvErrorCode | KvInputErrorCode | undefined)[] = [
  undefined,
  "INVALID",
  "RANGE",
  "CONFLICT",
  "UNAVAILABLE",
  "OUTCOME_UNKNOWN",
  "CLOSED",
  "DENIED",
  "CORRUPT",
  "INTERNAL",
  "UNSUPPORTED",
  "FEED_GAP",
  "TOO_LARGE",
  "UNIQUE",
];
