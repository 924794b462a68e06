// Duty: the quickstart in README.md works when it is pasted into an empty project.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "openkv-readme-"));
after(() => rmSync(project, { recursive: true, force: true }));

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

test("every file that README and CONTRIBUTING link to exists", () => {
  for (const page of ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, link] of text.matchAll(/\]\(([^)#\s]+)\)/g)) {
      assert.ok(link.startsWith("https://") || existsSync(join(root, link)), `${page}: ${link}`);
    }
  }
});
