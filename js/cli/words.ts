// Duty: splits a line of the shell into words.
//
// Spaces separate words, except inside quotes and brackets: `set ["users", 1] { name: "Ada" }` has
// three. As in a shell, single quotes are removed, and a word that begins with `#` begins a comment; double
// quotes stay and make a literal a string.

import { LiteralError } from "./literal.js";

const OPENING = "[{(";
const CLOSING = "]})";

export function splitWords(line: string): string[] {
  const words: string[] = [];
  let at = 0;
  while (at < line.length) {
    if (/\s/.test(line[at]!)) {
      at++;
      continue;
    }
    if (line[at] === "#") break;
    let word = "";
    let depth = 0;
    const start = at;
    while (at < line.length && (depth > 0 || !/\s/.test(line[at]!))) {
      const c = line[at]!;
      if (c === '"' || c === "'") {
        const end = endOfQuoted(line, at, c === '"' || depth > 0);
        // Inside a literal, quotes belong to the literal.
        word += c === "'" && depth === 0 ? line.slice(at + 1, end - 1) : line.slice(at, end);
        at = end;
        continue;
      }
      if (OPENING.includes(c)) depth++;
      if (CLOSING.includes(c)) depth--;
      word += c;
      at++;
    }
    if (depth > 0) throw new LiteralError("an open bracket is not closed", line, start);
    words.push(word);
  }
  return words;
}

/** The position after the closing quote of the quote at `start`. */
function endOfQuoted(line: string, start: number, escapes: boolean): number {
  for (let at = start + 1; at < line.length; at++) {
    if (escapes && line[at] === "\\") at++;
    else if (line[at] === line[start]) return at + 1;
  }
  throw new LiteralError("the string does not end", line, start);
}
