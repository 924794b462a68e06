// Duty: the tokens of literals: white space, comments, strings, names, numbers.

/** A fault of a literal, and where it is. */
export class LiteralError extends Error {
  readonly at: number;

  constructor(what: string, at: number) {
    super(what);
    this.at = at;
  }
}

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

export class Scanner {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  wrong(what: string, at = this.at): LiteralError {
    const line = this.text.slice(0, at).split("\n");
    const place = `line ${line.length}, character ${line.at(-1)!.length + 1}`;
    return new LiteralError(`${what} (${place})`, at);
  }

  /** The next character behind white space and comments. */
  peek(): string | undefined {
    SPACE.lastIndex = this.at;
    this.at += SPACE.exec(this.text)![0].length;
    return this.text[this.at];
  }

  end(): void {
    if (this.peek() !== undefined) throw this.wrong("nothing more was expected");
  }

  /** Skips a character, if it is next; returns whether it was. */
  passes(c: string): boolean {
    if (this.peek() !== c) return false;
    this.at++;
    return true;
  }

  expect(c: string): void {
    if (!this.passes(c)) throw this.wrong(`'${c}' was expected`);
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at += found[0].length;
    return found[0];
  }

  name(): string {
    this.peek();
    const name = this.#match(WORD) ?? this.#match(/\d+/y);
    if (name === null) throw this.wrong("a name was expected");
    return name;
  }

  number(): string {
    const found = this.#match(NUMBER);
    if (found === null) throw this.wrong("a number was expected");
    return found;
  }

  word(): string {
    const found = this.#match(WORD);
    if (found === null) throw this.wrong("a value was expected");
    return found;
  }

  string(): string {
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
