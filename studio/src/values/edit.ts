// Duty: the parts of a value, and the value with one of them replaced, removed or added.

import type { Node } from "./node";
import { fields, inLine, items, pairs } from "./print";

/** A part: what names it, and its value. */
export interface Part {
  readonly name: string;
  readonly node: Node;
}

/** The parts of a value; `undefined` for one that has none. */
export function partsOf(node: Node): Part[] | undefined {
  switch (node.type) {
    case "object":
      return fields(node).map(([name, held]) => ({ name, node: held }));
    case "Array":
    case "Set":
      return items(node).map((held, at) => ({ name: String(at), node: held }));
    case "Map":
      return pairs(node).map(([key, held]) => ({ name: inLine(key), node: held }));
    default:
      return undefined;
  }
}

/** The value with the part at a place replaced; removed for `undefined`. */
export function withPart(node: Node, at: number, part: Node | undefined): Node {
  const keep = <T>(list: readonly T[], changed: (one: T) => T): T[] =>
    list.flatMap((one, place) => {
      if (place !== at) return [one];
      return part === undefined ? [] : [changed(one)];
    });
  if (node.type === "object") {
    const changed = keep<[string, Node]>(fields(node), ([name]) => [name, part!]);
    return { type: "object", value: fromFields(changed) };
  }
  if (node.type === "Map") {
    return { type: "Map", value: keep<[Node, Node]>(pairs(node), ([key]) => [key, part!]) };
  }
  return { type: node.type, value: keep(items(node), () => part!) };
}

/** What a new part of a value needs to be named by. */
export function namedBy(node: Node): "name" | "key" | "place" {
  if (node.type === "object") return "name";
  return node.type === "Map" ? "key" : "place";
}

/** The value with a part added at its end, or replaced if its name is there. */
export function withAdded(node: Node, name: string, key: Node, part: Node): Node {
  switch (namedBy(node)) {
    case "name":
      return { type: "object", value: fromFields([...fields(node), [name, part]]) };
    case "key": {
      const others = pairs(node).filter(([held]) => inLine(held) !== inLine(key));
      return { type: "Map", value: [...others, [key, part]] };
    }
    default:
      return { type: node.type, value: [...items(node), part] };
  }
}

/** Not by assignment: a name may be __proto__. */
function fromFields(given: readonly (readonly [string, Node])[]): Record<string, Node> {
  return Object.fromEntries(given);
}
