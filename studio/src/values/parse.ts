// Duty: reads literals (see print.ts) to nodes. The command line has the same grammar in
// js/cli/literal.ts, for values of JavaScript.
// Invariant: text is data and never evaluated.

import { Scanner, literalOrWord } from "../../../js/cli/scanner";
import {
  ERRORS,
  type Key,
  type Node,
  UNDEFINED,
  VIEWS,
  bytesOf,
  fromBytes,
  fromHex,
  text as textNode,
} from "./node";

/** Nesting of a literal. */
const DEPTH_MAX = 200;

const U64_MAX = 2n ** 64n - 1n;

const WORDS: Readonly<Record<string, Node>> = {
  true: { type: "boolean", value: true },
  false: { type: "boolean", value: false },
  null: { type: "null", value: null },
  undefined: UNDEFINED,
  NaN: { type: "number", value: "NaN" },
  Infinity: { type: "number", value: "Infinity" },
};

export function parseNode(text: string): Node {
  const parser = new Parser(text);
  const node = parser.value();
  parser.end();
  return node;
}

/** A key: an array of parts, or one part. A word that is no literal is a string. */
export function parseKey(text: string): Key {
  const given = text.trim();
  if (given === "") return [];
  const node = literalOrWord(given, WORDS, parseNode, textNode);
  const parts = node.type === "Array" ? (node.value as Node[]) : [node];
  const isPart = ({ type }: Node): boolean =>
    ["string", "number", "bigint", "boolean", "Uint8Array"].includes(type);
  for (const part of parts)
    if (!isPart(part)) throw new Error(`${part.type} cannot be a part of a key`);
  return parts;
}

class Parser extends Scanner {
  #depth = 0;

  protected wrong(what: string, at = this.at): Error {
    const line = this.text.slice(0, at).split("\n");
    return new Error(`${what} (line ${line.length}, character ${line.at(-1)!.length + 1})`);
  }

  value(): Node {
    const c = this.peek();
    if (c === undefined) throw this.wrong("a value is missing");
    if (c === "[") return this.#nested(() => ({ type: "Array", value: this.#list("]") }));
    if (c === "{") return this.#nested(() => ({ type: "object", value: this.#object() }));
    if (c === '"' || c === "'") return textNode(this.string());
    if (/[\d.+-]/.test(c)) return numberNode(this.number());
    return this.#word();
  }

  #nested(parse: () => Node): Node {
    if (++this.#depth > DEPTH_MAX) throw this.wrong(`more than ${DEPTH_MAX} levels`);
    this.at++;
    const node = parse();
    this.#depth--;
    return node;
  }

  #list(close: string): Node[] {
    const made: Node[] = [];
    this.items(close, () => made.push(this.value()));
    return made;
  }

  #object(): Record<string, Node> {
    const made: Record<string, Node> = {};
    this.items("}", () => {
      const name = this.name();
      this.expect(":");
      // Not an assignment: the name may be __proto__.
      const property = { writable: true, enumerable: true, configurable: true };
      Object.defineProperty(made, name, { value: this.value(), ...property });
    });
    return made;
  }

  #word(): Node {
    const start = this.at;
    const word = this.word();
    const next = this.text[this.at];
    if (word === "u8" && (next === '"' || next === "'")) return this.#bytes(start);
    const known = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (known !== undefined) return known;
    if (!this.passes("(")) {
      throw this.wrong(`unknown word '${word}' (is it a string without quotes?)`, start);
    }
    const made = this.#made(word, this.#list(")"));
    if (made === undefined) throw this.wrong(`not a valid ${word}(…)`, start);
    return made;
  }

  #bytes(start: number): Node {
    const bytes = fromHex(this.string().replace(/\s/g, ""));
    if (bytes === undefined) throw this.wrong("not hexadecimal bytes", start);
    return fromBytes("Uint8Array", bytes);
  }

  #made(word: string, [first, second]: readonly Node[]): Node | undefined {
    if (first === undefined) return undefined;
    const { type, value } = first;
    switch (word) {
      case "u64":
        return u64(String(value));
      case "date":
        return type === "null" ? { type: "Date", value: null } : date(value);
      case "set":
        return type === "Array" ? { type: "Set", value } : undefined;
      case "map":
        return mapOf(first);
      case "regexp":
        return type === "string" ? { type: "RegExp", value } : undefined;
      case "cbor":
        return type === "Uint8Array" ? { ...first, type: "CBOR" } : undefined;
      case "view":
        return viewOf(String(value), second);
      case "error":
        return errorOf(String(value), second);
      case "typed":
        return JSON.parse(String(value)) as Node;
      default:
        return undefined;
    }
  }
}

function numberNode(n: number | bigint): Node {
  if (typeof n === "bigint") return { type: "bigint", value: `${n}` };
  if (Object.is(n, -0)) return { type: "number", value: "-0" };
  return { type: "number", value: Number.isFinite(n) ? n : String(n) };
}

function u64(digits: string): Node | undefined {
  if (!/^\d+$/.test(digits) || BigInt(digits) > U64_MAX) return undefined;
  return { type: "KvU64", value: digits };
}

function date(given: unknown): Node | undefined {
  const made = new Date(given as string | number);
  return Number.isNaN(made.getTime()) ? undefined : { type: "Date", value: made.toISOString() };
}

function mapOf({ type, value }: Node): Node | undefined {
  if (type !== "Array") return undefined;
  const pairs = value as Node[];
  const isPair = (pair: Node): boolean =>
    pair.type === "Array" && (pair.value as Node[]).length === 2;
  return pairs.every(isPair) ? { type: "Map", value: pairs.map((pair) => pair.value) } : undefined;
}

function viewOf(type: string, bytes: Node | undefined): Node | undefined {
  if (!VIEWS.includes(type) || bytes?.type !== "Uint8Array") return undefined;
  return fromBytes(type, bytesOf(bytes));
}

function errorOf(type: string, given: Node | undefined): Node | undefined {
  if (!ERRORS.includes(type) || given?.type !== "object") return undefined;
  const { message, stack, cause } = given.value as Record<string, Node>;
  const value = {
    ...(message && { message: message.value }),
    ...(stack && { stack: stack.value }),
    ...(cause && { cause }),
  };
  return { type, value };
}
