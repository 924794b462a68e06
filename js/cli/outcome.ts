// Duty: how a command says that it did not happen, or was not understood; and that it was told to
// end.

/** Ends a command with exit code 1, or 130 when it was interrupted. */
export class NotDone extends Error {
  readonly interrupted: boolean;

  constructor(message: string, interrupted = false) {
    super(message);
    this.interrupted = interrupted;
  }
}

/** Ends a command with exit code 2: what was typed means nothing, whatever the database holds. */
export class WrongUsage extends Error {}

/** What is checked before anything is opened is about what was typed: its TypeErrors say so. */
export async function asUsage<T>(check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error;
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

/** The end of some work, or the signal's reason at once: nobody reads, but everybody can be stopped. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
