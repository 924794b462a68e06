// Duty: builds everything that a clone needs to run: the addon, then the TypeScript.
//
//   node scripts/build.mjs [--profile <cargo profile>]
//
// Run by `npm install` (as "prepare"), `npm start` and `npm test`; quick when nothing changed.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildAddon, CLONE_PROFILE } from "./build-addon.mjs";
import { buildTypeScript } from "./build-ts.mjs";

/** Builds the addon and the TypeScript. Exits with the failing step's code. */
export async function build({ profile = CLONE_PROFILE } = {}) {
  buildAddon({ profile });
  await buildTypeScript();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { profile: { type: "string" } } });
  await build(values);
}
