// Duty: loads the addon, for the ES module of bundlers (dist/esm/): scripts/build-ts.mjs joins it in place of
// js/native/load.ts, and fills in the version.
//
// A bundler that followed the name of a platform package would fail at its binary file, so the name
// is not literal here: the addon is located when the bundle runs, by js/native/find-addon.ts.

import { Module } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { findAddon } from "./find-addon.js";

/** As a property access, because webpack replaces an imported `createRequire`. */
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

/** The folders of the bundle. Each bundler preserves another of these ways to find it. */
function foldersOfBundle() {
  const files = [];
  try {
    // Without `typeof`, which webpack evaluates itself, for ES modules incorrectly.
    files.push(__filename);
  } catch {
    // Not defined in an ES module.
  }
  // Not defined in CommonJS; webpack replaces it by the path of this file on the build machine.
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
