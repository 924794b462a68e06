// Duty: what 1,000 idle watches cost a server: memory and processor time.
//
//   node __test__/server/idle-watches.mjs
//
// Exits with 1 when it is 50 MB or more. Linux only, where /proc tells.

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { kill, spawnServer } from "./children.mjs";

const WATCHES = 1000;
const CONNECTIONS = 20;
const RSS_MB_MAX = 50;
const SECONDS = 10;
const accessToken = "token-of-idle-watches";

const folder = mkdtempSync(join(tmpdir(), "openkv-idle-"));
const server = await spawnServer({
  path: join(folder, "kv.sqlite3"),
  accessToken,
  listen: "127.0.0.1:0",
});
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`))[1]) / 1024;
const cpu = () => {
  const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};
const answer = await fetch(server.url, {
  method: "POST",
  headers: { authorization: `Bearer ${accessToken}` },
  body: '{"supportedVersions":[3]}',
});
const { token, databaseId } = await answer.json();
const before = rss();
const body = Buffer.from("0a050a03026100", "hex");
const sessions = Array.from({ length: CONNECTIONS }, () => connect(server.url));
let open = 0;
for (let n = 0; n < WATCHES; n++) {
  const stream = sessions[n % CONNECTIONS].request({
    ":method": "POST",
    ":path": "/v2/watch",
    authorization: `Bearer ${token}`,
    "x-denokv-version": "3",
    "x-denokv-database-id": databaseId,
  });
  stream.end(body);
  await once(stream, "response");
  stream.once("data", () => open++);
  stream.on("data", () => {});
}
while (open < WATCHES) await sleep(20);
const busy = cpu();
await sleep(SECONDS * 1000);
const grown = rss() - before;
const used = (cpu() - busy) / SECONDS;
console.log(`${WATCHES} idle watches: ${grown.toFixed(1)} MB more than none, ${used} ms of processor a second`);
for (const session of sessions) session.destroy();
await kill(server);
rmSync(folder, { recursive: true, force: true });
process.exitCode = grown < RSS_MB_MAX ? 0 : 1;
