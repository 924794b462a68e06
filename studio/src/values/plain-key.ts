// Duty: a key in plain JSON, as some answers have it: strings, numbers and booleans are themselves.

import type { Key, Node } from "./node";

export function fromPlainKey(parts: readonly unknown[]): Key {
  return parts.map((part): Node => {
    if (typeof part === "object" && part !== null) return part as Node;
    return { type: typeof part, value: part };
  });
}
