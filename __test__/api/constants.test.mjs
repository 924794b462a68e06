// Duty: constants that JavaScript spells as well as src/model/limits.rs have the same value in both.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

/** Constants of src/model/limits.rs that JavaScript needs before it has loaded the addon, or per call. */
const SHARED = [
  "BACKOFF_DEFAULT_MS",
  "BUSY_TIMEOUT_MS_DEFAULT",
  "CACHE_BYTES_MAX",
  "CACHE_BYTES_MIN",
  "DURATION_MS_MAX",
  "FILTER_BYTES_MAX",
  "IMMEDIATE_BYTES_MAX",
  "IMMEDIATE_WRITES_MAX",
  "KEY_PRINT_CHARS_MAX",
  "MMAP_BYTES_MAX",
  "NAMED_BACKOFF_DEFAULT_MS",
  "PAGE_ENTRIES_MAX",
  "TIME_MS_MAX",
  "VALUE_DEPTH_MAX",
];

/** What a literal of numbers, `*` and brackets means; undefined for any other expression. */
function valueOf(text) {
  if (!/^[\d_\s*,.[\]]+$/.test(text)) return undefined;
  return JSON.stringify(runInNewContext(text));
}

function constants(paths, pattern) {
  const found = [];
  for (const path of paths) {
    for (const [, name, text] of read(path).matchAll(pattern)) {
      found.push({ name, path, value: valueOf(text.trim()) });
    }
  }
  return found;
}

function filesBelow(folder, ending) {
  return readdirSync(new URL(folder, root), { recursive: true })
    .filter((path) => path.endsWith(ending))
    .map((path) => `${folder}${path.replaceAll("\\", "/")}`);
}

test("JavaScript's copies of constants are those of src/model/limits.rs", () => {
  const rustFiles = ["src/model/limits.rs", ...filesBelow("src/model/limits/", ".rs")];
  const rust = constants(rustFiles, /^pub const (\w+): [^=]+ = ([^;]+);/gm);
  const inRust = new Map(rust.map(({ name, value }) => [name, value]));
  const js = constants(
    filesBelow("js/", ".ts"),
    /^(?:export )?const ([A-Z][A-Z0-9_]+)\b[^=\n]* = ([^;]+);/gm,
  );
  const copies = js.filter(({ name }) => inRust.has(name));
  for (const { name, path, value } of copies) {
    assert.notEqual(value, undefined, `${path}: ${name} is not a literal`);
    assert.equal(value, inRust.get(name), `${path}: ${name}`);
  }
  const names = [...new Set(copies.map(({ name }) => name))].sort();
  assert.deepEqual(names, SHARED);
});
