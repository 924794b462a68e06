/**
 * `KvU64`: an unsigned 64-bit integer that `sum`, `min` and `max` work on. Stored as eight
 * little-endian bytes.
 *
 * Throws TypeError for anything but a bigint, RangeError outside 0 … 2^64 − 1.
 *
 * @example new KvU64(5n).value === 5n
 */

const U64_VALUE_MAX = 0xffff_ffff_ffff_ffffn;

export class KvU64 {
  /** The number, 0 … 2^64 − 1. */
  readonly value: bigint;
  /** Only what the constructor made has it. */
  readonly #made = true;

  constructor(value: bigint) {
    if (typeof value !== "bigint") {
      throw new TypeError(`Value must be a bigint: received ${typeof value}`);
    }
    if (value < 0n) {
      throw new RangeError(`Value must be a positive bigint: received ${value}`);
    }
    if (value > U64_VALUE_MAX) {
      throw new RangeError("Value must fit in a 64-bit unsigned integer");
    }
    this.value = value;
    Object.freeze(this);
  }

  /**
   * Whether a value was made by this class, whatever its prototype says; runs no code of the
   * value's.
   */
  static isU64(value: object): value is KvU64 {
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
  Object.defineProperty(KvU64.prototype, Symbol.for(name), {
    value: inspect,
    enumerable: false,
    configurable: true,
    writable: true,
  });
}
