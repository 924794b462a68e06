// Duty: the blocks of "Move from Deno KV" in docs/deno.md do what they say when they are pasted into a shell,
// one after the other, in an empty project with openkv installed. Not on Windows.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { newFolder } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { deno } from "./binaries.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const BLOCK_MS_MAX = 60_000;
/** What each block prints, among other things. */
const TOLD = [
  /Map\(1\) \{ 'name' => 'Ada' \}[^]*copied 1 /,
  /copied 1 [^]*kept by Deno/,
  /Map\(1\) \{ "name" => "Ada" \}[^]*copied 1 [^]*\b1\b/,
  /imported 1 [^]*map\(\[\["name", "Ada"\]\]\)[^]*Grace[^]*exported 2 /,
];

const page = readFileSync(join(root, "docs", "deno.md"), "utf8");
const [, section] = /\n## Move from Deno KV\n(.*?)\n## /s.exec(page);
const blocks = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, text]) => text);
assert.equal(blocks.length, TOLD.length);

const project = newFolder("move");
const bin = join(project, "node_modules", ".bin");
mkdirSync(bin, { recursive: true });
symlinkSync(root, join(project, "node_modules", "openkv"), "junction");
// npm makes the file executable when it installs the package; a clone's is not.
const command = join(root, "dist", "cli", "openkv.js");
writeFileSync(join(bin, "openkv"), `#!/bin/sh\nexec node "${command}" "$@"\n`, { mode: 0o755 });
symlinkSync(deno(), join(bin, "deno"));
writeFileSync(join(project, "package.json"), '{ "type": "module" }\n');
const port = await freePort();

for (const [at, block] of blocks.entries()) {
  const { code, out } = await run(block.replaceAll("4512", port));
  assert.equal(code, 0, out);
  assert.match(out, TOLD[at], `block ${at + 1}`);
}
rmSync(project, { recursive: true, force: true });
console.log(`${blocks.length} passed, 0 failed`);

/** Runs a block as a shell does, job control included; answers its exit code and its words. */
async function run(block) {
  const child = spawn("bash", ["-c", `set -em\n${block}`], {
    cwd: project,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: BLOCK_MS_MAX,
    env: {
      ...process.env,
      PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`,
      DENO_DIR: join(project, "deno"),
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1",
    },
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (out += piece));
  const [code, signal] = await once(child, "close");
  return { code: code ?? signal, out };
}
