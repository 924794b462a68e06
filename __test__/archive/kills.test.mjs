// Duty: 30 archivers and restores are killed. `node __test__/archive/kills.mjs --kills 1000` kills more.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kill } from "./kills.mjs";

test("archivers and restores that are killed at any moment lose and mix nothing", async () => {
  const { archivers, restores, checked } = await kill(30, String(Date.now()));
  assert.ok(archivers === 15 && restores > 5 && checked > 0);
});
