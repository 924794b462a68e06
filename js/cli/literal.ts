// Duty: parses keys and values of a command line: JSON5, and literals for JavaScript's other types:
// 42n, u8"00ff", u64(42), date("2026-01-01"), set([1]), map([[1, 2]]), regexp("/a/g"), undefined, NaN.
// Invariant: text is data and never evaluated. What print-literal.ts prints is read to the same value.

import { KvU64 } from "../codec/u64.js";
import { decodeTyped } from "../interchange/decode.js";
import { Scanner, literalOrWord } from "./scanner.js";

/** How a literal, and a string that starts like one, are given to a shell. */
export const QUOTING =
  "single quotes keep a literal together in a shell, as '[\"users\", 42]' and '{ a: 1 }'; " +
  "a string that starts like a literal is quoted twice, as '\"[a\"'";

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
  return literalOrWord<unknown>(text, WORDS, parseLiteral, (word) => word);
}

/** A literal. */
export function parseLiteral(text: string): unknown {
  const parser = new Parser(text);
  const value = parser.value();
  parser.end();
  return value;
}

/** Nesting of a literal. */
export const DEPTH_MAX = 100;

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

  #nested<T>(parse: () => T, opening = 1): T {
    if (++this.#depth > DEPTH_MAX) throw this.wrong(`more than ${DEPTH_MAX} levels`);
    this.at += opening;
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
    if (FORMS.includes(word) && this.passes("(")) {
      return this.#nested(() => this.#form(word, start), 0);
    }
    if (Object.hasOwn(WORDS, word)) return WORDS[word];
    throw this.wrong(`unknown word '${word}' (is it a string without quotes?)`, start);
  }

  #bytes(): Uint8Array {
    const start = this.at;
    const hex = this.string();
    if (hex.endsWith(CUT)) throw this.wrong("the bytes are cut: --json prints all of them", start);
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
    const made = new Date(given === null ? Number.NaN : (given as string | number));
    if (given !== null && Number.isNaN(made.getTime())) throw this.wrong("not a time", start);
    return made;
  }

  /** set(…), map(…) and others, behind the opening bracket. */
  #form(word: string, start: number): unknown {
    const given: unknown[] = [];
    this.items(")", () => given.push(this.value()));
    try {
      const made = formOf(word, given);
      if (made !== undefined) return made.value;
    } catch (error) {
      throw this.wrong((error as Error).message, start);
    }
    throw this.wrong(`not a valid ${word}(…)`, start);
  }
}

/** The end of bytes that print-literal.ts has cut. */
export const CUT = "…";

const FORMS: readonly string[] = ["set", "map", "regexp", "error", "view", "cbor", "typed"];

/** The value of a form; undefined if its arguments are wrong. */
function formOf(word: string, [first, second]: readonly unknown[]): { value: unknown } | undefined {
  const typed = (type: string, value: unknown): { value: unknown } => ({
    value: decodeTyped({ type, value }),
  });
  const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");
  switch (word) {
    case "set":
      return Array.isArray(first) ? { value: new Set(first) } : undefined;
    case "map":
      return Array.isArray(first) && first.every((pair) => Array.isArray(pair) && pair.length === 2)
        ? { value: new Map(first as [unknown, unknown][]) }
        : undefined;
    case "regexp":
      return typeof first === "string" ? typed("RegExp", first) : undefined;
    case "error":
      return errorOf(first, second);
    case "view":
      return typeof first === "string" && second instanceof Uint8Array
        ? typed(first, base64url(second))
        : undefined;
    case "cbor":
      return first instanceof Uint8Array ? typed("CBOR", base64url(first)) : undefined;
    case "typed":
      return typeof first === "string" ? { value: decodeTyped(JSON.parse(first)) } : undefined;
    default:
      return undefined;
  }
}

const ERRORS: readonly string[] = [
  ...["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError"],
  "URIError",
];

function errorOf(type: unknown, given: unknown): { value: unknown } | undefined {
  if (!ERRORS.includes(type as string) || typeof given !== "object" || given === null) {
    return undefined;
  }
  const { message, stack } = given as Record<string, unknown>;
  const error = decodeTyped({ type, value: { message, stack } }) as Error;
  if (Object.hasOwn(given, "cause")) {
    const value = (given as { cause: unknown }).cause;
    Object.defineProperty(error, "cause", { value, writable: true, configurable: true });
  }
  return { value: error };
}
