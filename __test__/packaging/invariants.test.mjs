// Duty: the invariants of docs/internals name tests that are there. A row has a number, a rule and a test: the
// path of its file, and its name.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path) => readFileSync(root + path, "utf8");
/** The parts of a page about invariants, in their order. */
const PARTS = ["Definitions", "Invariants", "Operations", "Assumptions about the medium"];

const pages = readdirSync(`${root}docs/internals`)
  .map((name) => `docs/internals/${name}`)
  .filter((page) => read(page).includes("\n## Invariants\n"));

test("there are pages about invariants", () => assert.ok(pages.length >= 3));

for (const page of pages)
  test(`${page} has its parts, and each invariant names a test that is there`, () => {
    const text = read(page);
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(headings, PARTS);
    const [, section] = /^## Invariants\n(.*?)^## /ms.exec(text);
    const rows = [...section.matchAll(/^\| (\d+) \| .* \| `([^`]+)`: `([^`]+)` \|$/gm)];
    const numbers = rows.map(([, number]) => Number(number));
    assert.deepEqual(
      numbers,
      numbers.map((_, at) => at + 1),
    );
    assert.equal(rows.length, [...section.matchAll(/^\| \d/gm)].length, "a row without a test");
    for (const [, number, path, name] of rows) {
      const source = read(path);
      const found = source.includes(`fn ${name}(`) || source.includes(`test("${name}"`);
      assert.ok(found, `${number}: ${path} has no test ${name}`);
    }
  });
