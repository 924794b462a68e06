// Duty: pauses, cancellations and results of one process reach the worker of another one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HANG_MS, guard } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { newPath } from "./peer/file.mjs";
import { openKv } from "./target.mjs";

const WORKER = new URL("jobs/worker.mjs", import.meta.url);

/** Starts a worker on a new file; `next` is what it tells next. */
async function working(t) {
  const path = newPath();
  const kv = await openKv(path);
  const worker = startChild(WORKER, { path });
  t.after(async () => {
    await worker.kill();
    await kv.close();
  });
  const next = () => guard(worker.line(), HANG_MS, "the worker tells something");
  assert.equal(await next(), "ready");
  return { queue: kv.queue("work", { keepResult: "1h" }), next };
}

test("a pause stops the workers of all processes until the queue resumes", async (t) => {
  const { queue, next } = await working(t);
  const first = await queue.enqueue(1);
  assert.equal((await queue.result(first.id, { wait: HANG_MS })).value, 2);
  assert.equal(await next(), "1");
  await queue.pause();
  const second = await queue.enqueue(2);
  const third = await queue.enqueue(3, { priority: 9 });
  const { pending, paused } = await queue.stats();
  assert.deepEqual([pending, paused], [2, true]);
  assert.equal(await queue.cancel(second.id), true);
  await queue.resume();
  assert.equal(await next(), "3", "nothing was taken before");
  assert.equal((await queue.result(third.id, { wait: HANG_MS })).value, 6);
});

test("a cancellation reaches the handler of another process", async (t) => {
  const { queue, next } = await working(t);
  for (const value of ["a", "b"]) {
    const { id } = await queue.enqueue(value);
    assert.equal(await next(), value);
    assert.equal(await next(), "waits");
    const end = queue.result(id, { wait: HANG_MS });
    assert.equal(await queue.cancel(id), true);
    assert.equal(await next(), "Cancelled");
    assert.equal((await end).state, "cancelled");
  }
  assert.equal((await queue.stats()).total, 0);
});
