// Duty: a short run of kill.mjs.

import { test } from "node:test";
import { killUnderLoad } from "./kill.mjs";

test("a killed server loses no acknowledged commit", {
  timeout: 120_000,
}, async () => {
  await killUnderLoad(2);
});
