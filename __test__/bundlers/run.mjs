// Duty: an application that uses openkv, bundled by every bundler that npm installs, moved to another
// folder and run there: it stores and reads, or says which file it lacks.
//
//   node __test__/bundlers/run.mjs
//
// The bundlers come from the package.json of this folder, and Bun from __test__/runtime.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pack } from "../../scripts/pack.mjs";
import { newFolder } from "../kit/folder.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const shell = process.platform === "win32";
/** A hang guard for one program. */
const RUN_MS_MAX = 30_000;

if (!existsSync(join(here, "node_modules", ".package-lock.json"))) {
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts"], {
    cwd: here,
    stdio: "inherit",
    shell,
  });
  if (status !== 0) process.exit(1);
}
const { bundles } = await import("./bundles.mjs");

/** An ES module, and a CommonJS module that it uses: both have the same classes. */
const APP = `
import { Kv, KvU64, openKv } from "openkv";
import { classes } from "./classes.cjs";

async function main() {
  const kv = await openKv("./app.sqlite3");
  await kv.atomic().set(["a"], new Map([["b", 1n]])).sum(["n"], 41n).sum(["n"], 1n).commit();
  const [a, n] = await kv.getMany([["a"], ["n"]]);
  console.log(kv instanceof classes.Kv, n.value instanceof classes.KvU64, a.value.get("b"), n.value.value);
  console.log(classes.Kv === Kv, classes.KvU64 === KvU64);
  await kv.close();
}

main().catch((error) => {
  console.log(error.code, error.message);
  process.exitCode = 3;
});
`;
const CLASSES = `const { Kv, KvU64 } = require("openkv"); exports.classes = { Kv, KvU64 };\n`;
const PRINTED = "true true 1n 42n\ntrue true\n";

const folder = newFolder("bundlers");
const project = join(folder, "project");
const installed = join(project, "node_modules");

before(() => {
  const packed = pack({ out: join(folder, "tarballs") });
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "project", "private": true }\n');
  writeFileSync(join(project, "app.mjs"), APP);
  writeFileSync(join(project, "classes.cjs"), CLASSES);
  const args = [
    "install",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    ...packed.map(({ file }) => file),
  ];
  const { status, stderr } = spawnSync("npm", args, { cwd: project, encoding: "utf8", shell });
  assert.equal(status, 0, stderr);
});
for (const [at, { name, build, runtime, carries }] of bundles.entries()) {
  test(name, async () => {
    const out = join(project, `dist-${at}`);
    mkdirSync(out);
    const program = await build(project, out);
    // With node_modules above it nothing is to be done.
    assert.deepEqual(run(program, runtime), { status: 0, printed: PRINTED });
    const moved = join(folder, `moved-${at}`);
    cpSync(out, moved, {
      recursive: true,
      filter: (path) => !basename(path).startsWith("app.sqlite3"),
    });
    const alone = join(moved, basename(program));
    renameSync(installed, `${installed}-away`);
    try {
      if (!carries) {
        const { status, printed } = run(alone, runtime);
        assert.equal(status, 3, printed);
        assert.match(printed, /^ERR_OPENKV_ADDON openkv could not load its native addon/);
        const [, file] = /In a bundle: copy (node_modules\/\S+\.node) beside the bundle/.exec(
          printed,
        );
        cpSync(
          join(`${installed}-away`, "..", file.replace("node_modules", "node_modules-away")),
          join(moved, basename(file)),
        );
      }
      assert.deepEqual(run(alone, runtime), { status: 0, printed: PRINTED });
    } finally {
      renameSync(`${installed}-away`, installed);
    }
  });
}

/** `runtime`: none is Node.js, null the program itself. */
function run(program, runtime) {
  const command = runtime === null ? [program] : [runtime?.() ?? process.execPath, program];
  const { status, stdout, stderr } = spawnSync(command[0], command.slice(1), {
    cwd: dirname(program),
    encoding: "utf8",
    timeout: RUN_MS_MAX,
  });
  return { status, printed: stdout + (status === 0 || status === 3 ? "" : stderr) };
}
