/**
 * `KvU64`: an unsigned 64-bit integer that `sum`, `min` and `max` work on. Stored as eight
 * little-endian bytes. Under Deno with `--unstable-kv` it is Deno's own class.
 *
 * Throws TypeError for anything but a bigint, RangeError outside 0 … 2^64 − 1.
 *
 * @example new KvU64(5n).value === 5n
 */

import { defineProperty } from "../model/define.js";
import { invalid, outOfRange } from "../model/errors.js";

const U64_VALUE_MAX = 0xffff_ffff_ffff_ffffn;

/** Marks the class of every copy of this module on a thread. */
const BRAND = Symbol.for("openkv.KvU64");

class OwnKvU64 {
  /** The number, 0 … 2^64 − 1. */
  readonly value: bigint;
  /** Only instances that the constructor made have it. */
  readonly #made = true;

  constructor(value: bigint) {
    if (typeof value !== "bigint") {
      throw invalid(`Value must be a bigint: received ${typeof value}`);
    }
    if (value < 0n) {
      throw outOfRange(`Value must be a positive bigint: received ${value}`);
    }
    if (value > U64_VALUE_MAX) {
      throw outOfRange("Value must fit in a 64-bit unsigned integer");
    }
    this.value = value;
    Object.freeze(this);
  }

  static isMade(value: object): boolean {
    return #made in value;
  }

  valueOf(): bigint {
    return this.value;
  }

  toString(): string {
    return this.value.toString();
  }

  get [Symbol.toStringTag](): string {
    return "Deno.KvU64";
  }
}

/**
 * The one rendering for every console: `[Deno.KvU64: 5n]`. Node and Bun ask the first name, Deno
 * both.
 */
function inspect(this: KvU64, first: unknown, second: unknown, third: unknown): string {
  // Node calls (depth, options, inspect); Deno calls (inspect, options).
  const render = typeof third === "function" ? third : typeof first === "function" ? first : null;
  // A boxed bigint renders as "[BigInt: 5n]", in colours or not: the same with our name.
  const text = render === null ? "" : String(render(Object(this.value), second));
  return text.includes("[BigInt: ")
    ? text.replace("BigInt", "Deno.KvU64")
    : `[Deno.KvU64: ${this.value}n]`;
}

for (const name of ["nodejs.util.inspect.custom", "Deno.customInspect"]) {
  defineProperty(OwnKvU64.prototype, Symbol.for(name), {
    value: inspect,
    enumerable: false,
    configurable: true,
    writable: true,
  });
}
defineProperty(OwnKvU64.prototype, BRAND, { value: true });

type U64Class = new (value: bigint) => KvU64;

/** The runtime's class, if its instances keep their number as ours do. */
function runtimeClass(): U64Class | null {
  const given = (globalThis as { Deno?: { KvU64?: U64Class } }).Deno?.KvU64;
  if (typeof given !== "function") return null;
  try {
    return numberOf(new given(U64_VALUE_MAX)) === U64_VALUE_MAX ? given : null;
  } catch {
    return null;
  }
}

/** The number in an own property that a 64-bit integer can have; undefined for anything else. */
function numberOf(value: object): bigint | undefined {
  const number: unknown = Object.getOwnPropertyDescriptor(value, "value")?.value;
  const fits = typeof number === "bigint" && number >= 0n && number <= U64_VALUE_MAX;
  return fits ? number : undefined;
}

const runtimes = runtimeClass();

export type KvU64 = OwnKvU64;
/** A value read under Deno is an instance of `Deno.KvU64`, where that is. */
export const KvU64: U64Class = runtimes ?? OwnKvU64;

const getPrototypeOf = Object.getPrototypeOf;
const isPrototypeOf = Object.prototype.isPrototypeOf;
const plain = Object.prototype;
const runtimesPrototype: object | null = runtimes?.prototype ?? null;

/**
 * Whether a value is a 64-bit integer: made by this class, by the class of another copy of this
 * module, or by the runtime's. Objects without a class are recognized by their prototype only. Do not
 * pass a proxy: its traps would run.
 */
export function isU64(value: object): value is KvU64 {
  if (OwnKvU64.isMade(value)) return true;
  const prototype: object | null = getPrototypeOf(value);
  if (prototype === plain || prototype === null) return false;
  return isBranded(value, prototype);
}

function isBranded(value: object, prototype: object): boolean {
  const branded =
    (prototype as { [BRAND]?: unknown })[BRAND] === true ||
    (runtimesPrototype !== null &&
      (prototype === runtimesPrototype || isPrototypeOf.call(runtimesPrototype, prototype)));
  return branded && numberOf(value) !== undefined;
}
