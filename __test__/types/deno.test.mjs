// Duty: our types stand where Deno's are asked for: deno/uses.ts, checked by Deno against its own
// declarations with the package as it is installed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { newFolder } from "../kit/folder.mjs";
import { deno } from "../runtime/binaries.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const uses = fileURLToPath(new URL("deno/uses.ts", import.meta.url));

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
  const flags = ["--no-lock", "--unstable-kv", "--node-modules-dir=manual", "--no-remote"];
  const { status, stdout, stderr } = spawnSync(deno(), ["check", ...flags, "uses.ts"], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, DENO_DIR: join(folder, "deno"), NO_COLOR: "1" },
  });
  assert.equal(status, 0, stdout + stderr);
});
