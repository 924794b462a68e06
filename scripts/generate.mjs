// Duty: writes the files that are generated from declarations in the code. Run it after a build. CI compares
// each of them.
//
//   npm run generate

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** The tests that write: the TypeScript and the tables that follow from declarations in Rust (tests/generated/), and the
 * OpenAPI document of a server. */
const TESTS = [
  ["--no-default-features", "--test", "generated"],
  ["--package", "openkv-server", "--lib", "api::description"],
];
/** The scripts that write a part of a page in docs/. */
const PAGES = ["features", "cli-reference", "http-reference", "keyval-reference"];

for (const test of TESTS) {
  const { status, error } = spawnSync("cargo", ["test", "--quiet", ...test], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, OPENKV_GENERATE: "1" },
  });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
for (const name of PAGES) {
  const { page, written } = await import(`./${name}.mjs`);
  writeFileSync(page, await written());
}
