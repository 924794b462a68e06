// Duty: the keys and values of a command line: literals (literal-grammar.ts) as values of JavaScript.
// Invariant: what print-literal.ts prints is read to the same value.

import { parseJson } from "../interchange/integers.js";
import { timeOf } from "../interchange/iso-time.js";
import { KvU64 } from "../codec/u64.js";
import { decodeTyped } from "../interchange/decode.js";
import {
  ERRORS,
  type Form,
  type Maker,
  VIEWS,
  literalOrWord,
  readLiteral,
} from "./literal-grammar.js";

/** How a literal, and a string that starts like one, are given to a shell. */
export const QUOTING =
  "single quotes keep a literal together in a shell, as '[\"users\", 42]' and '{ a: 1 }'; " +
  "a string that starts like a literal is quoted twice, as '\"[a\"'";

/** A syntax error, with its position. */
export class LiteralError extends Error {
  constructor(what: string, text: string, at: number) {
    super(
      text.trim() === ""
        ? `${what}: the text is empty ("" in quotes is an empty string)`
        : `${what} at character ${at + 1} of ${text}`,
    );
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
  return readLiteral(text, MAKER);
}

const WORDS: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  null: null,
  undefined: undefined,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
};

const MAKER: Maker<unknown> = {
  words: WORDS,
  text: (value) => value,
  number: (value) => value,
  array: (items) => items,
  object: (fields) => fields,
  bytes: (bytes) => bytes,
  form: formOf,
  wrong: (what, text, at) => new LiteralError(what, text, at),
};

/** The value of a form; undefined if its arguments are wrong. */
function formOf(form: Form, [first, second]: readonly unknown[]): { value: unknown } | undefined {
  const typed = (type: string, value: unknown): { value: unknown } => ({
    value: decodeTyped({ type, value }),
  });
  const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");
  switch (form) {
    case "u64":
      return { value: new KvU64(typeof first === "number" ? BigInt(first) : (first as bigint)) };
    case "date": {
      if (first === null) return { value: new Date(Number.NaN) };
      const time =
        typeof first === "string" || typeof first === "number" ? timeOf(first) : undefined;
      return time && { value: time };
    }
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
      return VIEWS.includes(first as string) && second instanceof Uint8Array
        ? typed(first as string, base64url(second))
        : undefined;
    case "cbor":
      return first instanceof Uint8Array ? typed("CBOR", base64url(first)) : undefined;
    case "typed":
      return typeof first === "string" ? { value: decodeTyped(parseJson(first)) } : undefined;
    default:
      return form satisfies never;
  }
}

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
