// Duty: docs/architecture.md names the files that a reader opens to follow five calls: they exist, and there are not
// more of them than here.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/architecture.md", root), "utf8");

/** Most files of each call, in the order of the page. */
const FILES_MAX = [12, 15, 18, 18, 10];

test("the page names the files of five calls", () => {
  const [, section] = page.split("## Five flows\n");
  const rows = [...section.split("\n## ")[0].matchAll(/^\| (`kv.+?) \| (.+) \|$/gm)];
  assert.equal(rows.length, FILES_MAX.length);
  for (const [at, [, call, cell]] of rows.entries()) {
    const files = [...cell.matchAll(/`([^`]+)`/g)].map(([, file]) => file);
    assert.ok(files.length > 0 && files.length <= FILES_MAX[at], `${call}: ${files.length} files`);
    assert.equal(new Set(files).size, files.length, `${call} names a file twice`);
    for (const file of files) assert.ok(existsSync(new URL(file, root)), `${call}: ${file}`);
  }
});
