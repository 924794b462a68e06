/**
 * The errors for values that cannot be stored, with the texts of V8, and so of Deno.
 */

import { misuse, tooLarge } from "../../model/errors";

const FUNCTION_TEXT_MAX = 128;
const FUNCTION_TEXT_HEAD = 111;
const FUNCTION_TEXT_TAIL = 2;

/** The refused part by error, so that its path in the value can be found. */
const blames = new WeakMap<object, Blame>();

export interface Blame {
  readonly value: unknown;
  /** What to do instead; undefined: the usual advice. */
  readonly remedy: string | undefined;
}

/** Marks the error of a part, so that its message names the path of the part. */
export function blame<E extends Error>(error: E, value: unknown, remedy?: string): E {
  blames.set(error, { value, remedy });
  return error;
}

export function blamedBy(error: unknown): Blame | undefined {
  return typeof error === "object" && error !== null ? blames.get(error) : undefined;
}

/** TypeError "<value> could not be cloned." */
export function notCloneable(value: unknown): TypeError {
  return blame(misuse(`${describe(value)} could not be cloned.`), value);
}

/** TypeError for an object of the platform, whose content no property holds. */
export function hiddenContent(value: object, name: string, remedy?: string): TypeError {
  return blame(misuse(`#<${name}> could not be cloned.`), value, remedy);
}

/** The name of a value in V8's errors, without running any of its code. */
export function describe(value: unknown): string {
  if (typeof value === "symbol") return `Symbol(${value.description ?? ""})`;
  if (typeof value === "function") {
    const text = Function.prototype.toString.call(value);
    if (text.length <= FUNCTION_TEXT_MAX) return text;
    return `${text.slice(0, FUNCTION_TEXT_HEAD)}...<omitted>...${text.slice(-FUNCTION_TEXT_TAIL)}`;
  }
  if (typeof value !== "object" || value === null) return String(value);
  if (dataProperty(value, "toString") === Object.prototype.toString) {
    const constructor = dataProperty(value, "constructor");
    if (typeof constructor === "function") {
      const name = dataProperty(constructor, "name");
      if (typeof name === "string" && name !== "") return `#<${name}>`;
    }
  }
  const tag = dataProperty(value, Symbol.toStringTag);
  return typeof tag === "string" ? `[object ${tag}]` : `[object ${builtinTag(value)}]`;
}

/** The name that the engine gives the object, whatever its properties say. */
function builtinTag(value: object): string {
  if (Array.isArray(value)) return "Array";
  const text = Object.prototype.toString.call(
    Object.prototype.hasOwnProperty.call(value, Symbol.toStringTag) ? {} : value,
  );
  return text.slice(8, -1);
}

/** The value of a data property, own or inherited; accessors count as absent. */
function dataProperty(value: object, name: PropertyKey): unknown {
  let object: object | null = value;
  while (object !== null) {
    const property = Object.getOwnPropertyDescriptor(object, name);
    if (property !== undefined) return property.value;
    object = Object.getPrototypeOf(object);
  }
  return undefined;
}

/** The error for a Proxy. Its target cannot be read without running a trap. */
export function proxyNotCloneable(proxy: object): TypeError {
  const name =
    typeof proxy === "function"
      ? "[object Function]"
      : Array.isArray(proxy)
        ? "[object Array]"
        : "#<Object>";
  return blame(misuse(`${name} could not be cloned.`), proxy);
}

/**
 * TypeError for a value of more bytes than the limit. How many is only known if all of it was
 * encoded.
 */
export function valueTooLarge(bytesMax: number, given?: number): TypeError {
  const bytes = given === undefined ? `more than ${bytesMax}` : given;
  return tooLarge(`Value too large (max ${bytesMax} bytes): ${bytes} bytes given`);
}
