// Duty: the option `signal`: refuses values that are no signal, and settles a call as soon as its
// signal is aborted.
// Invariant: after a call has settled, it has no listener on its signal.

import { misuse } from "../model/errors.js";
import { checkOptions, shown } from "./check.js";
import { has, without } from "./options.js";
import { isAbortSignal } from "../model/brands.js";
import { NativePromise } from "../model/native-promise.js";

/**
 * Checks the `signal` of an option object; `null` means none, as for `fetch`. Accepts signals of
 * other realms and of polyfills.
 */
export function checkSignal(method: string, signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal === null) return undefined;
  if (isAbortSignal(signal)) return signal;
  throw misuse(`${method}: signal must be an AbortSignal: received ${shown(signal)}`);
}

/**
 * Runs a call under the `signal` of its options, if there is one. `start` gets the other options,
 * and the signal for its calls of the addon. If the signal is already aborted, nothing is started;
 * if it aborts later, the call rejects with the reason at once, and the addon cancels the work.
 */
export async function abortable<Options, Result>(
  method: string,
  options: Options,
  start: (options: Options, signal?: AbortSignal) => Promise<Result>,
  unclaimed?: Unclaimed<Result>,
): Promise<Result> {
  if (typeof options !== "object" || options === null) return await start(options);
  if (!has(options, "signal")) return await start(options);
  const signal = checkSignal(method, (options as { signal?: unknown }).signal);
  const rest = without(options, "signal");
  const call = (): Promise<Result> => start(rest as Options, signal);
  return await (signal === undefined ? call() : raced(signal, call, unclaimed));
}

/** As {@link abortable}, for a method that has no other options. */
export async function signalled<Result>(
  method: string,
  options: unknown,
  start: (signal?: AbortSignal) => Promise<Result>,
  unclaimed?: Unclaimed<Result>,
): Promise<Result> {
  const checked = checkOptions(method, options, ["signal"]);
  return await abortable(method, checked, (_, signal) => start(signal), unclaimed);
}

/** As {@link abortable}, for pages. Their older form has the options in the selector. */
export async function abortablePage<Selector, Options, Result>(
  method: string,
  selector: Selector,
  options: Options,
  start: (selector: Selector, options: Options, signal?: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (options === undefined) {
    return await abortable(method, selector, (rest, signal) => start(rest, options, signal));
  }
  return await abortable(method, options, (rest, signal) => start(selector, rest, signal));
}

/** Frees what a result holds that came after the abort: its caller does not get it. */
type Unclaimed<Result> = (result: Result) => void;

/** The result of `start`, or the reason of the signal if that is aborted first. */
export function raced<Result>(
  signal: AbortSignal,
  start: () => Promise<Result>,
  unclaimed?: Unclaimed<Result>,
): Promise<Result> {
  if (signal.aborted) return NativePromise.reject(signal.reason);
  return new NativePromise((resolve, reject) => {
    // Before the listener: what throws here leaves none.
    const started = start();
    let isGivenUp = false;
    const end = onAbort(signal, () => {
      isGivenUp = true;
      reject(signal.reason);
    });
    started.then(
      (result) => {
        end();
        if (isGivenUp) unclaimed?.(result);
        else resolve(result);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}

/** The callbacks by signal. */
const listeners = new WeakMap<AbortSignal, Listener>();

/**
 * Calls back when a signal is aborted, and at once if it already is, because an aborted signal has no
 * further event; the returned function removes the callback. A signal has one listener for all
 * callbacks, because Node reports more than ten as a leak.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) {
    act();
    return () => {};
  }
  let listener = listeners.get(signal);
  if (listener === undefined) listeners.set(signal, (listener = new Listener(signal)));
  const { acts } = listener;
  acts.add(act);
  return () => {
    if (acts.delete(act) && acts.size === 0) listener.stop();
  };
}

class Listener {
  readonly acts = new Set<() => void>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  readonly #abort = (): void => {
    this.stop();
    for (const act of this.acts) act();
  };

  stop(): void {
    this.#signal.removeEventListener("abort", this.#abort);
    if (listeners.get(this.#signal) === this) listeners.delete(this.#signal);
  }
}
