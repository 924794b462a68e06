// Duty: marks the errors that an operation throws from commit() instead of from the call, as Deno
// does. A program that awaits commit() gets them in one place, not inside a chain of calls.

import { isError } from "../model/brands.js";

const marked = new WeakSet<Error>();

/** Marks an error that an operation keeps for its commit. Other calls throw it at once. */
export function atCommit<E extends Error>(error: E): E {
  marked.add(error);
  return error;
}

export function isAtCommit(error: unknown): boolean {
  return isError(error) && marked.has(error);
}
