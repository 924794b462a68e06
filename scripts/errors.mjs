// Duty: writes the table of errors in docs/limits.md from the table of kinds in the Rust and the
// classes of the build. `npm run generate` runs it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
export const page = join(root, "docs", "limits.md");
const START = "<!-- table: npm run generate -->\n";
const END = "<!-- end of the table -->\n";

/** The codes that a user's input can cause: first in the table. */
const OF_INPUT = ["INVALID", "TOO_LARGE", "RANGE"];

/** The kinds of errors: number, code, status over HTTP, what happened and what to do. */
export function kinds() {
  const source = readFileSync(join(root, "src/model/error.rs"), "utf8");
  const [, table] = /\nkinds! \{\n(.*?)\n\}\n/s.exec(source);
  const rows = [...table.matchAll(/((?: +\/\/\/.*\n)+) +\w+ = (\d+), "(\w+)", (\d+);/g)];
  return rows.map(([, comment, number, code, status]) => {
    const [when, remedy] = comment
      .replaceAll(/^ +\/\/\/ ?/gm, "")
      .split("\n\n")
      .map((paragraph) => paragraph.trim().replaceAll("\n", " ").replace(/\.$/, ""));
    return { number: Number(number), code, status: Number(status), when, remedy };
  });
}

/** The page with the generated table. */
export function written() {
  const { errorOf } = createRequire(import.meta.url)("../dist/model/errors.js");
  const classOf = (number) => errorOf({ kind: number, message: "" }).name;
  const text = readFileSync(page, "utf8");
  const [start, end] = [text.indexOf(START) + START.length, text.indexOf(END)];
  const ofInput = (kind) => OF_INPUT.includes(kind.code);
  const all = kinds();
  const rows = [
    ...OF_INPUT.map((code) => all.find((kind) => kind.code === code)),
    ...all.filter((kind) => !ofInput(kind)),
  ];
  const lines = [
    "| `code` | class | what happened | HTTP | what to do |",
    "|---|---|---|---|---|",
    ...rows.map(({ number, code, status, when, remedy }) => {
      return `| \`${code}\` | \`${classOf(number)}\` | ${when} | ${status} | ${remedy} |`;
    }),
  ];
  return `${text.slice(0, start)}${lines.join("\n")}\n${text.slice(end)}`;
}
