// Duty: a filter from a literal to the JSON of the server (crates/core/src/interchange/where_json.rs): operands that
// JSON does not have are typed objects.

import type { Node } from "./node";
import { parseNode } from "./parse";

export function parseWhere(text: string): unknown {
  const node = parseNode(text);
  if (node.type !== "object") throw new Error("a filter is an object: { age: { $gte: 18 } }");
  return plain(node);
}

function plain(node: Node): unknown {
  const { type, value } = node;
  if (type === "object") {
    const pairs = Object.entries(value as Record<string, Node>);
    return Object.fromEntries(pairs.map(([name, held]) => [name, plain(held)]));
  }
  if (type === "Array") return (value as Node[]).map(plain);
  if (type === "number" && typeof value !== "number") return node;
  return ["string", "number", "boolean", "null"].includes(type) ? value : node;
}
