// Duty: the errors that end a command, and its signal for interruption.

import { isRefusedInput } from "../model/errors.js";

/** Ends a command with exit code 1, or 130 after an interruption. */
export class NotDone extends Error {
  readonly interrupted: boolean;

  constructor(message: string, interrupted = false) {
    super(message);
    this.interrupted = interrupted;
  }
}

/** Ends a command with exit code 2: the command line is wrong, independent of the database. */
export class WrongUsage extends Error {}

/** Runs checks before a database is opened: their TypeErrors are about the command line. */
export async function asUsage<T>(check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error;
  }
}

/** The error of work on what is there, an entry or a file: it is no fault of the command line. */
export function notDoneBy(error: unknown): unknown {
  return isRefusedInput(error) ? new NotDone(error.message) : error;
}

/** Runs work on what is there; see {@link notDoneBy}. */
export async function asOutcome<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw notDoneBy(error);
  }
}

/** A signal that Ctrl-C and SIGTERM abort once, and a function that stops listening for them. */
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

/** Runs work in steps that the signal ends; the command then ends with what may be done by then. */
export async function interruptibly<T>(
  done: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, release } = untilInterrupted();
  try {
    return await work(signal);
  } catch (error) {
    if (signal.aborted) throw new NotDone(`interrupted: ${done}`, true);
    throw error;
  } finally {
    release();
  }
}

/** Resolves with the work, or rejects with the reason of the signal as soon as it is aborted. */
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
