// Duty: a short run of kill.mjs.

import { test } from "node:test";
import { killUnderLoad } from "./kill.mjs";

test("a server that is killed loses nothing that it acknowledged", {
  timeout: 120_000,
}, async () => {
  await killUnderLoad(2);
});
