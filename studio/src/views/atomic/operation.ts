// Duty: an atomic operation that was typed, as a request and as code. A fault names its place.

import { javascript } from "../../values/code";
import { type Key, type Node, text } from "../../values/node";
import { parseKey, parseNode } from "../../values/parse";
import { msOf } from "../../values/seconds";
import type { CheckDraft, Draft, MutationDraft } from "./draft";

/** The body of the request. */
export function requestOf({ checks, mutations }: Draft): object {
  return {
    checks: checks.map(at("Check", checkRequest)),
    mutations: mutations.map(at("Mutation", mutationRequest)),
  };
}

/** The operation as JavaScript. */
export function codeOf({ checks, mutations }: Draft): string {
  const lines = [
    ...checks.map(at("Check", checkCode)),
    ...mutations.map(at("Mutation", mutationCode)),
  ];
  return `const result = await kv\n  .atomic()\n${lines.map((line) => `  ${line}\n`).join("")}  .commit();`;
}

function at<D, T>(what: string, work: (draft: D) => T): (draft: D, place: number) => T {
  return (draft, place) => {
    try {
      return work(draft);
    } catch (error) {
      throw new Error(`${what} ${place + 1}: ${(error as Error).message}`);
    }
  };
}

function keyOf(literal: string): Key {
  const key = parseKey(literal);
  if (key.length === 0) throw new Error("the key has no parts");
  return key;
}

/** `append` and `prepend` take an array; one that is not becomes its only item. */
function operandOf({ kind, value }: MutationDraft): Node {
  const node = parseNode(value);
  const isList = kind === "append" || kind === "prepend";
  return isList && node.type !== "Array" ? { type: "Array", value: [node] } : node;
}

function checkRequest({ key, versionstamp }: CheckDraft): object {
  return { key: keyOf(key), versionstamp: versionstamp === "" ? null : versionstamp };
}

function mutationRequest(draft: MutationDraft): object {
  const { kind: type, key, value, seconds } = draft;
  if (type === "enqueue") return { type, queue: key, value: parseNode(value) };
  if (type === "delete") return { type, key: keyOf(key) };
  return { type, key: keyOf(key), value: operandOf(draft), expireIn: msOf(seconds) };
}

const keyCode = (literal: string): string => `[${keyOf(literal).map(javascript).join(", ")}]`;

function checkCode({ key, versionstamp }: CheckDraft): string {
  const stamp = versionstamp === "" ? "null" : JSON.stringify(versionstamp);
  return `.check({ key: ${keyCode(key)}, versionstamp: ${stamp} })`;
}

function mutationCode(draft: MutationDraft): string {
  const { kind, key, value, seconds } = draft;
  if (kind === "enqueue") {
    const options = key === "" ? "" : `, { queue: ${javascript(text(key))} }`;
    return `.enqueue(${javascript(parseNode(value))}${options})`;
  }
  if (kind === "delete") return `.delete(${keyCode(key)})`;
  const expireIn = msOf(seconds);
  const options = expireIn === undefined ? "" : `, { expireIn: ${expireIn} }`;
  return `.${kind}(${keyCode(key)}, ${javascript(operandOf(draft))}${options})`;
}
