// Duty: build everything that a clone needs to run: the addon, then the TypeScript.
// Run by `npm install` (as "prepare"), `npm start` and `npm test`; quick when nothing changed.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildAddon } from "./build-addon.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

/** Builds the addon and the TypeScript. Exits with the failing step's code. */
export function build() {
  buildAddon();
  buildTypeScript();
}

/** Compiles js/ to dist/. */
export function buildTypeScript() {
  if (!existsSync(compiler)) {
    console.error("The TypeScript compiler is not installed. Run `npm install` first.");
    process.exit(1);
  }
  const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.json"], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  build();
}
