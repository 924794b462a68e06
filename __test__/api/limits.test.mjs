// Duty: defaults follow the limits of the handle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";

test("a default backoff schedule is cut to the limits of the handle", async () => {
  const limits = { backoffIntervalsMax: 2, backoffIntervalMsMax: 500 };
  const kv = await openKv(":memory:", { limits });
  for (const enqueue of [
    () => kv.enqueue(1),
    () => kv.enqueue(1, {}),
    () => kv.queue("q").enqueue(1),
    () => kv.atomic().enqueue(1).enqueue(1, { queue: "q" }).commit(),
  ])
    assert.equal((await enqueue()).ok, true);
  const words = /max 2 intervals allowed: 3 given; raise limits\.backoffIntervalsMax of openKv/;
  await assert.rejects(kv.enqueue(1, { backoffSchedule: [1, 1, 1] }), words);
  kv.close();
});
