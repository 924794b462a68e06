// Duty: the examples of the pages named here run when they are pasted into an empty project: every
// block of JavaScript that imports openkv is a program.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const PAGES = [
  ...["README.md", "docs/writing.md", "docs/limits.md", "docs/reading.md", "docs/filters.md"],
  ...["docs/transactions.md", "docs/queues.md", "docs/search.md", "docs/operating.md"],
  ...["docs/server.md", "docs/deno-files.md", "docs/metrics.md"],
];

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "openkv-pages-"));
after(() => rmSync(project, { recursive: true, force: true }));
mkdirSync(join(project, "node_modules"));
symlinkSync(root, join(project, "node_modules", "openkv"), "junction");

for (const page of PAGES) {
  const text = readFileSync(join(root, page), "utf8");
  const programs = [...text.matchAll(/```js\n(.*?)```/gs)].map(([, source]) => source);
  for (const [at, source] of programs.entries()) {
    test(`${page}, program ${at + 1} of ${programs.length}`, () => {
      assert.match(source, /from "openkv"/, "a block that is no program is marked as text");
      const file = join(project, `${basename(page)}-${at}.mjs`);
      writeFileSync(file, source);
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
