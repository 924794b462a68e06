// Duty: the worked examples of CONTRIBUTING.md name the files that such a change touches, every one, and not more
// than the bounds here.
//
// The example of a mutation named 19 files, and a reader found more by the compiler.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const page = read("CONTRIBUTING.md");

/** The files in the table of an example. */
function filesOf(example) {
  const section = page.split(`## Example: adding ${example}\n`)[1].split("\n## ")[0];
  return [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, file]) => file);
}

/** The sources in a folder, by their paths from the root. */
function sources(folder, ending) {
  return readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}${name.replaceAll("\\", "/")}`);
}

for (const [example, most] of Object.entries({
  "a mutation": 12,
  "a list option": 8,
  "a route of the HTTP API": 4,
  "a metric": 3,
  "a limit": 1,
})) {
  test(`the example of ${example} names at most ${most} files, which exist`, () => {
    const files = filesOf(example);
    assert.ok(files.length > 0 && files.length <= most, `${files.length} files`);
    for (const file of files) assert.ok(existsSync(new URL(file, root)), file);
  });
}

/** The doors that may offer a mutation or a list option, which the page names behind the tables. */
const DOORS = [
  "crates/server/src/api/atomic.rs",
  "crates/server/src/keyval/arithmetic.rs",
  "js/cli/commands/entry.ts",
  "js/cli/atomic-description.ts",
  "crates/server/src/api/entries.rs",
  "crates/server/src/api/list.rs",
  "js/cli/commands/reads.ts",
  "js/cli/mcp/tools.ts",
];
/** Generated from the others. */
const GENERATED = ["js/native/contract.ts", "js/records/layout.ts"];

test("the example of a mutation names every source that knows append", () => {
  const rust = [...sources("src/", ".rs"), ...sources("crates/", ".rs")].filter((path) => {
    if (path.startsWith("crates/engines/src/suite/") || path.endsWith("/tests.rs")) return false;
    const [code] = read(path).split("#[cfg(test)]\nmod tests");
    return /\b(?:Mutation|MutationKind|Record|Self)::Append\b/.test(code);
  });
  const js = sources("js/", ".ts").filter((path) => {
    return /\bAPPEND|OP_APPEND|"append"|\bappend\(/.test(read(path)) && !GENERATED.includes(path);
  });
  const named = filesOf("a mutation");
  for (const path of [...rust, ...js]) {
    assert.ok(named.includes(path) || DOORS.includes(path), `${path} is not in the example`);
  }
  for (const path of DOORS) assert.ok(page.includes(`\`${path}\``), path);
});

test("the example of a list option names every source that knows depth", () => {
  const rust = sources("crates/", ".rs").filter((path) => {
    // The HTTP API is a door, as the command line is below.
    if (path.startsWith("crates/server/")) return false;
    const [code] = read(path).split("#[cfg(test)]\nmod tests");
    return /\bScan(?:Request)?\b/.test(code) && /\.depth\b|\bdepth:|scan::DEPTH/.test(code);
  });
  const folders = ["arguments", "read", "session", "transaction", "write"];
  const js = folders
    .flatMap((folder) => sources(`js/${folder}/`, ".ts"))
    .filter((path) => /\bdepth\b|\bSCAN_DEPTH\b/.test(read(path)));
  const named = filesOf("a list option");
  assert.ok(js.length > 0 && rust.length > 0);
  for (const path of [...rust, ...js]) {
    assert.ok(named.includes(path) || DOORS.includes(path), `${path} is not in the example`);
  }
});
