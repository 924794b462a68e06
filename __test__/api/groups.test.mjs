// Duty: limits of queues and of groups, groups in turn, and messages that run once more, wherever the database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guard, HANG_MS } from "../kit/time.mjs";
import { onEveryKind } from "./databases.mjs";

/** Takes all messages that can be delivered now, one after the other. */
async function drained(queue) {
  const values = [];
  for (let message; (message = await queue.receive()) !== null; ) {
    values.push(message.value);
    await message.ack();
  }
  return values;
}

onEveryKind("groups and limits", (fresh) => {
  test("a group with many messages does not delay one with one", async () => {
    const queue = (await fresh()).queue("mail");
    for (let n = 0; n < 50; n++) await queue.enqueue(n, { group: "many" });
    await queue.enqueue("one", { group: "one" });
    const { messages } = await queue.peek({ limit: 1 });
    assert.equal(messages[0].group, "many");
    const first = [await queue.receive(), await queue.receive()];
    assert.deepEqual(new Set(first.map(({ group }) => group)), new Set(["many", "one"]));
    for (const message of first) assert.equal(await message.ack(), true);
    assert.deepEqual(
      await drained(queue),
      Array.from({ length: 49 }, (_, n) => n + 1),
    );
  });

  test("a group is listed, paused, resumed and drained", async () => {
    const queue = (await fresh()).queue("mail");
    assert.deepEqual(await queue.groups(), { groups: [], cursor: null });
    for (const group of ["a", "b", "é ü"]) await queue.enqueue(group, { group });
    await queue.enqueue("later", { group: "a", delay: 60_000 });
    await queue.pause({ group: "a" });
    assert.deepEqual(new Set(await drained(queue)), new Set(["b", "é ü"]));
    assert.equal((await queue.stats()).paused, false);
    const { groups } = await queue.groups();
    assert.deepEqual(groups, [{ name: "a", pending: 1, delayed: 1, processing: 0, paused: true }]);
    await queue.resume({ group: "a" });
    assert.deepEqual(await drained(queue), ["a"]);
    assert.equal(await queue.drain({ group: "b", delayed: true }), 0);
    assert.equal(await queue.drain({ group: "a", delayed: true }), 1);
    assert.equal((await queue.stats()).total, 0);
  });

  test("pages of groups have each group once", async () => {
    const queue = (await fresh()).queue("mail");
    for (let n = 0; n < 7; n++) await queue.enqueue(n, { group: `g${n}` });
    const names = [];
    let cursor = null;
    do {
      const page = await queue.groups({ limit: 3, cursor });
      names.push(...page.groups.map(({ name }) => name));
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(names.sort(), ["g0", "g1", "g2", "g3", "g4", "g5", "g6"]);
  });

  test("limits are set, told and refused by name", async () => {
    const queue = (await fresh()).queue("mail");
    assert.deepEqual(await queue.limits(), { group: {} });
    const limits = { concurrency: 2, group: { rate: { limit: 5, per: "1m" } } };
    assert.equal(await queue.setLimits(limits), true);
    assert.equal(await queue.setLimits(limits), false);
    const rate = { limit: 5, per: 60_000, algorithm: "fixed" };
    assert.deepEqual(await queue.limits(), { concurrency: 2, group: { rate } });
    for (const [bad, named] of [
      [null, /limits must be/],
      [{ concurrency: 0 }, /concurrency must be an integer from 1 to 1000000: received 0/],
      [{ group: { concurrency: 1.5 } }, /group\.concurrency/],
      [{ rate: 5 }, /rate must be \{ limit, per, algorithm \}: received 5/],
      [{ rate: { limit: 0, per: 1 } }, /rate\.limit/],
      [{ rate: { limit: 1, per: "soon" } }, /rate\.per must be a duration/],
      [{ rate: { limit: 1, per: 1, algorithm: "x" } }, /rate\.algorithm must be "fixed"/],
      [{ speed: 1 }, /speed/],
    ]) {
      await assert.rejects(queue.setLimits(bad), { name: "TypeError", message: named });
    }
    await assert.rejects(queue.enqueue(1, { group: "" }), /group must not be empty/);
    await assert.rejects(queue.enqueue(1, { group: "a\nb" }), /control characters/);
    await assert.rejects(queue.enqueue(1, { group: "x".repeat(257) }), /group is too long/);
  });

  test("a listener runs no more of a queue and of a group than their concurrency", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.setLimits({ concurrency: 3, group: { concurrency: 1 } });
    const stop = new AbortController();
    const running = new Map();
    const most = { all: 0, group: 0 };
    let left = 30;
    const listening = queue.listen(
      async (_, { group }) => {
        running.set(group, (running.get(group) ?? 0) + 1);
        most.group = Math.max(most.group, running.get(group));
        most.all = Math.max(
          most.all,
          [...running.values()].reduce((a, b) => a + b),
        );
        await new Promise(setImmediate);
        running.set(group, running.get(group) - 1);
        if (--left === 0) stop.abort();
      },
      { signal: stop.signal, concurrency: 20 },
    );
    for (let n = 0; n < 30; n++) await queue.enqueue(n, { group: `g${n % 5}` });
    await guard(listening, HANG_MS, "all messages are handled");
    assert.equal(left, 0);
    assert.ok(most.group === 1 && most.all <= 3, JSON.stringify(most));
  });

  test("a listener gets the messages of a rate without polling", async () => {
    const queue = (await fresh()).queue("mail");
    await queue.setLimits({ rate: { limit: 2, per: 50 } });
    const stop = new AbortController();
    let got = 0;
    const listening = queue.listen(() => ++got === 6 && stop.abort(), { signal: stop.signal });
    for (let n = 0; n < 6; n++) await queue.enqueue(n);
    // The last ones come only if a timer wakes the listener: nothing else happens then.
    await guard(listening, HANG_MS, "the last messages come");
    assert.equal(got, 6);
  });

  test("a message runs once more after the run under way", async () => {
    const queue = (await fresh()).queue("sync");
    const again = { deduplicationKey: "all", deduplication: "again" };
    const first = await queue.enqueue(1, again);
    const running = await queue.receive();
    const second = await queue.enqueue(2, again);
    const third = await queue.enqueue(3, again);
    assert.equal(second.deduplicated, false);
    assert.deepEqual([third.deduplicated, third.id], [true, second.id]);
    assert.notEqual(second.id, first.id);
    assert.equal(await queue.receive(), null);
    assert.equal(await running.ack(), true);
    const next = await queue.receive();
    assert.deepEqual([next.id, next.value], [second.id, 2]);
  });

  test("schedules are set and removed in commits and transactions", async () => {
    const kv = await fresh();
    const reports = kv.queue("reports");
    const cron = { cron: "0 3 * * *" };
    const done = await kv
      .atomic()
      .set(["customer"], 7)
      .schedule("a", cron, "value", { queue: "reports", priority: 3 })
      .commit();
    assert.equal(done.ok, true);
    assert.equal(done.messages[0].deduplicated, false);
    const same = kv.atomic().schedule("a", cron, "value", { queue: "reports", priority: 3 });
    assert.equal((await same.commit()).messages[0].deduplicated, true);
    await kv.transaction(async (tx) => {
      tx.schedule("b", { every: "1h", offset: "15m" }, 1, { queue: "reports" });
      tx.unschedule("a", { queue: "reports" });
    });
    const { schedules } = await reports.schedules();
    assert.deepEqual(
      schedules.map(({ name, every, offset }) => [name, every, offset]),
      [["b", 3_600_000, 900_000]],
    );
    const refused = await kv
      .atomic()
      .check({ key: ["customer"], versionstamp: null })
      .unschedule("b", { queue: "reports" })
      .commit();
    assert.equal(refused.ok, false);
    assert.equal((await reports.schedules()).schedules.length, 1);
    assert.throws(() => kv.atomic().schedule("c", cron, 1), /options must have the queue/);
    assert.throws(() => kv.atomic().unschedule("", { queue: "reports" }), /name must not be empty/);
    const wrong = kv.atomic().schedule("c", { cron: "0 3 * *" }, 1, { queue: "reports" });
    await assert.rejects(wrong.commit(), /cron is invalid/);
  });
});
