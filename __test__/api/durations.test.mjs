// Duty: options of a time as texts with units, in every option that has one; numbers mean milliseconds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { testClock } from "openkv/testing";
import { openKv } from "../../index.mjs";
import { freshPath, open } from "./databases.mjs";

async function timed() {
  const clock = testClock();
  return { clock, kv: await open(":memory:", { clock }) };
}

test("an entry expires after a text", async () => {
  const { clock, kv } = await timed();
  const expireIn = "1h30m";
  await kv.set(["set"], 1, { expireIn });
  await kv.set(["touch"], 1);
  await kv.touch(["touch"], { expireIn });
  await kv
    .atomic()
    .set(["atomic"], 1, { expireIn })
    .sum(["sum"], 1, { expireIn })
    .append(["append"], [1], { expireIn })
    .mutate({ type: "set", key: ["mutate"], value: 1, expireIn })
    .commit();
  await kv.transaction((tx) => void tx.set(["tx"], 1, { expireIn }));
  await clock.advance(5_399_999);
  assert.equal(await kv.count({ prefix: [] }), 7);
  await clock.advance(1);
  assert.equal(await kv.count({ prefix: [] }), 0);
});

test("an operation shows a text as its milliseconds", async () => {
  const { kv } = await timed();
  assert.match(inspect(kv.atomic().set(["a"], 1, { expireIn: "2s" })), /expireIn: 2000/);
});

test("a message is delayed, locked and retried by texts", async () => {
  const { clock, kv } = await timed();
  const queue = kv.queue("mail", { deadRetention: "7d" });
  await queue.enqueue(1, { delay: "5m", backoffSchedule: ["10s"] });
  assert.equal(await queue.receive(), null);
  await clock.advance(300_000);
  const first = await queue.receive({ lockDuration: "30s" });
  assert.equal(await first.extend("1m"), true);
  await first.nack();
  await clock.advance(9_999);
  assert.equal(await queue.receive(), null);
  await clock.advance(1);
  const second = await queue.receive({ wait: "1m" });
  await second.nack({ retry: false });
  assert.equal((await queue.stats()).dead, 1);
  await clock.advance(7 * 86_400_000);
  assert.equal((await queue.stats()).dead, 0, "it is kept for seven days");
  await kv.enqueue(1, { delay: "1d", backoffSchedule: ["1s", 2000] });
  await queue.dead.purge({ olderThan: "1h" });
  const backoffSchedule = { type: "exponential", base: "1s", max: "1m" };
  await queue.enqueue(1, { backoffSchedule });
});

test("handles and listeners take texts", async () => {
  const kv = await open(":memory:", { busyTimeout: "2s" });
  const stop = new AbortController();
  const options = { lockDuration: "1m", timeout: "30s", drain: "0ms", signal: stop.signal };
  const listening = kv.queue("mail").listen(() => {}, options);
  stop.abort();
  await listening;
  await kv.transaction(() => {}, { retryDelay: { initial: "5ms", max: "1s" } });
});

test("a text that is no duration is refused by the name of its option", async () => {
  const kv = await open(":memory:");
  const queue = kv.queue("mail");
  for (const text of ["", "1", "1 h", "h", "-1s", "1.5h", "1H", "1h ", "one hour"]) {
    await assert.rejects(kv.set(["a"], 1, { expireIn: text }), /expireIn must be/);
    await assert.rejects(queue.enqueue(1, { delay: text }), /delay/);
    await assert.rejects(queue.receive({ lockDuration: text }), {
      message:
        /lockDuration must be a duration from 100 ms .* for example "7d" or "1h30m": received/,
    });
    await assert.rejects(openKv(":memory:", { busyTimeout: text }), /busyTimeout must be/);
    await assert.rejects(kv.lease(["a"], { ttl: text }), /ttl must be a duration/);
    const asText = { message: /a text has a unit \(ms, s, m, h, d\), for example "7d" or "1h30m"/ };
    const retryDelay = { initial: text };
    for (const call of [
      () => kv.set(["a"], 1, { expireIn: text }),
      () => queue.enqueue(1, { delay: text }),
      () => queue.enqueue(1, { backoffSchedule: [text] }),
      () => queue.enqueue(1, { backoffSchedule: { type: "exponential", base: text } }),
      () => kv.transaction(() => {}, { retryDelay }),
      () => openKv(":memory:", { busyTimeout: text }),
      () => openKv(freshPath(), { metrics: { persistent: true, flushInterval: text } }),
    ])
      await assert.rejects(call, asText);
  }
  assert.equal(await kv.count({ prefix: [] }), 0);
});

test("a time over a limit of the handle is refused with the limit that can be raised", async () => {
  const kv = await open(":memory:");
  const queue = kv.queue("mail");
  await queue.enqueue(1);
  const message = await queue.receive();
  const delay = 2_592_000_001;
  for (const call of [
    () => kv.enqueue(1, { delay }),
    () => queue.enqueue(1, { delay }),
    () => queue.enqueue(1, { at: Date.now() + 2 * delay }),
    () => message.nack({ delay }),
    () => message.nack({ delay: "31d" }),
  ])
    await assert.rejects(call, { message: /raise limits\.delayMsMax of openKv to allow it$/ });
  for (const backoffSchedule of [
    [3_600_001],
    { type: "exponential", base: "61m" },
    { type: "exponential", base: 1, max: 3_600_001 },
  ]) {
    const call = queue.enqueue(1, { backoffSchedule });
    await assert.rejects(call, {
      message: /raise limits\.backoffIntervalMsMax of openKv to allow it$/,
    });
  }
  for (const given of [[-1], { type: "exponential", base: 0 }]) {
    const call = queue.enqueue(1, { backoffSchedule: given });
    await assert.rejects(call, { message: /received (-1|0)$/ });
  }
});
