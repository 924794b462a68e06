// Duty: measures what idle watches and change feeds cost a server: memory and processor time.
//
//   node __test__/server/idle-watches.mjs [count]       1000 without a number
//
// Exits with 1 when they are 50 MB or more, or 50 ms of a processor's second. Linux only, where
// /proc tells.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { idleWatches } from "../../bench/workloads/idle-watches.mjs";
import { newFolder } from "../kit/folder.mjs";
import { kill, spawnServer } from "./children.mjs";

const GROWN_MB_MAX = 50;
const USED_MS_MAX = 50;
const count = Number(process.argv[2] ?? 1000);
const accessToken = "token-of-idle-watches";

for (const kind of ["watches", "feeds"]) {
  const folder = newFolder("idle");
  const path = join(folder, "kv.sqlite3");
  const server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
  const { text, grown = 0, used = 0 } = await idleWatches({ ...server, accessToken }, kind, count);
  console.log(text);
  await kill(server);
  rmSync(folder, { recursive: true, force: true });
  if (grown >= GROWN_MB_MAX || used >= USED_MS_MAX) process.exitCode = 1;
}
