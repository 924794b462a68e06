// Duty: nodes as literals: JSON5, and forms of their own for the types that JSON5 does not have. They
// are those of the command line (js/cli/print-literal.ts).
// Invariant: parse.ts reads the text back to the same node, and refuses that of an unreadable value.

import { printName, quoted } from "../../../js/cli/literal-grammar";
import { type Key, type Node, UNREADABLE, bytesOf, hexOf } from "./node";
import { ERRORS, VIEWS } from "../../../js/cli/literal-grammar";

/** Characters of a line up to which an array or object is printed in one line. */
const LINE_CHARS_MAX = 72;

/** A value, over several lines if it is long. */
export function printNode(node: Node, indent = ""): string {
  const line = inLine(node);
  if (line.length + indent.length <= LINE_CHARS_MAX) return line;
  const inner = `${indent}  `;
  const lines = (open: string, items: readonly string[], close: string): string =>
    items.length === 0
      ? open + close
      : `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${indent}${close}`;
  switch (node.type) {
    case "Array":
      return lines(
        "[",
        items(node).map((item) => printNode(item, inner)),
        "]",
      );
    case "Set":
      return lines(
        "set([",
        items(node).map((item) => printNode(item, inner)),
        "])",
      );
    case "Map":
      return lines(
        "map([",
        pairs(node).map((pair) => printPair(pair, inner)),
        "])",
      );
    case "object":
      return lines(
        "{",
        fields(node).map((field) => printField(field, inner)),
        "}",
      );
    default:
      return line;
  }
}

/** A value in one line. */
export function inLine(node: Node): string {
  const list = (given: readonly Node[]): string => `[${given.map(inLine).join(", ")}]`;
  const { type, value } = node;
  switch (type) {
    case "undefined":
    case "null":
      return type;
    case "boolean":
    case "number":
      return String(value);
    case "string":
      return quoted(String(value));
    case "bigint":
      return `${value}n`;
    case "KvU64":
      return `u64(${value})`;
    case "Date":
      return value === null ? "date(null)" : `date(${quoted(String(value))})`;
    case "RegExp":
      return `regexp(${quoted(String(value))})`;
    case "Array":
      return list(items(node));
    case "Set":
      return `set(${list(items(node))})`;
    case "Map":
      return `map([${pairs(node)
        .map((pair) => list(pair))
        .join(", ")}])`;
    case "object": {
      const inner = fields(node).map(([name, held]) => `${printName(name)}: ${inLine(held)}`);
      return inner.length === 0 ? "{}" : `{ ${inner.join(", ")} }`;
    }
    case UNREADABLE:
      return `unreadable(${quoted(String(value))})`;
    case "Uint8Array":
      return `u8"${hexOf(bytesOf(node))}"`;
    default:
      return printOther(node);
  }
}

/** Characters of the preview of a value. */
const PREVIEW_CHARS_MAX = 160;

/** The beginning of a value, in one line. */
export function preview(node: Node): string {
  const line = inLine(node);
  return line.length > PREVIEW_CHARS_MAX ? `${line.slice(0, PREVIEW_CHARS_MAX)}…` : line;
}

function printOther(node: Node): string {
  const { type } = node;
  if (VIEWS.includes(type)) return `view("${type}", u8"${hexOf(bytesOf(node))}")`;
  if (type === "CBOR") return `cbor(u8"${hexOf(bytesOf(node))}")`;
  if (ERRORS.includes(type)) {
    const { message, stack, cause } = node.value as Record<string, unknown>;
    const parts = [
      ...(message === undefined ? [] : [`message: ${quoted(String(message))}`]),
      ...(stack === undefined ? [] : [`stack: ${quoted(String(stack))}`]),
      ...(cause === undefined ? [] : [`cause: ${inLine(cause as Node)}`]),
    ];
    return `error("${type}", { ${parts.join(", ")} })`;
  }
  return `typed(${JSON.stringify(JSON.stringify(node))})`;
}

export { printName, quoted };

export const items = (node: Node): Node[] => node.value as Node[];
export const pairs = (node: Node): [Node, Node][] => node.value as [Node, Node][];
export const fields = (node: Node): [string, Node][] =>
  Object.entries(node.value as Record<string, Node>);

function printPair([key, value]: [Node, Node], indent: string): string {
  return `[${inLine(key)}, ${printNode(value, indent)}]`;
}

function printField([name, value]: [string, Node], indent: string): string {
  return `${printName(name)}: ${printNode(value, indent)}`;
}

/** A key as a literal, which the server and the command line read. */
export function printKey(key: Key): string {
  return `[${key.map(inLine).join(", ")}]`;
}
