// A few simulated power losses; `node power-loss.mjs --cuts 1000` for many.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnSync } from "node:child_process";

const SCRIPT = fileURLToPath(new URL("power-loss.mjs", import.meta.url));
const HANG_MS = 280_000;

const glibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
const skip = !glibc && "what is written is recorded through glibc's LD_PRELOAD";

for (const durability of ["full", "normal"]) {
  test(`power is lost in the middle of commits, durability ${durability}`, { skip }, (t) => {
    const argv = [SCRIPT, "--durability", durability, "--cuts", "20", "--runs", "1"];
    const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
      encoding: "utf8",
      timeout: HANG_MS,
    });
    t.diagnostic(stdout.trim());
    assert.equal(status, 0, stderr);
  });
}
