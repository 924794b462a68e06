// Duty: schedules of queues: what they make, how they change, and what is refused; the timeout of a message.

import assert from "node:assert/strict";
import { test } from "node:test";
import { folder, onEveryKind, open } from "./databases.mjs";
import { join } from "node:path";

/** The first messages of a queue, taken by a listener. */
async function heard(queue, count) {
  const stop = new AbortController();
  const messages = [];
  await queue.listen(
    (_, message) => {
      if (messages.push(message) === count) stop.abort();
    },
    { signal: stop.signal, concurrency: 1 },
  );
  return messages.slice(0, count);
}

const DAILY = { cron: "0 8 * * MON-FRI", timeZone: "Europe/Berlin" };

onEveryKind("schedules", (fresh) => {
  test("a schedule makes a message at each due time", async () => {
    const kv = await fresh();
    const queue = kv.queue("ticks");
    const options = { priority: 3, backoffSchedule: [] };
    assert.equal(await queue.schedule("tick", { every: 20, offset: 5 }, { n: 1n }, options), true);
    assert.equal(await queue.schedule("tick", { every: 20, offset: 5 }, { n: 1n }, options), false);
    const messages = await heard(queue, 3);
    const due = messages.map(({ schedule }) => schedule.dueAt.getTime());
    assert.deepEqual(due, [due[0], due[0] + 20, due[0] + 40]);
    assert.equal(due[0] % 20, 5);
    for (const { value, schedule, attemptsLeft } of messages) {
      assert.deepEqual([value, schedule.name, attemptsLeft], [{ n: 1n }, "tick", 0]);
    }
    assert.equal(await queue.unschedule("tick"), true);
    assert.equal(await queue.unschedule("tick"), false);
    assert.deepEqual(await queue.schedules(), { schedules: [], cursor: null });
  });

  test("schedules are listed by their next due times, in pages, for each queue", async () => {
    const kv = await fresh();
    const [mail, other] = [kv.queue("mail"), kv.queue("other")];
    await mail.schedule("daily", DAILY, "a");
    await mail.schedule("hourly", { every: 3_600_000, missed: "skip" }, null, { priority: 9 });
    await other.schedule("daily", { cron: "0 9 L * *" }, 1);
    const { schedules, cursor } = await mail.schedules();
    const [hourly, daily] = schedules;
    assert.equal(cursor, null);
    assert.ok(hourly.nextAt > new Date() && daily.nextAt.getUTCMinutes() === 0);
    assert.deepEqual(hourly, {
      name: "hourly",
      every: 3_600_000,
      offset: 0,
      missed: "skip",
      nextAt: hourly.nextAt,
      priority: 9,
      value: null,
    });
    const { nextAt } = daily;
    const expected = { name: "daily", ...DAILY, missed: "once", nextAt, priority: 0, value: "a" };
    assert.deepEqual(daily, expected);
    const first = await mail.schedules({ limit: 1 });
    assert.deepEqual(first.schedules, [hourly]);
    assert.deepEqual(await mail.schedules({ limit: 1, cursor: first.cursor }), {
      schedules: [daily],
      cursor: null,
    });
    const [last] = (await other.schedules()).schedules;
    assert.deepEqual([last.cron, last.timeZone], ["0 9 L * *", "UTC"]);
    assert.deepEqual(Object.keys((await kv.metrics()).queues), [], "they are no messages");
  });

  test("another timing, value or option under a name replaces the schedule", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    const only = async () => (await queue.schedules()).schedules;
    assert.equal(await queue.schedule("s", DAILY, 1), true);
    assert.equal(await queue.schedule("s", { ...DAILY, missed: "all" }, 1), true);
    assert.equal(await queue.schedule("s", { every: 86_400_000 }, 1), true);
    assert.equal(await queue.schedule("s", { every: 86_400_000 }, 2), true);
    assert.equal(await queue.schedule("s", { every: 86_400_000 }, 2, { priority: 1 }), true);
    assert.equal(await queue.schedule("s", { every: 86_400_000 }, 2, { priority: 1 }), false);
    const [{ every, value, priority }, ...others] = await only();
    assert.deepEqual([every, value, priority, others.length], [86_400_000, 2, 1, 0]);
  });

  test("what cannot be a schedule is refused by name", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    for (const [name, timing, expected] of [
      ["s", { cron: "0 0 30 2 *" }, /cron never fires: "0 0 30 2 \*"/],
      ["s", { cron: "61 * * * *" }, /cron is invalid: .*"61 \* \* \* \*"/],
      ["s", { cron: "* * * * *", timeZone: "Mars/Base" }, /timeZone must be .*"Mars\/Base"/],
      ["s", { every: 9 }, /every must be from 10 to 31536000000 ms: 9 given/],
      ["s", { every: 20, offset: 20 }, /offset must be .*20 given/],
      ["s", { every: 1.5 }, /every must be an integer/],
      ["s", {}, /give either cron or every/],
      ["s", { cron: "* * * * *", every: 20 }, /give either cron or every/],
      ["s", { cron: "* * * * *", offset: 5 }, /offset is for every/],
      ["s", { every: 20, timeZone: "UTC" }, /timeZone is for cron/],
      ["s", { every: 20, missed: "some" }, /missed must be/],
      ["s", "* * * * *", /timing must be/],
      ["", { every: 20 }, /name must not be empty/],
      ["x".repeat(257), { every: 20 }, /name is too long/],
      ["a\nb", { every: 20 }, /no control characters/],
    ]) {
      await assert.rejects(queue.schedule(name, timing, 1), {
        name: "TypeError",
        message: expected,
      });
    }
    await assert.rejects(queue.schedule("s", { every: 20 }, 1, { delay: 5 }), /delay/);
    assert.throws(() => kv.queue("\u0001schedules"), /must not begin with U\+0001/);
    assert.deepEqual((await queue.schedules()).schedules, []);
  });

  test("a message bounds its handlers, also those of a listener with another bound", async () => {
    const kv = await fresh();
    const queue = kv.queue("slow");
    await queue.enqueue("slow", { timeout: 20, backoffSchedule: [] });
    await kv
      .atomic()
      .enqueue("atomic", { queue: "slow", timeout: 20, backoffSchedule: [] })
      .commit();
    await assert.rejects(queue.enqueue(1, { timeout: 0 }), /timeout must be a duration from 1 ms/);
    const stop = new AbortController();
    const failed = [];
    const aborted = (signal) =>
      new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    await queue.listen((_, { signal }) => aborted(signal), {
      timeout: 60_000,
      signal: stop.signal,
      onError: (error, { value }) => {
        if (failed.push([value, error.name]) === 2) stop.abort();
      },
    });
    assert.deepEqual(failed.sort(), [
      ["atomic", "TimeoutError"],
      ["slow", "TimeoutError"],
    ]);
  });
});

test("schedules are kept in the file, and due times without a process are made up for", async () => {
  const path = join(folder(), "kept.sqlite3");
  const kv = await open(path);
  await kv.queue("q").schedule("all", { every: 10, missed: "all" }, 1);
  await heard(kv.queue("q"), 1);
  await kv.close();
  const again = await open(path);
  const due = (await heard(again.queue("q"), 5)).map(({ schedule }) => schedule.dueAt.getTime());
  assert.deepEqual(
    due,
    due.map((_, at) => due[0] + 10 * at),
  );
});
