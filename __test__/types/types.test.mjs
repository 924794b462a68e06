// Duty: the declarations, the implementation and the uses in this folder agree with each other.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("the type tests compile", () => {
  const { status, stdout } = spawnSync(
    process.execPath,
    ["node_modules/typescript/bin/tsc", "-p", "__test__/types/tsconfig.json"],
    { cwd: root, encoding: "utf8" },
  );
  assert.equal(status, 0, stdout);
});
