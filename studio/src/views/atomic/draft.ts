// Duty: an atomic operation as it is typed.

export const KINDS = [
  "set",
  "delete",
  "sum",
  "min",
  "max",
  "append",
  "prepend",
  "enqueue",
] as const;

export type Kind = (typeof KINDS)[number];

/** A check: its key, and a versionstamp or nothing for no entry. */
export interface CheckDraft {
  readonly key: string;
  readonly versionstamp: string;
}

export interface MutationDraft {
  readonly kind: Kind;
  /** A key; of `enqueue` the name of the queue. */
  readonly key: string;
  readonly value: string;
  /** Seconds until the entry expires. */
  readonly seconds: string;
}

export interface Draft {
  readonly checks: readonly CheckDraft[];
  readonly mutations: readonly MutationDraft[];
}

export const EMPTY_CHECK: CheckDraft = { key: "[]", versionstamp: "" };
export const EMPTY_MUTATION: MutationDraft = { kind: "set", key: "[]", value: "{}", seconds: "" };
