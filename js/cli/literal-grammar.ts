// Duty: the grammar of literals: JSON5, and forms for JavaScript's other types: 42n, u8"00ff", u64(42),
// date("2026-01-01"), set([1]), map([[1, 2]]), regexp("/a/g"), undefined, NaN; and which words are none. The
// command line makes values of JavaScript of them (literal.ts), the studio nodes (studio/src/values/parse.ts).
// Invariant: text is data and never evaluated. No imports, so that the studio compiles this file too.

const NUMBER = /[+-]?(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)n?/y;
const SPACE = /(?:\s|\/\*[^]*?\*\/|\/\/.*)*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;

const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "0": "\0",
};

/**
 * Whether a text starts like a name and has no character of a literal: alice, user-1,
 * ada@example.com.
 */
function isName(text: string): boolean {
  return /^[\p{L}_$@][^\s"'`()[\]{},]*$/u.test(text);
}

/** Forms with arguments: date(…). What they make is not part of the grammar. */
const FORMS = ["u64", "date", "set", "map", "regexp", "error", "view", "cbor", "typed"] as const;
export type Form = (typeof FORMS)[number];

/** The start of an array, object, string, or of a form like date(…): such a text is no plain word. */
const LITERAL_START = new RegExp(`^\\s*(?:["'[{]|u8["']|(?:${FORMS.join("|")})\\()`);

/**
 * The literal of a text, or a string if the text is none: /tmp/x, 1.2.3, hello world, +49, 007. A text
 * that starts like a literal and is none is an error, and so is an empty one. `known`: names that are
 * literals.
 */
export function literalOrWord<T>(
  text: string,
  known: Readonly<Record<string, unknown>>,
  literal: (text: string) => T,
  word: (text: string) => T,
): T {
  if (isName(text) && !Object.hasOwn(known, text)) return word(text);
  // No number is printed with a plus; numbers of telephones begin with one.
  if (text.trimStart().startsWith("+")) return word(text);
  try {
    return literal(text);
  } catch (error) {
    if (text.trim() === "" || LITERAL_START.test(text)) throw error;
    return word(text);
  }
}

/** A string as a literal. Characters that do not show, or change the direction of text, are escapes. */
export function quoted(given: string): string {
  return JSON.stringify(given).replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Whether a number would be another one than its text says: an integer is rounded, or beyond all numbers. */
function losesDigits(digits: string, number: number): boolean {
  if (/^(?:Infinity|NaN)$/.test(digits)) return false;
  if (!Number.isFinite(number)) return true;
  const isWhole = /^(?:\d+|0[xX][\da-fA-F]+)$/.test(digits);
  // As it is printed, 123456789012345680000 is read to itself.
  return isWhole && String(number) !== digits && BigInt(number) !== BigInt(digits);
}

/** The name of a property as a literal. */
export function printName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}

/** The classes of views on bytes. */
export const VIEWS: readonly string[] = [
  ...["Uint8Array", "Int8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array"],
  ...["Uint32Array", "BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array"],
  ...["Float64Array", "DataView", "ArrayBuffer"],
];

export const ERRORS: readonly string[] = [
  ...["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError"],
  "URIError",
];

/** The end of bytes that print-literal.ts has cut. */
export const CUT = "…";

/** Levels of a literal. */
export const DEPTH_MAX = 200;

/** What a reader of literals makes of them. */
export interface Maker<T> {
  /** The words that are values: true, null, NaN. */
  readonly words: Readonly<Record<string, T>>;
  text(value: string): T;
  number(value: number | bigint): T;
  array(items: T[]): T;
  /** An object with these properties, which may be named __proto__. */
  object(fields: Readonly<Record<string, T>>): T;
  bytes(bytes: Uint8Array): T;
  /** Undefined for wrong arguments, or an error that says what is wrong with them. */
  form(form: Form, given: readonly T[]): { readonly value: T } | undefined;
  /** The error for a fault at a position. */
  wrong(what: string, text: string, at: number): Error;
}

/** Reads a literal. */
export function readLiteral<T>(text: string, maker: Maker<T>): T {
  const parser = new Parser(text, maker);
  const value = parser.value();
  parser.end();
  return value;
}

/** A position in a text, and what follows it. */
class Parser<T> {
  private readonly text: string;
  private readonly maker: Maker<T>;
  private at = 0;
  private depth = 0;

  constructor(text: string, maker: Maker<T>) {
    this.text = text;
    this.maker = maker;
  }

  value(): T {
    const c = this.peek();
    if (c === undefined) throw this.wrong("a value is missing");
    if (c === "[") return this.nested(() => this.maker.array(this.list("]")));
    if (c === "{") return this.nested(() => this.maker.object(this.fields()));
    if (c === '"' || c === "'") return this.maker.text(this.string());
    if (/[\d.+-]/.test(c)) return this.maker.number(this.number());
    return this.valueOfWord();
  }

  private wrong(what: string, at = this.at): Error {
    return this.maker.wrong(what, this.text, at);
  }

  /** Reads a value in brackets, behind the opening one. */
  private nested(parse: () => T): T {
    if (++this.depth > DEPTH_MAX) throw this.wrong(`more than ${DEPTH_MAX} levels`);
    this.at++;
    const value = parse();
    this.depth--;
    return value;
  }

  private list(close: string): T[] {
    const made: T[] = [];
    this.items(close, () => made.push(this.value()));
    return made;
  }

  private fields(): Record<string, T> {
    const made: Record<string, T> = {};
    this.items("}", () => {
      const name = this.name();
      this.expect(":");
      // Not an assignment: the name may be __proto__.
      const property = { writable: true, enumerable: true, configurable: true };
      Object.defineProperty(made, name, { value: this.value(), ...property });
    });
    return made;
  }

  private valueOfWord(): T {
    const start = this.at;
    const word = this.word();
    const next = this.text[this.at];
    if (word === "u8" && (next === '"' || next === "'")) return this.maker.bytes(this.hex());
    const form = FORMS.find((known) => known === word);
    if (form !== undefined && this.peek() === "(") {
      return this.nested(() => this.made(form, start));
    }
    if (Object.hasOwn(this.maker.words, word)) return this.maker.words[word]!;
    throw this.wrong(`unknown word '${word}' (is it a string without quotes?)`, start);
  }

  private made(form: Form, start: number): T {
    const given = this.list(")");
    let made: { readonly value: T } | undefined;
    try {
      made = this.maker.form(form, given);
    } catch (error) {
      throw this.wrong((error as Error).message, start);
    }
    if (made === undefined) throw this.wrong(`not a valid ${form}(…)`, start);
    return made.value;
  }

  private hex(): Uint8Array {
    const start = this.at;
    const digits = this.string().replace(/\s/g, "");
    if (digits.endsWith(CUT))
      throw this.wrong("the bytes are cut: --json prints all of them", start);
    if (!/^(?:[\da-fA-F]{2})*$/.test(digits)) throw this.wrong("not hexadecimal bytes", start);
    return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  }

  end(): void {
    if (this.peek() !== undefined) throw this.wrong("nothing more was expected");
  }

  /** The next character behind white space and comments, which are skipped. */
  private peek(): string | undefined {
    SPACE.lastIndex = this.at;
    this.at += SPACE.exec(this.text)![0].length;
    return this.text[this.at];
  }

  /** Skips a character, if it is next; returns whether it was. */
  private passes(c: string): boolean {
    if (this.peek() !== c) return false;
    this.at++;
    return true;
  }

  private expect(c: string): void {
    if (!this.passes(c)) throw this.wrong(`'${c}' was expected`);
  }

  /** Reads items with commas between them, up to a closing character. */
  private items(close: string, item: () => void): void {
    while (!this.passes(close)) {
      this.requireMore(close);
      item();
      if (this.passes(close)) break;
      this.requireMore(close);
      if (!this.passes(",")) throw this.wrong(`',' or '${close}' was expected`);
    }
  }

  /** Throws if the text ends before a closing character. */
  private requireMore(close: string): void {
    if (this.peek() === undefined) throw this.wrong(`the closing '${close}' is missing`);
  }

  /** The name of a property. */
  private name(): string {
    const c = this.peek();
    if (c === '"' || c === "'") return this.string();
    const name = this.match(WORD) ?? this.match(/\d+/y);
    if (name === null) throw this.wrong("a name was expected");
    return name;
  }

  private number(): number | bigint {
    const start = this.at;
    const text = this.match(NUMBER);
    if (text === null) throw this.wrong("a number was expected");
    const sign = text.startsWith("-") ? -1 : 1;
    const digits = text.replace(/^[+-]/, "");
    if (/^0\d/.test(digits)) throw this.wrong("no number begins with 0 and a digit", start);
    try {
      if (digits.endsWith("n")) return BigInt(sign) * BigInt(digits.slice(0, -1));
    } catch {
      throw this.wrong("a bigint has no point and no exponent", start);
    }
    const number = Number(digits);
    if (losesDigits(digits, number)) {
      const remedy = "a bigint ends with n, and quotes make a string";
      throw this.wrong(`a number cannot hold these digits: ${remedy}`, start);
    }
    return sign * number;
  }

  private word(): string {
    const found = this.match(WORD);
    if (found === null) throw this.wrong("a value was expected");
    return found;
  }

  private string(): string {
    const start = this.at;
    const quote = this.text[this.at++];
    let value = "";
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined) throw this.wrong("the string does not end", start);
      if (c === quote) return value;
      value += c === "\\" ? this.escape() : c;
    }
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at += found[0].length;
    return found[0];
  }

  private escape(): string {
    const start = this.at;
    const c = this.text[this.at++] ?? "";
    if (c === "x" || c === "u") {
      const hex = this.match(c === "x" ? /[\da-fA-F]{2}/y : /[\da-fA-F]{4}|\{[\da-fA-F]{1,6}\}/y);
      const code = Number.parseInt(hex?.replace(/[{}]/g, "") ?? "", 16);
      if (hex === null || code > 0x10ffff) throw this.wrong("not an escape", start);
      return String.fromCodePoint(code);
    }
    return ESCAPES[c] ?? c;
  }
}
