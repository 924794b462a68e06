// A short run of server-kill.mjs.

import { test } from "node:test";
import { newPath } from "./peer/file.mjs";
import { killServer } from "./server-kill.mjs";

test("a server that is killed under four clients loses nothing, and they go on", async () => {
  await killServer(newPath(), 2);
});
