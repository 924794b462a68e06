// Duty: writes the table of docs/errors.md, the codes of errors, from the table of kinds in the Rust and the
// classes in the TypeScript. Run it after changing one of them:
//
//   node scripts/errors.mjs            write it
//   node scripts/errors.mjs --check    fail when it differs from what would be written

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const page = join(root, "docs", "errors.md");
const START = "<!-- table: node scripts/errors.mjs -->\n";
const END = "<!-- end of the table -->\n";

/** The codes that a user's input can cause: first in the table. */
const OF_INPUT = ["INVALID", "TOO_LARGE", "RANGE"];

/** The classes of codes that are not a plain `KvError`. */
const CLASSES = classes(readFileSync(join(root, "js/model/errors.ts"), "utf8"));

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

function classes(source) {
  const [, table] = /const CLASSES = \{\n(.*?)\n\} satisfies/s.exec(source);
  const makers = source.matchAll(
    /export function (\w+)\([^)]*\): (?:TypeError|RangeError|Error) \{\n.*?new (\w+)\(/gs,
  );
  const made = new Map([...makers].map(([, name, type]) => [name, type]));
  return new Map(
    [...table.matchAll(/(\w+): (?:\(message: string\) => new )?(\w+)/g)].map(([, code, by]) => [
      code,
      made.get(by) ?? by,
    ]),
  );
}

/** The page with the generated table. */
export function written() {
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
    ...rows.map(({ code, status, when, remedy }) => {
      return `| \`${code}\` | \`${CLASSES.get(code) ?? "KvError"}\` | ${when} | ${status} | ${remedy} |`;
    }),
  ];
  return `${text.slice(0, start)}${lines.join("\n")}\n${text.slice(end)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = written();
  if (!process.argv.includes("--check")) {
    writeFileSync(page, text);
  } else if (readFileSync(page, "utf8") !== text) {
    console.error("docs/errors.md is out of date: run node scripts/errors.mjs");
    process.exitCode = 1;
  }
}
