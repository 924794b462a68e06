// Duty: a list that is used as an array, as after `await kv.list(…)`, throws an error with advice.
// Awaiting a list is allowed: the result is the iterator, and `for await` works on it.

import { defineProperty } from "../model/define.js";
import { misuse } from "../model/errors.js";

/** Properties of arrays that iterators do not have. */
const ARRAY_ONLY = [
  "length",
  "at",
  "concat",
  "entries",
  "findIndex",
  "includes",
  "indexOf",
  "join",
  "keys",
  "pop",
  "push",
  "reverse",
  "slice",
  "sort",
  "values",
] as const;

/** Defines properties of arrays on the prototype of an iterator, which throw. */
export function refuseArrayUse(prototype: object, list: string): void {
  const refuse = (use: string) => (): never => {
    throw misuse(
      `${use}: ${list} is no array but an asynchronous iterator: ` +
        `write for await (const entry of ${list}), or await ${list}.toArray()`,
    );
  };
  const iterate = refuse("for … of, or a spread");
  defineProperty(prototype, Symbol.iterator, {
    value: iterate,
    configurable: true,
    writable: true,
  });
  for (const name of ARRAY_ONLY) {
    defineProperty(prototype, name, { get: refuse(name), configurable: true });
  }
}
