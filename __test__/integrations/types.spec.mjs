// Duty: the drivers compile against the types of their libraries, which the build of openkv does without, and
// a program gets the types of every entry, by import and by require.

import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
const compiler = join(here, "..", "..", "node_modules", "typescript", "bin", "tsc");
/** A hang guard for one compilation. */
const COMPILE_MS_MAX = 60_000;

describe("of the drivers", () => {
  for (const project of ["tsconfig.json", "tsconfig.usage.json"]) {
    it(project, { timeout: COMPILE_MS_MAX }, () => {
      const { status, stdout } = spawnSync(
        process.execPath,
        [compiler, "-p", join(here, project)],
        {
          encoding: "utf8",
        },
      );
      expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
    });
  }
});
