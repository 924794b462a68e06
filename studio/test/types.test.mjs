// Duty: the generated routes are those of the server's OpenAPI document.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("the routes of the API are not stale", () => {
  const script = fileURLToPath(new URL("../scripts/api-routes.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});
