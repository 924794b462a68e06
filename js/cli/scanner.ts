// Duty: the tokens of literals, in both directions: white space, comments, strings, names, numbers,
// words; and which words are no literals. The command line reads literals to values of JavaScript
// (literal.ts), the studio to nodes (studio/src/values/parse.ts).
// Invariant: no imports, so that the studio compiles this file too.

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

/** The start of an array, object, string, or of a form like date(…): such a text is no plain word. */
const LITERAL_START = /^\s*(?:["'[{]|u8["']|(?:u64|date|set|map|regexp|error|view|cbor|typed)\()/;

/**
 * The literal of a text, or a string if the text is none: /tmp/x, 1.2.3, hello world. A text that
 * starts like a literal and is none is an error, and so is an empty one. `known`: names that are literals.
 */
export function literalOrWord<T>(
  text: string,
  known: Readonly<Record<string, unknown>>,
  literal: (text: string) => T,
  word: (text: string) => T,
): T {
  if (isName(text) && !Object.hasOwn(known, text)) return word(text);
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

/** The name of a property as a literal. */
export function printName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}

/** A position in a text, and the tokens from there. */
export abstract class Scanner {
  protected readonly text: string;
  protected at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The error for a fault at a position. */
  protected abstract wrong(what: string, at?: number): Error;

  end(): void {
    if (this.peek() !== undefined) throw this.wrong("nothing more was expected");
  }

  /** The next character behind white space and comments, which are skipped. */
  protected peek(): string | undefined {
    SPACE.lastIndex = this.at;
    this.at += SPACE.exec(this.text)![0].length;
    return this.text[this.at];
  }

  /** Skips a character, if it is next; returns whether it was. */
  protected passes(c: string): boolean {
    if (this.peek() !== c) return false;
    this.at++;
    return true;
  }

  protected expect(c: string): void {
    if (!this.passes(c)) throw this.wrong(`'${c}' was expected`);
  }

  /** Reads items with commas between them, up to a closing character. */
  protected items(close: string, item: () => void): void {
    while (!this.passes(close)) {
      this.#requireMore(close);
      item();
      if (this.passes(close)) break;
      this.#requireMore(close);
      if (!this.passes(",")) throw this.wrong(`',' or '${close}' was expected`);
    }
  }

  /** Throws if the text ends before a closing character. */
  #requireMore(close: string): void {
    if (this.peek() === undefined) throw this.wrong(`the closing '${close}' is missing`);
  }

  /** The name of a property. */
  protected name(): string {
    const c = this.peek();
    if (c === '"' || c === "'") return this.string();
    const name = this.#match(WORD) ?? this.#match(/\d+/y);
    if (name === null) throw this.wrong("a name was expected");
    return name;
  }

  protected number(): number | bigint {
    const start = this.at;
    const text = this.#match(NUMBER);
    if (text === null) throw this.wrong("a number was expected");
    const sign = text.startsWith("-") ? -1 : 1;
    const digits = text.replace(/^[+-]/, "");
    try {
      if (digits.endsWith("n")) return BigInt(sign) * BigInt(digits.slice(0, -1));
    } catch {
      throw this.wrong("a bigint has no point and no exponent", start);
    }
    return sign * Number(digits);
  }

  protected word(): string {
    const found = this.#match(WORD);
    if (found === null) throw this.wrong("a value was expected");
    return found;
  }

  protected string(): string {
    const start = this.at;
    const quote = this.text[this.at++];
    let value = "";
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined) throw this.wrong("the string does not end", start);
      if (c === quote) return value;
      value += c === "\\" ? this.#escape() : c;
    }
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at += found[0].length;
    return found[0];
  }

  #escape(): string {
    const start = this.at;
    const c = this.text[this.at++] ?? "";
    if (c === "x" || c === "u") {
      const hex = this.#match(c === "x" ? /[\da-fA-F]{2}/y : /[\da-fA-F]{4}|\{[\da-fA-F]{1,6}\}/y);
      const code = Number.parseInt(hex?.replace(/[{}]/g, "") ?? "", 16);
      if (hex === null || code > 0x10ffff) throw this.wrong("not an escape", start);
      return String.fromCodePoint(code);
    }
    return ESCAPES[c] ?? c;
  }
}
