// Duty: the folders of js/ use each other in one direction, as docs/architecture.md says, and no
// file imports itself by way of others.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Longest file, in lines. */
const FILE_LINES_MAX = 600;

const files = new Map(
  readdirSync(join(root, "js"), { recursive: true })
    .map((name) => String(name).replaceAll(sep, "/"))
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
    .map((name) => [name, readFileSync(join(root, "js", name), "utf8")]),
);

/**
 * The files of js/ that a file imports, also those that it takes only types from: a type is a part
 * of what a reader has to know.
 */
function imports(name) {
  const paths = [...files.get(name).matchAll(/^(?:import|export)\s[^;"]*?from\s+"(\.[^"]+)"/gm)];
  return paths
    .map(([, path]) => `${join(dirname(name), path).replaceAll(sep, "/").replace(/\.js$/, "")}.ts`)
    .filter((path) => files.has(path));
}

const folderOf = (name) => (name.includes("/") ? name.slice(0, name.indexOf("/")) : "");

/** The table of the page: every folder and the folders that it uses. */
function table() {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const [, section] = page.split("## Folders of js/");
  const rows = section.split("\n## ")[0].matchAll(/^\| `(\w+)` \| .* \| ([\w, ]+) \|$/gm);
  return [...rows].map(([, folder, uses]) => [folder, uses === "nothing" ? [] : uses.split(", ")]);
}

test("the page says which folders there are and which of them each uses", () => {
  const shown = table();
  const order = shown.map(([folder]) => folder);
  const used = new Map(order.map((folder) => [folder, new Set()]));
  for (const name of files.keys()) {
    const folder = folderOf(name);
    if (folder === "") continue;
    assert.ok(used.has(folder), `js/${name}: the page has no folder ${folder}`);
    for (const other of imports(name)) {
      if (folderOf(other) !== folder) used.get(folder).add(folderOf(other));
    }
  }
  for (const [folder, uses] of shown) {
    const found = order.filter((other) => used.get(folder).delete(other));
    assert.deepEqual(uses, found, `what js/${folder} uses`);
    assert.deepEqual([...used.get(folder)], [], `what js/${folder} uses beside folders`);
  }
});

test("a folder uses only folders above it", () => {
  const above = new Set();
  for (const [folder, uses] of table()) {
    for (const other of uses) assert.ok(above.has(other), `js/${folder} uses js/${other}`);
    above.add(folder);
  }
});

test("no file imports itself by way of others", () => {
  const done = new Set();
  const walk = (name, path) => {
    const at = path.indexOf(name);
    assert.equal(at, -1, [...path.slice(at), name].join(" → "));
    if (done.has(name)) return;
    for (const other of imports(name)) walk(other, [...path, name]);
    done.add(name);
  };
  for (const name of files.keys()) walk(name, []);
  assert.ok(imports("api/kv.ts").length > 20, "the search for imports finds too few");
});

test("files are short and say their duty first", () => {
  for (const [name, text] of files) {
    assert.match(text, /^(?:#!.*\n)?(?:\/\/ Duty: |\/\*\*\n \* )/, `js/${name}`);
    const lines = text.split("\n").length - 1;
    assert.ok(lines <= FILE_LINES_MAX, `js/${name} has ${lines} lines`);
  }
});
