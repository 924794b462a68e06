// Duty: the paths of Bun's and Deno's binaries, in the versions of this folder's package.json,
// which are installed here when they are missing.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
/** What stands in for a binary until its install script has run is smaller than this. */
const BINARY_BYTES_MIN = 1_000_000;

function installIfMissing() {
  if (existsSync(join(here, "node_modules", ".package-lock.json"))) return;
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts"], {
    cwd: here,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(1);
}

// Both packages put their binary in place with an install script, which npm may not be allowed to
// run. The binary is in the package of the platform before, and in the package itself after.

export function bun() {
  installIfMissing();
  const others = platformPackages("@oven", ["bin/bun", "bin/bun.exe"]);
  return binary("bun", ["bun/bin/bun.exe", ...others]);
}

export function deno() {
  installIfMissing();
  const others = platformPackages("@deno", ["deno", "deno.exe"]);
  return binary("deno", ["deno/deno", "deno/deno.exe", ...others]);
}

function platformPackages(scope, files) {
  const folder = join(here, "node_modules", scope);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.flatMap((name) => files.map((file) => join(scope, name, file)));
}

function binary(name, candidates) {
  for (const candidate of candidates) {
    const path = join(here, "node_modules", candidate);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > BINARY_BYTES_MIN) return path;
  }
  console.error(`No ${name} binary below ${join(here, "node_modules")}: delete it and run again.`);
  process.exit(1);
}
