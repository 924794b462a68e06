// Duty: the programs of this folder in Node.js, as one of its tests.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** A hang guard. */
const RUN_MS_MAX = 240_000;

test("processes end as they should, and threads share a file, in Node.js", () => {
  const script = fileURLToPath(new URL("./run-programs.mjs", import.meta.url));
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [script], {
    encoding: "utf8",
    timeout: RUN_MS_MAX,
  });
  assert.equal(status ?? signal, 0, `${stdout}${stderr}`);
  assert.match(stdout.trimEnd(), /^\d{2} passed, 0 failed$/);
});
