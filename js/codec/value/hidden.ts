/**
 * Objects of the platform whose content no property holds: a Response, a URL, an AbortSignal. An own
 * property at a time, they would be stored as `{}`, so they are refused.
 */

import { hiddenContent } from "./reject";

/** What to store in place of an object, by the name of its class. */
const REMEDIES: Readonly<Record<string, string>> = {
  URL: "store its text: url.href",
  URLSearchParams: "store its text: params.toString()",
  Headers: "store its pairs: [...headers]",
  Response: "store its bytes: await response.bytes()",
  Request: "store its bytes: await request.bytes()",
  FormData: "store its pairs: [...form]",
};
const OTHERWISE = "leave it out, or store plain data in its place";
const AWAIT = "await it, and store its result";

/**
 * Classes of the language and those that can be stored: an object that inherits from one of these
 * and has none of its state is a plain object, as in Deno.
 */
const PLAIN_WITHOUT_STATE: ReadonlySet<string> = new Set([
  ...[
    "Object",
    "Function",
    "Array",
    "Map",
    "Set",
    "Date",
    "RegExp",
    "Promise",
    "WeakMap",
    "WeakSet",
  ],
  ...["Boolean", "Number", "String", "Symbol", "BigInt", "Iterator", "ArrayBuffer", "DataView"],
  ...["SharedArrayBuffer", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array"],
  ...["Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array", "Float64Array"],
  ...["BigInt64Array", "BigUint64Array", "TypedArray", "Error", "AggregateError", "EvalError"],
  ...["RangeError", "ReferenceError", "SuppressedError", "SyntaxError", "TypeError", "URIError"],
  ...["Blob", "File", "DOMException", "Buffer"],
]);

const sourceOf = Function.prototype.toString;

/** Refuses an object that has inherited `prototype`, if that belongs to an object of the platform. */
export function refuseHidden(value: object, prototype: object): void {
  const then = ownData(prototype, "then");
  const isBare = Object.keys(value).length === 0;
  const made = ownData(prototype, "constructor");
  const name = typeof made === "function" ? ownData(made, "name") : undefined;
  const tag = ownTag(prototype);
  if (typeof made !== "function" || typeof name !== "string") {
    // Iterators and the segments of a text have no class with a name.
    const isNameless = tag !== undefined && / (?:Iterator|Iterator Helper)$/.test(tag);
    const isSegments = isFunction(ownData(prototype, "containing"));
    if (isBare && (isNameless || isSegments))
      throw hiddenContent(value, tag ?? "Segments", OTHERWISE);
  } else if (!PLAIN_WITHOUT_STATE.has(name) && isPlatform(made, name, prototype, tag, isBare)) {
    // Programs extend it to hold properties of their own.
    if (name !== "EventTarget" || isBare) {
      throw hiddenContent(value, name, Object.hasOwn(REMEDIES, name) ? REMEDIES[name] : OTHERWISE);
    }
  }
  if (isBare && isFunction(then) && name !== "Promise") {
    throw hiddenContent(value, typeof name === "string" ? name : "Object", AWAIT);
  }
}

function isPlatform(
  made: object,
  name: string,
  prototype: object,
  tag: string | undefined,
  isBare: boolean,
): boolean {
  // A class that a program assigns is enumerable, those of the platform only in Bun.
  const global = Object.getOwnPropertyDescriptor(globalThis, name);
  if (global !== undefined && (!global.enumerable || isNative(made))) {
    const here = (globalThis as Record<string, unknown>)[name];
    if (here === made && (here as { prototype?: unknown }).prototype === prototype) return true;
    // The class of another realm, or of a package that has it too.
    if (isBare && tag === name) return true;
  }
  return isBare && isNative(made);
}

/** Whether the engine or the runtime has a class that no JavaScript wrote. */
function isNative(made: object): boolean {
  return /\{\s*\[native code\]\s*\}$/.test(sourceOf.call(made));
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

function ownTag(prototype: object): string | undefined {
  const tag = ownData(prototype, Symbol.toStringTag);
  return typeof tag === "string" ? tag : undefined;
}

/** Runs no code of the object. */
function ownData(object: object, name: PropertyKey): unknown {
  const property = Object.getOwnPropertyDescriptor(object, name);
  return property !== undefined && Object.hasOwn(property, "value") ? property.value : undefined;
}
