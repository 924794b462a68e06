// Duty: docs/deno.md in Deno: the packed package, installed by npm, with the permissions of the page and
// with fewer.
//
// Ends with the line "N passed, N failed".

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../scripts/pack.mjs";
import { newFolder } from "../kit/folder.mjs";
import { deno } from "./binaries.mjs";

const folder = newFolder("deno");
const page = readFileSync(new URL("../../docs/deno.md", import.meta.url), "utf8");
const [, app] = /```js\n(\/\/ app\.mjs\n.*?)```/s.exec(page);
const open = (argument) => `
  import { openKv } from "openkv";
  const kv = await openKv(${argument});
  await kv.set(["k"], 1);
  console.log("opened");
  kv.close();`;
const outside = join(folder, "..", `openkv-deno-outside-${process.pid}.sqlite3`);

const LOADING = ["--allow-ffi=node_modules", "--allow-read=node_modules"];
const UNNAMED = ["--allow-env=OPENKV_URL", "--allow-read=.", "--allow-write=.openkv"];
/** What a program prints, or of its error, with these flags. */
const CASES = [
  [app, LOADING, "Deno"],
  [app, LOADING.slice(0, 1), 'Requires read access to "'],
  [app, LOADING.slice(1), "Requires ffi access"],
  [open(""), ["--allow-ffi=node_modules", ...UNNAMED], "opened"],
  [open(""), [...LOADING, ...UNNAMED.slice(1)], 'Requires env access to "OPENKV_URL"'],
  [open(""), [...LOADING, UNNAMED[0]], "Requires read access"],
  // Beyond the permissions: no --allow-write anywhere.
  [open(JSON.stringify(outside)), LOADING, "opened"],
];

let failed = 0;
try {
  const tarballs = pack({ out: join(folder, "tarballs") }).map(({ file }) => file);
  writeFileSync(join(folder, "package.json"), '{ "name": "project", "private": true }\n');
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs];
  const { status, stderr } = spawnSync("npm", args, {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (status !== 0) throw new Error(stderr);
  for (const [at, [program, flags, expected]] of CASES.entries()) {
    const named = flags.every((flag) => page.includes(`\`${flag}\``) || page.includes(flag));
    const file = join(folder, `program-${at}.mjs`);
    writeFileSync(file, program);
    const { stdout, stderr: errors } = spawnSync(
      deno(),
      ["run", "--no-prompt", "--no-lock", "--quiet", ...flags, file],
      {
        cwd: folder,
        encoding: "utf8",
        env: { ...process.env, DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" },
      },
    );
    if (named && (stdout + errors).includes(expected)) continue;
    failed++;
    console.log(`FAIL ${flags.join(" ")}: not "${expected}"\n${stdout}${errors}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
  for (const end of ["", "-wal", "-shm"]) if (existsSync(outside + end)) rmSync(outside + end);
}
console.log(`${CASES.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
