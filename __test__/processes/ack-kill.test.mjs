// Short runs of ack-kill.mjs.

import { test } from "node:test";
import { killClients, killWorkers } from "./ack-kill.mjs";
import { newPath } from "./peer/file.mjs";

test("effects acknowledged in their commit happen once, however workers are killed", async () => {
  await killWorkers(newPath(), 20);
});

test("and those of clients of a server", async () => {
  await killClients(newPath(), 10);
});
