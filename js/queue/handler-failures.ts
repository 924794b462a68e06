// Duty: reports failures of the handlers of a named queue to the program.
// Invariant: each failure reaches `onError`; without one, a listener warns of its first failure.
// Never: an effect on the delivery, which fails in any case.

import { emitWarning } from "node:process";
import { NativePromise } from "../model/native-promise.js";
import type { MessageInfo } from "./raw-message.js";

/** The option `onError` of `listen`. */
export type OnError = (error: unknown, message: MessageInfo) => unknown;

const WARNING = { type: "OpenKvWarning", code: "OPENKV_HANDLER_FAILED" };

export class HandlerFailures {
  readonly #queue: string;
  readonly #onError: OnError | undefined;
  #warned = false;

  constructor(queue: string, onError: OnError | undefined) {
    this.#queue = queue;
    this.#onError = onError;
  }

  /** A handler has failed with `error`. */
  report(error: unknown, message: MessageInfo): void {
    if (this.#onError === undefined) {
      this.#warnOnce(
        `A handler of the queue ${JSON.stringify(this.#queue)} failed: ${textOf(error)} (attempt ` +
          `${message.attempts} of message ${message.id}). Later failures of this listener are ` +
          "not reported: give listen() an onError to see each.",
        error,
      );
      return;
    }
    try {
      // A promise may be of another realm, or of a library.
      const reported = NativePromise.resolve(this.#onError(error, message));
      reported.catch((failed) => this.#onErrorFailed(failed));
    } catch (failed) {
      this.#onErrorFailed(failed);
    }
  }

  #onErrorFailed(failed: unknown): void {
    const queue = JSON.stringify(this.#queue);
    this.#warnOnce(
      `The onError of a listener of the queue ${queue} failed: ${textOf(failed)}`,
      failed,
    );
  }

  #warnOnce(text: string, error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    const stack = stackOf(error);
    emitWarning(text, stack === undefined ? WARNING : { ...WARNING, detail: stack });
  }
}

/** The text of a thrown value, whose conversion may throw too. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return "an error that cannot be read";
  }
}

function stackOf(error: unknown): string | undefined {
  try {
    const stack: unknown = (error as { stack?: unknown } | null)?.stack;
    return typeof stack === "string" ? stack : undefined;
  } catch {
    return undefined;
  }
}
