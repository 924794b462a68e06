// Duty: the conformance cases in Node.js, as one of its tests.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** A hang guard. */
const RUN_MS_MAX = 400_000;

test("every case holds in Node.js, on each variant", async () => {
  const script = fileURLToPath(new URL("./run.mjs", import.meta.url));
  const child = spawn(process.execPath, [script], { timeout: RUN_MS_MAX });
  let [out, errors] = ["", ""];
  child.stdout.on("data", (chunk) => (out += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  const end = await new Promise((resolve) => {
    child.on("close", (code, signal) => resolve(code ?? signal));
  });
  assert.equal(end, 0, `${out}\n${errors.slice(-4000)}`);
  assert.match(out.trimEnd().split("\n").at(-1), /^\d{3,} passed, 0 failed/);
});
