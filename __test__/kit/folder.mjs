// Duty: temporary folders, removed when the process ends.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const folders = [];
const removeAll = () => folders.forEach(remove);
// Deno runs each file of tests apart, and tells of its end by this event only.
if (globalThis.Deno) globalThis.addEventListener("unload", removeAll);
else process.on("exit", removeAll);

/** A new folder; its name has `name` in it. */
export function newFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `openkv-${name}-`));
  folders.push(folder);
  return folder;
}

/** Paths in a folder of their own, none of them used: `freshPath()` or `freshPath("name.db")`. */
export function freshPaths(name) {
  let folder;
  let files = 0;
  return (file = `${files++}.sqlite3`) => join((folder ??= newFolder(name)), file);
}

/** The URL of a database in a folder that is used as an object store. */
export const bucketUrl = (path) => `bucket+${pathToFileURL(path).href}`;

function remove(folder) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // Windows keeps files that are still open.
  }
}
