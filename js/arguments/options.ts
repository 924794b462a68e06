// Duty: reads the options and properties of the objects that callers pass.
// Invariant: a property counts if the object has it, or a class of the caller's. What a program has
// put on Object.prototype is in every object of its process, and no option of a call.

import { defineProperty } from "../model/define.js";

const { getPrototypeOf, hasOwn, getOwnPropertyNames } = Object;

/** The value of an option, read once; undefined without it. */
export function option<Options extends object, Name extends keyof Options>(
  options: Options,
  name: Name,
): Options[Name] | undefined {
  return owned(options, name, options[name]);
}

/** The value that was read of an option; undefined without it. */
export function owned<Value>(options: object, name: PropertyKey, value: Value): Value | undefined {
  return value === undefined || has(options, name) ? value : undefined;
}

/** The options of these names, each read once. The result inherits nothing. */
export function optionsOf<Name extends string>(
  options: object,
  names: readonly Name[],
): { readonly [N in Name]?: unknown } {
  const found: Record<string, unknown> = { __proto__: null };
  const isPlain = isEnd(getPrototypeOf(options));
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (isPlain ? hasOwn(options, name) : has(options, name))
      found[name] = (options as Record<string, unknown>)[name];
  }
  return found as { readonly [N in Name]?: unknown };
}

/** The options but one. Those that a class of the caller's has are read on access. */
export function without(options: object, name: string): object {
  const rest: Record<string, unknown> = { __proto__: null, ...options };
  delete rest[name];
  for (let from = getPrototypeOf(options); !isEnd(from); from = getPrototypeOf(from)) {
    for (const other of getOwnPropertyNames(from)) {
      if (other === name || other === "constructor" || hasOwn(rest, other)) continue;
      // Not enumerable, as the methods of a class: their names are not refused as unknown options.
      const get = (): unknown => (options as Record<string, unknown>)[other];
      defineProperty(rest, other, { get });
    }
  }
  return rest;
}

/** Whether an object or one of its classes has a property. */
export function has(object: object, name: PropertyKey): boolean {
  if (hasOwn(object, name)) return true;
  for (let from = getPrototypeOf(object); !isEnd(from); from = getPrototypeOf(from)) {
    if (hasOwn(from, name)) return true;
  }
  return false;
}

/** The end of a chain of prototypes: none, or the Object.prototype of some realm. */
function isEnd(object: object | null): object is null {
  if (object === null || object === Object.prototype) return true;
  return getPrototypeOf(object) === null && hasOwn(object, "isPrototypeOf");
}
