// Duty: the programs in docs/watching.md run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/watching.md", root), "utf8");
const said = [
  /^set \[ 'users', 1 \] 0{15}10{4}\nset .*\ncomplete up to 0{15}[12]0{4}\n$/s,
  /^Ada\n$/,
  /^Ada Lovelace\n$/,
  /^\[ null, null \]\n\[ null, 40 \]\n$/,
];

const programs = [...page.matchAll(/```js\n(.*?)```/gs)].map(([, source]) => source);

test("every program of docs/watching.md is expected to say something", () => {
  assert.equal(programs.length, said.length);
});

for (const [i, source] of programs.entries()) {
  test(`program ${i + 1} of docs/watching.md`, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-"], {
      cwd: root,
      input: source,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, said[i]);
  });
}
