// Duty: an entry as code that writes or reads it: JavaScript, curl, the command line.

import { type Entry, type Key, type Node, bytesOf } from "./node";
import { VIEWS } from "../../../js/cli/literal-grammar";
import { fields, inLine, items, pairs, printKey, printName, quoted } from "./print";

/** A value as an expression of JavaScript; KvU64 is imported from openkv. */
export function javascript(node: Node): string {
  const list = (given: readonly Node[]): string => `[${given.map(javascript).join(", ")}]`;
  const { type, value } = node;
  switch (type) {
    case "KvU64":
      return `new KvU64(${value}n)`;
    case "number":
      return value === "-0" ? "-0" : String(value);
    case "Date":
      return value === null ? "new Date(NaN)" : `new Date(${quoted(String(value))})`;
    case "RegExp":
      return String(value);
    case "Array":
      return list(items(node));
    case "Set":
      return `new Set(${list(items(node))})`;
    case "Map":
      return `new Map([${pairs(node).map(list).join(", ")}])`;
    case "object": {
      const inner = fields(node).map(([name, held]) => `${field(name)}: ${javascript(held)}`);
      return inner.length === 0 ? "{}" : `{ ${inner.join(", ")} }`;
    }
    default:
      return VIEWS.includes(type) ? view(node) : inLine(node);
  }
}

/** `__proto__: x` sets the prototype, `["__proto__"]: x` a property. */
const field = (name: string): string => (name === "__proto__" ? '["__proto__"]' : printName(name));

function view(node: Node): string {
  const bytes = `new Uint8Array([${[...bytesOf(node)].join(", ")}])`;
  if (node.type === "Uint8Array") return bytes;
  return node.type === "ArrayBuffer" ? `${bytes}.buffer` : `new ${node.type}(${bytes}.buffer)`;
}

const javascriptKey = (key: Key): string => `[${key.map(javascript).join(", ")}]`;

/** A word of a POSIX shell. */
const word = (given: string): string => `'${given.replaceAll("'", "'\\''")}'`;

/** What code of an entry may do with it. */
export type Doing = "get" | "set" | "delete";

export function asJavaScript(doing: Doing, { key, value }: Entry): string {
  const given = javascriptKey(key);
  if (doing !== "set" || value === null) return `await kv.${doing}(${given});`;
  return `await kv.set(${given}, ${javascript(value)});`;
}

export function asCli(doing: Doing, { key, value }: Entry): string {
  const given = `openkv ${doing} ${word(printKey(key))}`;
  if (doing !== "set" || value === null) return given;
  const literal = inLine(value);
  // Else the command would read it as an option.
  return `${given} ${literal.startsWith("-") ? "-- " : ""}${word(literal)}`;
}

/** `base`: the URL of the API of the database. */
export function asCurl(doing: Doing, { key, value }: Entry, base: string): string {
  const url = `${base}/keys?key=${encodeURIComponent(printKey(key))}`;
  const token = `-H "authorization: Bearer $OPENKV_ACCESS_TOKEN"`;
  const accept = `-H "accept: application/vnd.openkv+json"`;
  if (doing === "get") return `curl ${token} ${accept} ${word(url)}`;
  if (doing === "delete") return `curl -X DELETE ${token} ${word(url)}`;
  const type = `-H "content-type: application/vnd.openkv+json"`;
  return `curl -X PUT ${token} ${type} -d ${word(JSON.stringify(value))} ${word(url)}`;
}
