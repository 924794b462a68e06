// Duty: load the addon, for the ES modules that bundlers take (dist/esm/). Copied to
// dist/esm/native/load.js by scripts/build-ts.mjs, which fills in the version.
//
// A bundler that read a platform package would stop at its binary file, so none is named here: the
// addon is looked for when the bundle runs. js/native/find-addon.ts says where.

import { Module } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { findAddon } from "./find-addon.js";

/** By this way only: webpack replaces what is imported as `createRequire`. */
const requireFrom = (file) => Module.createRequire(file);

const VERSION = "__OPENKV_VERSION__";

export function loadBinding() {
  const folders = foldersOfBundle();
  return findAddon({
    folders,
    version: VERSION,
    loadFile: (path) => requireFrom(path)(path),
    loadPackage: (name, expect) => loadPackage(folders, name, expect),
  });
}

/** Where the bundle is: every bundler leaves another of the ways to tell it intact. */
function foldersOfBundle() {
  const files = [];
  try {
    // Not by `typeof`, which webpack answers itself, for ES modules wrongly.
    files.push(__filename);
  } catch {
    // An ES module has none.
  }
  // CommonJS has none; webpack puts the path of this file on the machine that bundled.
  const { url } = import.meta;
  if (typeof url === "string" && url.startsWith("file:")) files.push(fileURLToPath(url));
  if (process.argv[1] !== undefined) files.push(process.argv[1]);
  return [...new Set(files.map((file) => dirname(file)))];
}

function loadPackage(folders, name, expect) {
  let failure;
  for (const folder of folders) {
    const load = requireFrom(join(folder, "bundle.js"));
    try {
      expect(load(`@openkv/${name}/package.json`).version);
      return load(`@openkv/${name}`);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}
