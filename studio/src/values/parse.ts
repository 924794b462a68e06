// Duty: reads literals (see print.ts) to nodes. The command line reads them to values of JavaScript, by the
// same grammar.

import { type Form, type Maker, literalOrWord, readLiteral } from "../../../js/cli/literal-grammar";
import { type Key, type Node, UNDEFINED, bytesOf, fromBytes, text as textNode } from "./node";
import { ERRORS, VIEWS } from "../../../js/cli/literal-grammar";
import { timeOf } from "../../../js/interchange/iso-time";

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
  return readLiteral(text, MAKER);
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

const MAKER: Maker<Node> = {
  words: WORDS,
  text: textNode,
  number: numberNode,
  array: (items) => ({ type: "Array", value: items }),
  object: (fields) => ({ type: "object", value: fields }),
  bytes: (bytes) => fromBytes("Uint8Array", bytes),
  form: (form, given) => {
    const value = nodeOf(form, given);
    return value && { value };
  },
  wrong: (what, text, at) => {
    const line = text.slice(0, at).split("\n");
    return new Error(`${what} (line ${line.length}, character ${line.at(-1)!.length + 1})`);
  },
};

function nodeOf(form: Form, [first, second]: readonly Node[]): Node | undefined {
  if (first === undefined) return undefined;
  const { type, value } = first;
  switch (form) {
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
      return form satisfies never;
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
  const time = timeOf(given as string | number);
  return time && { type: "Date", value: time.toISOString() };
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
