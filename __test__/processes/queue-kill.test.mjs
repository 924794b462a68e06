// A short run of queue-kill.mjs.

import { test } from "node:test";
import { newPath } from "./peer/file.mjs";
import { killConsumers } from "./queue-kill.mjs";

test("what killed consumers had is taken over, and nothing has two holders", async (t) => {
  await killConsumers(newPath(t), 120);
});
