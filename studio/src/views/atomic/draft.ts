// Duty: an atomic operation as it is typed, and as a request or code.

import { asked, mutationCode } from "./forms";

export type Kind = "set" | "delete" | "sum" | "min" | "max" | "append" | "prepend" | "enqueue";

export const KINDS: readonly Kind[] = [
  ...(["set", "delete", "sum", "min", "max", "append", "prepend", "enqueue"] as const),
];

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

/** A fault in a draft, with its place. */
export class DraftError extends Error {}

function at<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new DraftError(`${place}: ${(error as Error).message}`);
  }
}

/** The body of the request. */
export function requestOf({ checks, mutations }: Draft): object {
  return {
    checks: checks.map((check, n) => at(`Check ${n + 1}`, () => asked.check(check))),
    mutations: mutations.map((one, n) => at(`Mutation ${n + 1}`, () => asked.mutation(one))),
  };
}

/** The operation as JavaScript. */
export function codeOf({ checks, mutations }: Draft): string {
  const lines = [
    ...checks.map((check, n) => at(`Check ${n + 1}`, () => asked.checkCode(check))),
    ...mutations.map((one, n) => at(`Mutation ${n + 1}`, () => mutationCode(one))),
  ];
  return `const result = await kv\n  .atomic()\n${lines.map((line) => `  ${line}\n`).join("")}  .commit();`;
}
