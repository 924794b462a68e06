// Duty: our types stand where Deno's are asked for: deno/uses.ts, checked by Deno against its own
// declarations with the package as it is installed; and Deno finds them by the path of a file too.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { newFolder } from "../kit/folder.mjs";
import { deno } from "../runtime/binaries.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const uses = fileURLToPath(new URL("deno/uses.ts", import.meta.url));

/** Checks a file of a folder; returns the exit code and what was said. */
function check(folder, name, ...flags) {
  const args = ["check", "--no-lock", "--unstable-kv", "--no-remote", ...flags, name];
  const { status, stdout, stderr } = spawnSync(deno(), args, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, DENO_DIR: join(folder, "deno"), NO_COLOR: "1" },
  });
  return { status, said: stdout + stderr };
}

test("Deno takes our types for its own", { timeout: 120_000 }, () => {
  const folder = newFolder("deno-types");
  const installed = join(folder, "node_modules", "openkv");
  mkdirSync(installed, { recursive: true });
  for (const name of ["package.json", "index.js", "index.mjs", "index.d.ts", "index.d.mts"]) {
    copyFileSync(join(root, name), join(installed, name));
  }
  const manifest = { type: "module", dependencies: { openkv: "*" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  copyFileSync(uses, join(folder, "uses.ts"));
  const { status, said } = check(folder, "uses.ts", "--node-modules-dir=manual");
  assert.equal(status, 0, said);
});

// A file that is imported by its path has no package.json to name its types: `any` for everything.
for (const file of ["index.mjs", "index.js", "index.cjs"]) {
  test(`Deno finds the types of ${file} by its path`, { timeout: 120_000 }, () => {
    const folder = newFolder("deno-path");
    const program = (use) => `
      import { type Kv, openKv } from ${JSON.stringify(pathToFileURL(join(root, file)).href)};
      const kv: Kv = await openKv(":memory:");
      ${use}\n`;
    writeFileSync(
      join(folder, "right.ts"),
      program('const { value } = await kv.get<number>(["a"]); value satisfies number | null;'),
    );
    writeFileSync(join(folder, "wrong.ts"), program('await kv.set("a", 1, { expireIn: "5" });'));
    const right = check(folder, "right.ts");
    assert.equal(right.status, 0, right.said);
    const wrong = check(folder, "wrong.ts");
    assert.equal(wrong.status, 1, wrong.said);
    assert.match(wrong.said, /TS2322|TS2345/);
  });
}
