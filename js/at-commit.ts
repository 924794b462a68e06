// Duty: which errors of an operation's call wait for its commit: Deno finds them there. A program
// that awaits commit() meets them in one place, and never in the middle of a chain of calls.

const marked = new WeakSet<Error>();

/** Marks an error that an operation keeps for its commit; other calls throw it as any other. */
export function atCommit<E extends Error>(error: E): E {
  marked.add(error);
  return error;
}

export function isAtCommit(error: unknown): boolean {
  return error instanceof Error && marked.has(error);
}
