// Duty: parses keys and values of a command line: JSON5, and literals for JavaScript's other types:
// 42n, u8"00ff", u64(42), date("2026-01-01"), undefined, NaN.
// Invariant: text is data and never evaluated.

import { KvU64 } from "../codec/u64.js";

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
  return isWord(text) ? text : parseLiteral(text);
}

/**
 * Whether the text starts like a name and has no character of a literal: alice, user-1,
 * ada@example.com.
 */
function isWord(text: string): boolean {
  return /^[\p{L}_$@][^\s"'`()[\]{},]*$/u.test(text) && !Object.hasOwn(WORDS, text);
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

const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "0": "\0",
};

const NUMBER = /[+-]?(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)n?/y;
const SPACE = /(?:\s|\/\*[^]*?\*\/|\/\/.*)*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length) throw this.#wrong("nothing more was expected");
  }

  value(): unknown {
    this.#space();
    const c = this.#text[this.#at];
    if (c === undefined) throw this.#wrong("a value is missing");
    if (c === "[") return this.#nested(() => this.#array());
    if (c === "{") return this.#nested(() => this.#object());
    if (c === '"' || c === "'") return this.#string();
    if (/[\d.+-]/.test(c)) return this.#number();
    return this.#word();
  }

  #wrong(what: string, at = this.#at): LiteralError {
    return new LiteralError(what, this.#text, at);
  }

  /** Skips white space and comments. */
  #space(): void {
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.#text)![0].length;
  }

  /** Skips a character, if it is next; returns whether it was. */
  #passes(c: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== c) return false;
    this.#at++;
    return true;
  }

  #expect(c: string): void {
    if (!this.#passes(c)) throw this.#wrong(`'${c}' was expected`);
  }

  #nested<T>(parse: () => T): T {
    if (++this.#depth > DEPTH_MAX) throw this.#wrong(`more than ${DEPTH_MAX} levels`);
    this.#at++;
    const value = parse();
    this.#depth--;
    return value;
  }

  #array(): unknown[] {
    const items: unknown[] = [];
    while (!this.#passes("]")) {
      items.push(this.value());
      if (this.#passes("]")) break;
      this.#expect(",");
    }
    return items;
  }

  #object(): object {
    const made = {};
    while (!this.#passes("}")) {
      this.#space();
      const c = this.#text[this.#at];
      const name = c === '"' || c === "'" ? this.#string() : this.#name();
      this.#expect(":");
      const property = {
        value: this.value(),
        writable: true,
        enumerable: true,
        configurable: true,
      };
      Object.defineProperty(made, name, property);
      if (this.#passes("}")) break;
      this.#expect(",");
    }
    return made;
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.#at += found[0].length;
    return found[0];
  }

  #name(): string {
    const name = this.#match(WORD) ?? this.#match(/\d+/y);
    if (name === null) throw this.#wrong("a name was expected");
    return name;
  }

  #number(): number | bigint {
    const start = this.#at;
    const text = this.#match(NUMBER);
    if (text === null) throw this.#wrong("a number was expected");
    const sign = text.startsWith("-") ? -1 : 1;
    const digits = text.replace(/^[+-]/, "");
    try {
      if (digits.endsWith("n")) return BigInt(sign) * BigInt(digits.slice(0, -1));
    } catch {
      throw this.#wrong("a bigint has no point and no exponent", start);
    }
    return sign * Number(digits);
  }

  #word(): unknown {
    const start = this.#at;
    const word = this.#match(WORD);
    if (word === null) throw this.#wrong("a value was expected");
    const next = this.#text[this.#at];
    if (word === "u8" && (next === '"' || next === "'")) return this.#bytes();
    if (word === "u64" && this.#passes("(")) return this.#u64(start);
    if (word === "date" && this.#passes("(")) return this.#date(start);
    if (Object.hasOwn(WORDS, word)) return WORDS[word];
    throw this.#wrong(`unknown word '${word}' (is it a string without quotes?)`, start);
  }

  #bytes(): Uint8Array {
    const start = this.#at;
    const hex = this.#string();
    if (!/^(?:[\da-fA-F]{2})*$/.test(hex)) throw this.#wrong("not hexadecimal bytes", start);
    return new Uint8Array(Buffer.from(hex, "hex"));
  }

  #u64(start: number): KvU64 {
    const given = this.value();
    this.#expect(")");
    try {
      return new KvU64(typeof given === "number" ? BigInt(given) : (given as bigint));
    } catch (error) {
      throw this.#wrong((error as Error).message, start);
    }
  }

  #date(start: number): Date {
    const given = this.value();
    this.#expect(")");
    const made = new Date(given as string | number);
    if (Number.isNaN(made.getTime())) throw this.#wrong("not a time", start);
    return made;
  }

  #string(): string {
    const start = this.#at;
    const quote = this.#text[this.#at++];
    let value = "";
    for (;;) {
      const c = this.#text[this.#at++];
      if (c === undefined) throw this.#wrong("the string does not end", start);
      if (c === quote) return value;
      value += c === "\\" ? this.#escape() : c;
    }
  }

  #escape(): string {
    const start = this.#at;
    const c = this.#text[this.#at++] ?? "";
    if (c === "x" || c === "u") {
      const hex = this.#match(c === "x" ? /[\da-fA-F]{2}/y : /[\da-fA-F]{4}|\{[\da-fA-F]{1,6}\}/y);
      const code = Number.parseInt(hex?.replace(/[{}]/g, "") ?? "", 16);
      if (hex === null || code > 0x10ffff) throw this.#wrong("not an escape", start);
      return String.fromCodePoint(code);
    }
    return ESCAPES[c] ?? c;
  }
}
