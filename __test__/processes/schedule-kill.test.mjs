// Processes that have a file with a schedule open are killed at any moment: each due time gives one message.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { newPath } from "./peer/file.mjs";
import { openKv } from "./target.mjs";

const HOLDER = new URL("./schedule-kill/holder.mjs", import.meta.url);
const EVERY_MS = 20;
const HOLDERS = 3;
const KILLS = 15;
const LIFE_MS_MAX = 80;
const HANG_MS = 60_000;

test("each due time gives one message, however the processes are killed", async () => {
  const path = newPath();
  const child = { path, timing: { every: EVERY_MS, missed: "all" } };
  let killed = 0;
  let changes = 0;
  async function live() {
    while (killed++ < KILLS) {
      const holder = startChild(HOLDER, child);
      const line = await guard(holder.line(), HANG_MS, "a holder");
      if (line === "true") changes++;
      else assert.equal(line, "false", holder.stderr);
      await sleep(Math.random() * LIFE_MS_MAX);
      holder.kill();
      await holder.ended;
      assert.equal(holder.stderr, "");
    }
  }
  await Promise.all(Array.from({ length: HOLDERS }, live));
  assert.equal(changes, 1, "the same schedule is set once");

  const kv = await openKv(path);
  const queue = kv.queue("ticks");
  // What was missed at the end is made up for.
  const next = async () => (await queue.schedules()).schedules[0].nextAt;
  while ((await next()) <= Date.now() - EVERY_MS) await sleep(EVERY_MS);
  await queue.unschedule("tick");
  const due = [];
  for (let message; (message = await queue.receive()) !== null; ) {
    due.push(message.schedule.dueAt.getTime());
    await message.ack();
  }
  assert.ok(due.length > KILLS, `${due.length} due times`);
  due.sort((a, b) => a - b);
  const expected = due.map((_, at) => due[0] + EVERY_MS * at);
  assert.deepEqual(due, expected, "none twice, none lost");
  await kv.close();
});
