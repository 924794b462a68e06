// Duty: random choices that can be made again: everything follows from one seed.
//
// The seed is new for every run; a failure names it. To replay:
//   OPENKV_SEED=123 node --test __test__/property/operations.test.mjs
//   node __test__/property/operations.test.mjs --seed 123

import { Buffer } from "node:buffer";
import process from "node:process";

/** The seed of this run: given, or drawn. */
export const seed = givenSeed() ?? Math.floor(Math.random() * 2 ** 31);

function givenSeed() {
  const at = process.argv.indexOf("--seed");
  const text = at === -1 ? process.env.OPENKV_SEED : process.argv[at + 1];
  return text === undefined ? undefined : Number(text);
}

/** Runs `body` with a Random of its own, and names the seed when it fails. */
export async function seeded(name, body) {
  let number = seed;
  for (const letter of name) number = (Math.imul(number, 31) + letter.codePointAt(0)) >>> 0;
  try {
    return await body(new Random(number));
  } catch (error) {
    error.message = `${error.message}\nto replay: OPENKV_SEED=${seed} (${name})`;
    throw error;
  }
}

export class Random {
  #state;

  constructor(number) {
    this.#state = number >>> 0;
  }

  /** From 0 up to, not including, 1. (A counter through a 32-bit mixing function.) */
  unit() {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to `to`, both included. */
  int(from, to) {
    return from + Math.floor(this.unit() * (to - from + 1));
  }

  chance(probability) {
    return this.unit() < probability;
  }

  pick(list) {
    return list[this.int(0, list.length - 1)];
  }

  /** `length` results of `make`. */
  list(length, make) {
    return Array.from({ length }, make);
  }

  shuffled(list) {
    const copy = [...list];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [copy[i], copy[j]] = [copy[j], copy[i]];
    }
    return copy;
  }

  bytes(length) {
    return Uint8Array.from({ length }, () => this.int(0, 255));
  }

  /** A double of random bits: every exponent, both zeroes, infinities, NaN. */
  double() {
    return new DataView(this.bytes(8).buffer).getFloat64(0);
  }

  bigint(bytesMax) {
    const hex = Buffer.from(this.bytes(this.int(0, bytesMax))).toString("hex");
    const magnitude = BigInt(`0x0${hex}`);
    return this.chance(0.5) ? -magnitude : magnitude;
  }

  /** Text of ASCII, of the edges of Unicode, or of both; lone surrogates when asked for. */
  text(lengthMax, { lone = false } = {}) {
    const edges = ["\0", "\x01", "\x7f", "\x80", "ÿ", "\u07ff", "\u0800", "\uffff", "\ue000", "😀"];
    if (lone) edges.push("\ud800", "\udfff", "\udbff", "\udc00");
    const ascii = this.chance(0.6);
    const letter = () =>
      ascii || this.chance(0.5) ? String.fromCharCode(this.int(97, 122)) : this.pick(edges);
    return this.list(this.int(0, lengthMax), letter).join("");
  }
}
