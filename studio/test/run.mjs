// Duty: runs the tests of the studio, one file after the other: each has a browser of its own.
//
//   node studio/test/run.mjs [part of a name...]

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("./", import.meta.url));
const parts = process.argv.slice(2);
// Not a pattern: Node.js 20 takes none, and newer versions take no folder.
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".test.mjs"))
  .filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)))
  .map((name) => join(folder, name));
const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=1", ...files], {
  stdio: "inherit",
});
process.exit(files.length === 0 ? 1 : (status ?? 1));
