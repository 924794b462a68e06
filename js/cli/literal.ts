// Duty: parses keys and values of a command line: JSON5, and literals for JavaScript's other types:
// 42n, u8"00ff", u64(42), date("2026-01-01"), undefined, NaN.
// Invariant: text is data and never evaluated.

import { KvU64 } from "../codec/u64.js";
import { Scanner, isName } from "./scanner.js";

/** A syntax error, with its position. */
export class LiteralError extends Error {
  constructor(what: string, text: string, at: number) {
    super(`${what} at character ${at + 1} of ${text}`);
  }
}
Object.defineProperty(LiteralError.prototype, "name", { value: "LiteralError" });

/** A key: one array of parts, or one word for each part. No words are the empty prefix. */
export function parseKey(...words: string[]): unknown[] {
  const [first] = words;
  if (first === undefined) return [];
  const parsed = words.map(parseWord);
  if (words.length === 1 && Array.isArray(parsed[0])) return parsed[0];
  for (const [at, part] of parsed.entries()) {
    if (Array.isArray(part))
      throw new LiteralError("a key is one array or words, not both", words[at]!, 0);
  }
  return parsed;
}

/** A value. A word that is no literal is a string: `openkv set user alice`. */
export function parseWord(text: string): unknown {
  return isName(text) && !Object.hasOwn(WORDS, text) ? text : parseLiteral(text);
}

/** A literal. */
export function parseLiteral(text: string): unknown {
  const parser = new Parser(text);
  const value = parser.value();
  parser.end();
  return value;
}

/** Nesting of a literal. */
const DEPTH_MAX = 100;

const WORDS: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  null: null,
  undefined: undefined,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
};

class Parser extends Scanner {
  #depth = 0;

  protected wrong(what: string, at = this.at): LiteralError {
    return new LiteralError(what, this.text, at);
  }

  value(): unknown {
    const c = this.peek();
    if (c === undefined) throw this.wrong("a value is missing");
    if (c === "[") return this.#nested(() => this.#array());
    if (c === "{") return this.#nested(() => this.#object());
    if (c === '"' || c === "'") return this.string();
    if (/[\d.+-]/.test(c)) return this.number();
    return this.#word();
  }

  #nested<T>(parse: () => T): T {
    if (++this.#depth > DEPTH_MAX) throw this.wrong(`more than ${DEPTH_MAX} levels`);
    this.at++;
    const value = parse();
    this.#depth--;
    return value;
  }

  #array(): unknown[] {
    const made: unknown[] = [];
    this.items("]", () => made.push(this.value()));
    return made;
  }

  #object(): object {
    const made = {};
    this.items("}", () => {
      const name = this.name();
      this.expect(":");
      // Not an assignment: the name may be __proto__.
      const property = { writable: true, enumerable: true, configurable: true };
      Object.defineProperty(made, name, { value: this.value(), ...property });
    });
    return made;
  }

  #word(): unknown {
    const start = this.at;
    const word = this.word();
    const next = this.text[this.at];
    if (word === "u8" && (next === '"' || next === "'")) return this.#bytes();
    if (word === "u64" && this.passes("(")) return this.#u64(start);
    if (word === "date" && this.passes("(")) return this.#date(start);
    if (Object.hasOwn(WORDS, word)) return WORDS[word];
    throw this.wrong(`unknown word '${word}' (is it a string without quotes?)`, start);
  }

  #bytes(): Uint8Array {
    const start = this.at;
    const hex = this.string();
    if (!/^(?:[\da-fA-F]{2})*$/.test(hex)) throw this.wrong("not hexadecimal bytes", start);
    return new Uint8Array(Buffer.from(hex, "hex"));
  }

  #u64(start: number): KvU64 {
    const given = this.value();
    this.expect(")");
    try {
      return new KvU64(typeof given === "number" ? BigInt(given) : (given as bigint));
    } catch (error) {
      throw this.wrong((error as Error).message, start);
    }
  }

  #date(start: number): Date {
    const given = this.value();
    this.expect(")");
    const made = new Date(given as string | number);
    if (Number.isNaN(made.getTime())) throw this.wrong("not a time", start);
    return made;
  }
}
