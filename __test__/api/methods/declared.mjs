// Duty: the public functions and methods that index.d.ts declares, by name.

import { readFileSync } from "node:fs";

const declarations = readFileSync(new URL("../../../index.d.ts", import.meta.url), "utf8");

const OWNER = /^export (?:class|interface) (\w+)/;
const FUNCTION = /^export function (\w+)/;
/** What is called inside an exported constant that is a function too. */
const CONSTANT = /^export const (\w+): \{/;
const MEMBER = /^  (?:get )?(\w+|\[Symbol\.\w+\])(?:(?:<.*>)?\(|<$)/;
/** A property that works when it is read. */
const ITERATOR = /^  readonly (\w+): AsyncIterableIterator/;

/** An interface of which callers give the objects. */
const CALLERS = "KvClock";

/** Each method as "Kv.get", each function as "openKv"; true when it answers a promise. */
export function declaredMethods() {
  const found = new Map();
  const lines = declarations.split("\n");
  let owner = null;
  lines.forEach((line, at) => {
    const [, type] = OWNER.exec(line) ?? CONSTANT.exec(line) ?? [];
    if (type !== undefined) owner = type === CALLERS ? null : type;
    if (line.startsWith("}")) owner = null;
    const [, name] = FUNCTION.exec(line) ?? [];
    if (name !== undefined) found.set(name, answersPromise(lines, at));
    if (CONSTANT.test(line)) found.set(type, false);
    const [, member] = (owner && (MEMBER.exec(line) ?? ITERATOR.exec(line))) ?? [];
    if (member !== undefined) found.set(`${owner}.${member}`, answersPromise(lines, at));
  });
  return found;
}

/** Whether the declaration that begins at a line ends with the type of a promise. */
function answersPromise(lines, at) {
  let text = "";
  do text += lines[at++];
  while (!text.endsWith(";") || unbalanced(text));
  return /\): Promise<[^;]*;$/.test(text);
}

function unbalanced(text) {
  return text.split("(").length !== text.split(")").length;
}
