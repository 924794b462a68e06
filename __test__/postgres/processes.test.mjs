// Duty: several processes on one database, some of which are killed or hang.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedPostgres } from "../kit/postgres.mjs";
import { startLoad } from "./load.mjs";
import { startProxy } from "./proxy.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

/** Enough for every process to have had the lock of the database many times. */
const COMMITS = 300;
const KILLS = 4;

test("every commit of four processes counts once and has a versionstamp of its own", async () => {
  const server = await sharedPostgres();
  const url = server.url();
  const load = await startLoad(url, { processes: 4 });
  await load.progress(COMMITS);
  await load.stop();
  assert.equal(load.refused.size + load.unknown.size, 0);
  await load.check(url);
});

test("a killed process loses nothing that it has told", async () => {
  const server = await sharedPostgres();
  const url = server.url();
  const load = await startLoad(url);
  const killed = [];
  for (let count = 0; count < KILLS; count++) {
    const worker = await load.add(url, 16);
    await load.progress(COMMITS / KILLS, load.workers.indexOf(worker));
    worker.kill();
    killed.push(worker);
    await worker.ended;
    await load.progress(COMMITS / KILLS);
  }
  await load.stop({ killed });
  await load.check(url);
});

// The process holds the lock of the database, since it has sent the first trip of its transaction and
// has not read the answer.
test("others go on when a process hangs between its trips", { skip }, async (t) => {
  const server = await sharedPostgres();
  const url = server.url();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const load = await startLoad(url);
  const hung = await load.add(url.replace(`:${server.port}`, `:${proxy.port}`), 8);
  const id = load.workers.indexOf(hung);
  await load.progress(COMMITS / 10, id);
  await new Promise((resolve) => {
    proxy.watch = ({ status }) => {
      if (status !== "T") return;
      proxy.watch = () => undefined;
      hung.pause();
      resolve();
    };
  });
  await load.progress(COMMITS, 0);
  await load.progress(COMMITS, 1);
  hung.resume();
  await load.progress(COMMITS / 10, id);
  await load.stop();
  await load.check(url);
});
