// Duty: tells what an object of the platform is, whichever realm made it: a vm context, Jest,
// Electron and an iframe have built-in classes of their own, for which `instanceof` is false.
// Never: `instanceof` with a built-in class. __test__/packaging/realms.test.mjs refuses it in js/.

import { types } from "node:util";

const timeSlot = Date.prototype.getTime;
const hrefSlot = Object.getOwnPropertyDescriptor(URL.prototype, "href")?.get;
const tagOf = Object.prototype.toString;

/** The time of a Date in ms since the epoch, by its slot, NaN if it is invalid; undefined: it is no Date. */
export function timeOfDate(given: unknown): number | undefined {
  return types.isDate(given) ? timeSlot.call(given) : undefined;
}

/** The text of a URL object; undefined: it is none. */
export function hrefOf(given: unknown): string | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  try {
    return hrefSlot?.call(given) as string;
  } catch {
    // A URL of another realm has no slot that this one can read.
  }
  if (tagOf.call(given) !== "[object URL]") return undefined;
  try {
    const { href } = given as { href?: unknown };
    return typeof href === "string" ? href : undefined;
  } catch {
    return undefined;
  }
}

/** Signals of other realms and of polyfills count. */
export function isAbortSignal(given: unknown): given is AbortSignal {
  if (typeof given !== "object" || given === null) return false;
  const { aborted, addEventListener, removeEventListener } = given as Partial<AbortSignal>;
  return (
    typeof aborted === "boolean" &&
    typeof addEventListener === "function" &&
    typeof removeEventListener === "function"
  );
}

/** Errors, and objects that inherit from an Error. */
export function isError(given: unknown): given is Error {
  if (typeof given !== "object" || given === null) return false;
  return types.isNativeError(given) || Error.prototype.isPrototypeOf(given) || isException(given);
}

/** A DOMException is no error to every engine. */
function isException(given: object): boolean {
  return tagOf.call(given) === "[object DOMException]";
}

export function isTypeError(given: unknown): given is TypeError {
  return isError(given) && given.name === "TypeError";
}
