// Duty: how a command says that it was understood and did not happen.

/** Ends a command with exit code 1, or 130 when it was interrupted. */
export class NotDone extends Error {
  readonly interrupted: boolean;

  constructor(message: string, interrupted = false) {
    super(message);
    this.interrupted = interrupted;
  }
}

/** A signal that Ctrl-C and SIGTERM abort, once; and the way to stop listening for them. */
export function untilInterrupted(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  process.once("SIGINT", abort);
  process.once("SIGTERM", abort);
  const release = (): void => {
    process.off("SIGINT", abort);
    process.off("SIGTERM", abort);
  };
  return { signal: controller.signal, release };
}
