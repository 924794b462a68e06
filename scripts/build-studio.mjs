// Duty: builds the studio to dist/studio/: installs its packages if they are not, then runs its build.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const studio = join(dirname(dirname(fileURLToPath(import.meta.url))), "studio");

if (!isInstalled()) npm("ci", "--ignore-scripts");
npm("run", "build");

function isInstalled() {
  const changed = (...path) => statSync(join(studio, ...path), { throwIfNoEntry: false })?.mtimeMs;
  const installed = changed("node_modules", ".package-lock.json");
  return installed !== undefined && installed >= changed("package-lock.json");
}

function npm(...args) {
  const { status } = spawnSync("npm", args, {
    cwd: studio,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(status ?? 1);
}
