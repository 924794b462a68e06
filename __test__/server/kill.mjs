// Duty: kill -9 of a server under load: every acknowledged commit remains, clients continue by
// themselves, a watch reaches the last value.
//
//   node __test__/server/kill.mjs [kills]       20 without a number

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { sleep, until } from "../kit/time.mjs";
import { kill, spawnServer } from "./children.mjs";

const CLIENTS = 4;
const WRITES_IN_FLIGHT = 8;
const accessToken = "token-of-the-killed-server";

export async function killUnderLoad(kills) {
  const folder = newFolder("kill");
  const path = join(folder, "kv.sqlite3");
  let server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
  const { url } = server;
  const options = { path, accessToken, listen: new URL(url).host };
  let stopped = false;
  const acknowledged = [];
  let unknown = 0;
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => openKv(url, { accessToken, timeout: 30_000 })),
  );

  async function load(kv, client, lane) {
    for (let n = 0; !stopped; n++) {
      const key = ["k", client, lane, n];
      try {
        await kv.set(key, n);
        acknowledged.push(key);
      } catch (error) {
        if (error.code !== "OUTCOME_UNKNOWN" && error.code !== "UNAVAILABLE") throw error;
        unknown++;
      }
    }
  }
  const reader = clients[0].watch([["last"]]).getReader();
  let seen;
  const watching = (async () => {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      seen = value[0].value;
    }
  })();
  const loads = clients.flatMap((kv, client) =>
    Array.from({ length: WRITES_IN_FLIGHT }, (_, lane) => load(kv, client, lane)),
  );
  try {
    for (let n = 0; n < kills; n++) {
      await sleep(200 + Math.random() * 300);
      await kill(server);
      server = await spawnServer(options);
    }
    const before = acknowledged.length;
    await until(() => acknowledged.length > before, "clients go on after a kill");
  } finally {
    // After a failure too: clients that go on would keep the process.
    stopped = true;
  }
  await Promise.all(loads);
  await clients[1].set(["last"], "the end");
  await until(() => seen === "the end", "the watch sees the end");
  await reader.cancel();
  await watching;
  for (const kv of clients) kv.close();
  await kill(server);

  const kv = await openKv(path);
  const stored = new Set();
  for await (const { key } of kv.list({ prefix: ["k"] })) stored.add(JSON.stringify(key));
  await kv.close();
  const lost = acknowledged.filter((key) => !stored.has(JSON.stringify(key)));
  assert.deepEqual(lost, [], "acknowledged commits are lost");
  rmSync(folder, { recursive: true, force: true });
  return { kills, acknowledged: acknowledged.length, unknown };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log(await killUnderLoad(Number(process.argv[2] ?? 20)));
}
