// Duty: the tokens of literals: white space, comments, strings, names, numbers, words. The command
// line reads literals to values of JavaScript (literal.ts), the studio to nodes (studio/src/values/parse.ts).
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
export function isName(text: string): boolean {
  return /^[\p{L}_$@][^\s"'`()[\]{},]*$/u.test(text);
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
      item();
      if (this.passes(close)) break;
      this.expect(",");
    }
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
