// Duty: checks and mutations as requests and as code.

import { javascript } from "../../values/code";
import { type Key, type Node, text } from "../../values/node";
import { parseKey, parseNode } from "../../values/parse";
import type { CheckDraft, MutationDraft } from "./draft";

function keyOf(literal: string): Key {
  const key = parseKey(literal);
  if (key.length === 0) throw new Error("the key has no parts");
  return key;
}

const code = (key: Key): string => `[${key.map(javascript).join(", ")}]`;

export const asked = {
  check({ key, versionstamp }: CheckDraft): object {
    return { key: keyOf(key), versionstamp: versionstamp === "" ? null : versionstamp };
  },
  checkCode({ key, versionstamp }: CheckDraft): string {
    const stamp = versionstamp === "" ? "null" : JSON.stringify(versionstamp);
    return `.check({ key: ${code(keyOf(key))}, versionstamp: ${stamp} })`;
  },
  mutation(draft: MutationDraft): object {
    const { kind: type, key, value, seconds } = draft;
    const expiry = seconds === "" ? {} : { expireIn: Number(seconds) * 1000 };
    if (type === "enqueue") return { type, queue: key, value: parseNode(value) };
    if (type === "delete") return { type, key: keyOf(key) };
    return { type, key: keyOf(key), value: operandOf(draft), ...expiry };
  },
};

/** `append` and `prepend` take an array; one that is not becomes its only item. */
function operandOf({ kind, value }: MutationDraft): Node {
  const node = parseNode(value);
  const isList = kind === "append" || kind === "prepend";
  return isList && node.type !== "Array" ? { type: "Array", value: [node] } : node;
}

export function mutationCode(draft: MutationDraft): string {
  const { kind, key, value, seconds } = draft;
  if (kind === "enqueue") {
    const options = key === "" ? "" : `, { queue: ${javascript(text(key))} }`;
    return `.enqueue(${javascript(parseNode(value))}${options})`;
  }
  if (kind === "delete") return `.delete(${code(keyOf(key))})`;
  const options = seconds === "" ? "" : `, { expireIn: ${Number(seconds) * 1000} }`;
  return `.${kind}(${code(keyOf(key))}, ${javascript(operandOf(draft))}${options})`;
}
