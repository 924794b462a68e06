// Duty: queue pause, resume, drain, cancel and result, on the command line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { folderOfTests, openkv } from "./running.mjs";

const path = folderOfTests();

test("groups and limits of a queue, progress and events", async () => {
  const file = path("groups.db");
  const run = async (...args) => await openkv("-d", file, ...args);
  const json = async (...args) => JSON.parse((await run("--json", ...args)).out);
  const limit = ["queue", "limit", "mail", "--concurrency", "5", "--group-rate", "10/1m"];
  assert.deepEqual(await json(...limit), { changed: true });
  assert.deepEqual(await json(...limit), { changed: false });
  assert.equal((await run("queue", "limit", "mail", "--rate", "10")).code, 2);
  const limits = await json("queue", "limits", "mail");
  assert.deepEqual(
    [limits.concurrency, limits.groupRate, limits.rate],
    [5, "10/60000ms fixed", "any"],
  );
  const { id } = await json("enqueue", "a", "--queue", "mail", "--group", "ada");
  assert.equal((await run("queue", "pause", "mail", "--group", "ada")).code, 0);
  assert.equal((await run("queue", "receive", "mail")).code, 1);
  const group = { name: "ada", pending: 1, delayed: 0, processing: 0, paused: true };
  assert.deepEqual(await json("queue", "groups", "mail"), group);
  assert.match((await run("queue", "groups", "mail")).out, /^ada {2}pending 1 .* paused\n$/);
  assert.equal((await run("queue", "progress", "mail", id)).code, 1);
  assert.equal((await run("queue", "resume", "mail", "--group", "ada")).code, 0);
  assert.deepEqual(await json("queue", "drain", "mail", "--group", "ada"), { deleted: 1 });
});

test("a queue is paused, drained and resumed, and its messages are cancelled", async () => {
  const file = path("jobs.db");
  const run = async (...args) => await openkv("-d", file, ...args);
  const json = async (...args) => JSON.parse((await run("--json", ...args)).out);
  const { id } = await json("enqueue", "a", "--queue", "mail", "--keep-result", "1h");
  assert.equal((await run("queue", "pause", "mail")).code, 0);
  assert.equal((await json("queue", "stats", "mail")).paused, true);
  assert.equal((await run("queue", "receive", "mail")).code, 1, "none is delivered");
  assert.equal((await run("queue", "result", "mail", id)).code, 1, "it has not ended");
  assert.deepEqual(await json("queue", "cancel", "mail", id), { cancelled: 1, absent: [] });
  assert.equal((await run("queue", "cancel", "mail", id)).code, 1);
  assert.equal((await json("queue", "result", "mail", id)).state, "cancelled");
  await run("enqueue", "b", "--queue", "mail");
  await run("enqueue", "c", "--queue", "mail", "--delay", "1h");
  assert.deepEqual(await json("queue", "drain", "mail"), { deleted: 1 });
  assert.deepEqual(await json("queue", "drain", "mail", "--delayed"), { deleted: 1 });
  assert.equal((await run("queue", "resume", "mail")).code, 0);
  assert.equal((await json("queue", "stats", "mail")).paused, false);
});
