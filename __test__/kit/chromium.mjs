// Duty: finds the Chromium that the tests of the studio use.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

export const MISSING =
  "The tests of the studio need Chromium: on Debian `apt-get install chromium`, elsewhere name the program by CHROMIUM.";

/** The path of the program; `undefined` without one. */
export function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
