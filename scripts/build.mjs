// Duty: build everything that a clone needs to run: the addon, then the TypeScript.
// Run by `npm install` (as "prepare"), `npm start` and `npm test`; quick when nothing changed.

import { fileURLToPath } from "node:url";
import { buildAddon } from "./build-addon.mjs";
import { buildTypeScript } from "./build-ts.mjs";

/** Builds the addon and the TypeScript. Exits with the failing step's code. */
export function build() {
  buildAddon();
  buildTypeScript();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  build();
}
