// Duty: the quickstart in README.md works when it is pasted into an empty project; tests run all blocks of
// the page. The links of the pages are in __test__/packaging/links.test.mjs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { newFolder } from "../kit/folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = newFolder("readme");
/** The README is a first page: everything else is below docs/. */
const LINES_MAX = 100;

test("the quickstart runs, and again on its own data", () => {
  const [, source] = /```js\n(.*?)```/s.exec(readFileSync(join(root, "README.md"), "utf8"));
  const [, name] = /^\/\/ (\S+\.mjs)$/m.exec(source);
  writeFileSync(join(project, "package.json"), "{}\n");
  writeFileSync(join(project, name), source);
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules", "openkv"), "junction");

  const env = { ...process.env };
  delete env.OPENKV_URL;
  for (let runs = 1; runs <= 2; runs++) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [name], {
      cwd: project,
      env,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Ada [0-9a-f]{20}\nrenamed\n\[ 'users', 'ada' \] \{/, `run ${runs}`);
    assert.match(stdout, /name: 'Ada Lovelace'/);
  }
  assert.ok(existsSync(join(project, ".openkv", "kv.sqlite3")));
});

test("the commands of the README are scripts of the manifest", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const page of ["README.md", "CONTRIBUTING.md"]) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, name] of text.matchAll(/npm run ([\w:]+)/g)) {
      assert.ok(name in scripts, `${page}: npm run ${name}`);
    }
  }
  assert.ok("start" in scripts && "test" in scripts);
});

const docs = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);

test("README shows code at once, six features, how to install, and links", () => {
  const text = readFileSync(join(root, "README.md"), "utf8");
  const lines = text.trimEnd().split("\n");
  assert.ok(lines.length <= LINES_MAX, `${lines.length} lines`);
  assert.ok(lines.slice(0, 15).join("\n").includes("await kv.set("));
  const [, features] = /^## Features\n(.*?)^## /ms.exec(text);
  assert.equal([...features.matchAll(/^\d\. \*\*/gm)].length, 6);
  const order = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  assert.deepEqual(order, ["Features", "Install", "Links", "From a clone"]);
});

// A block that no test runs becomes wrong without notice.
test("a test runs every block of the README", () => {
  const text = readFileSync(join(root, "README.md"), "utf8");
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)];
  assert.ok(blocks.length >= 4);
  for (const [, language, block] of blocks) {
    // pages.test.mjs runs programs, curl.test.mjs what calls curl, packaging/install.test.mjs installs the
    // tarballs into an empty project.
    if (language === "js" || /^curl /m.test(block) || block === "npm install openkv\n") continue;
    // `npm install` builds (scripts/build.mjs), examples.test.mjs runs the quickstart of `npm start`, and
    // CI's first step for Node is `npm test`.
    const [, command] = /^npm install && npm (start|test)\n$/.exec(block) ?? [];
    assert.ok(command in scripts, `no test runs\n${block}`);
  }
  assert.equal(scripts.prepare, "node scripts/build.mjs");
  assert.equal(scripts.prestart, scripts.prepare);
  assert.equal(scripts.start, "node examples/quickstart.mjs");
});

test("the index of the docs names every page", () => {
  const index = readFileSync(join(root, "docs/README.md"), "utf8");
  for (const page of docs) {
    if (page !== "docs/README.md") assert.ok(index.includes(`](${basename(page)}`), page);
  }
});
