// A short run of queue-kill.mjs.

import { test } from "node:test";
import { newPath } from "./peer/file.mjs";
import { killClients, killConsumers } from "./queue-kill.mjs";

test("what killed consumers had is taken over, and nothing has two holders", async () => {
  await killConsumers(newPath(), 120);
});

test("and what killed clients of a server had", async () => {
  await killClients(newPath(), 120);
});
