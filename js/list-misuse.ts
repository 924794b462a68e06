// Duty: a list that is taken for an array, as after `await kv.list(…)`, says what to write. Awaiting
// it is no mistake by itself: the iterator comes back, and `for await` goes on over it.

/** What arrays have, and iterators do not. */
const ARRAY_ONLY = ["length", "at", "concat", "entries", "findIndex", "includes", "indexOf", "join",
  "keys", "pop", "push", "reverse", "slice", "sort", "values"] as const;

/** Makes what arrays have throw on an iterator's prototype. */
export function refuseArrayUse(prototype: object, list: string): void {
  const refuse = (use: string) => (): never => {
    throw new TypeError(
      `${use}: ${list} is no array but an asynchronous iterator: ` +
        `write for await (const entry of ${list}), or await ${list}.toArray()`,
    );
  };
  const iterate = refuse("for … of, or a spread");
  Object.defineProperty(prototype, Symbol.iterator, { value: iterate, configurable: true, writable: true });
  for (const name of ARRAY_ONLY) {
    Object.defineProperty(prototype, name, { get: refuse(name), configurable: true });
  }
}
