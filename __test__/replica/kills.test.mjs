// Duty: servers and replicas that are killed at random moments: the replica's file is the server's.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { all } from "./entries.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("replica-kills");
const script = fileURLToPath(new URL("child.mjs", import.meta.url));
const running = new Set();

after(() => running.forEach((child) => child.kill("SIGKILL")));

async function start(...args) {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  child.on("close", () => running.delete(child));
  await once(child.stdout, "data");
  return child;
}

async function kill(child) {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

test("a replica is the same as its server after kills of both", { timeout: 120_000 }, async () => {
  const [path, replica] = [fresh("primary.sqlite3"), fresh("replica.sqlite3")];
  const listen = `127.0.0.1:${await freePort()}`;
  const url = `http://${listen}`;
  let server = await start("server", path, listen, accessToken);
  const kv = await openKv(url, { accessToken, timeout: 20_000 });
  for (let n = 0; n < 3000; n += 100) {
    const atomic = kv.atomic();
    for (let at = n; at < n + 100; at++) atomic.set(["entry", at], "z".repeat(at % 300));
    await atomic.commit();
  }
  let over = false;
  const writing = (async () => {
    for (let n = 0; !over; n++) {
      const write = n % 5 === 0 ? kv.delete(["entry", n]) : kv.set(["entry", n % 4000], n);
      await write.catch((error) => assert.match(error.code, /UNAVAILABLE|OUTCOME_UNKNOWN/));
    }
  })();
  try {
    for (let round = 0; round < 6; round++) {
      const starting = start("replica", url, replica, accessToken);
      // Some are killed during the copy, some while they follow.
      await sleep(250 + ((round * 131) % 400));
      if (round % 3 === 1) {
        await kill(server);
        server = await start("server", path, listen, accessToken);
      }
      if (round % 2 === 1) await starting;
      for (const child of running) if (child !== server) await kill(child);
      starting.catch(() => {});
    }
  } finally {
    // After a failure too: a writer that goes on would keep the process.
    over = true;
  }
  await writing;
  const near = await openKv(url, { accessToken, replica, timeout: 20_000 });
  const { versionstamp } = await kv.set(["end"], true);
  await near.replica.reached(versionstamp);
  assert.deepEqual(await all(near, { consistency: "eventual" }), await all(kv));
  await near.close();
  await kv.close();
  await kill(server);
  const local = await openKv(replica, { readonly: true });
  assert.deepEqual(await local.check(), { ok: true, findings: [] });
  await local.close();
});
