/**
 * `KvU64`: an unsigned 64-bit integer that `sum`, `min` and `max` work on. Stored as eight little-endian bytes.
 *
 * Throws TypeError for anything but a bigint, RangeError outside 0 … 2^64 − 1.
 *
 * @example new KvU64(5n).value === 5n
 */

const U64_VALUE_MAX = 0xffff_ffff_ffff_ffffn;

export class KvU64 {
  /** The number, 0 … 2^64 − 1. */
  readonly value: bigint;

  constructor(value: bigint) {
    if (typeof value !== "bigint") {
      throw new TypeError(`Value must be a bigint: received ${typeof value}`);
    }
    if (value < 0n) {
      throw new RangeError(`Value must be a positive bigint: received ${value}`);
    }
    if (value > U64_VALUE_MAX) {
      throw new RangeError(`Value must fit in a 64-bit unsigned integer: received ${value}`);
    }
    this.value = value;
    Object.freeze(this);
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

/** The one rendering for every console: `[Deno.KvU64: 5n]`. Node and Bun ask the first name, Deno both. */
function inspect(
  this: KvU64,
  first: unknown,
  second: unknown,
  third: unknown,
): string {
  // Node calls (depth, options, inspect); Deno calls (inspect, options).
  const render = typeof third === "function" ? third : typeof first === "function" ? first : null;
  const text = render === null ? `${this.value}n` : String(render(Object(this.value), second));
  // A boxed bigint renders as "[BigInt: 5n]": the same brackets with our name.
  return text.startsWith("[BigInt: ") ? text.replace("BigInt", "Deno.KvU64") : `[Deno.KvU64: ${text}]`;
}

for (const name of ["nodejs.util.inspect.custom", "Deno.customInspect"]) {
  Object.defineProperty(KvU64.prototype, Symbol.for(name), {
    value: inspect,
    enumerable: false,
    configurable: true,
    writable: true,
  });
}
