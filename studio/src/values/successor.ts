// Duty: the first part of a key behind another and all that is below it. Keys are in the order of their
// bytes (docs/format.md §1): bytes, strings, bigints, numbers, booleans.

import { type Node, bytesOf, fromBytes, text } from "./node";

/** `undefined` behind the last possible part, which is `true`. */
export function successor(part: Node): Node | undefined {
  const { type, value } = part;
  switch (type) {
    case "Uint8Array":
      return fromBytes(type, new Uint8Array([...bytesOf(part), 0]));
    case "string":
      // The terminator of `a` is followed by a tag below that of the escaped zero of `a\0`.
      return text(`${String(value)}\0`);
    case "bigint":
      return { type, value: String(BigInt(String(value)) + 1n) };
    case "number":
      return number(Number(value), value === "-0");
    default:
      return value === false ? { type: "boolean", value: true } : undefined;
  }
}

function number(n: number, isNegativeZero: boolean): Node {
  if (isNegativeZero) return { type: "number", value: 0 };
  if (Number.isNaN(n)) return { type: "boolean", value: false };
  if (n === Number.POSITIVE_INFINITY) return { type: "number", value: "NaN" };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, n);
  const bits = view.getBigInt64(0);
  view.setBigInt64(0, bits >= 0n ? bits + 1n : bits - 1n);
  const next = view.getFloat64(0);
  if (Object.is(next, -0)) return { type: "number", value: "-0" };
  return { type: "number", value: Number.isFinite(next) ? next : String(next) };
}
