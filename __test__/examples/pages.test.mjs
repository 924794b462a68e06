// Duty: the examples of the pages named here run when they are pasted into an empty project: every
// block of JavaScript or TypeScript that imports openkv is a program, and TypeScript compiles under
// `strict`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { newFolder } from "../kit/folder.mjs";

const PAGES = [
  ...["README.md", "docs/writing.md", "docs/limits.md", "docs/reading.md", "docs/filters.md"],
  ...["docs/transactions.md", "docs/queues.md", "docs/search.md", "docs/operating.md"],
  ...["docs/server.md", "docs/deno-files.md", "docs/metrics.md", "docs/backup.md"],
  "docs/features.md",
];

const COMPILER_OPTIONS = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  types: ["node"],
  module: "nodenext",
  strict: true,
};

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = newFolder("pages");
mkdirSync(join(project, "node_modules"));
symlinkSync(root, join(project, "node_modules", "openkv"), "junction");
symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"), "junction");
writeFileSync(
  join(project, "tsconfig.json"),
  JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ["*.mts"] }),
);

/** The blocks of code of a page, each with the file that it is run from. */
function programsOf(page) {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/```(js|ts)\n(.*?)```/gs)].map(([, language, source], at) => {
    const file = join(project, `${basename(page)}-${at}`);
    writeFileSync(`${file}.${language === "ts" ? "mts" : "mjs"}`, source);
    return { source, typed: language === "ts", file: `${file}.mjs` };
  });
}

const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)]
  .filter((page) => page.endsWith(".md"))
  .map((page) => [page, programsOf(page)]);

const compiled = spawnSync(
  process.execPath,
  [join(root, "node_modules/typescript/bin/tsc"), "-p", project],
  { cwd: root, encoding: "utf8" },
);

test("the TypeScript of README and docs compiles under strict", () => {
  assert.equal(compiled.status, 0, compiled.stdout);
  const typed = pages.filter(([, programs]) => programs.some(({ typed }) => typed));
  assert.ok(typed.length >= 5, "few pages show types");
});

for (const [page, programs] of pages) {
  if (!PAGES.includes(page)) continue;
  for (const [at, { source, file }] of programs.entries()) {
    test(`${page}, program ${at + 1} of ${programs.length}`, () => {
      assert.match(source, /from "openkv"/, "a block that is no program is marked as text");
      const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
        cwd: project,
        encoding: "utf8",
      });
      assert.equal(status, 0, stderr);
      // What a line is said to print alone, it prints.
      for (const [, told] of source.matchAll(/^console\.log\(.*\); \/\/ ([\w{}: ]+)$/gm)) {
        if (told !== "a Date") assert.ok(stdout.split("\n").includes(told), `${told}:\n${stdout}`);
      }
    });
  }
}
