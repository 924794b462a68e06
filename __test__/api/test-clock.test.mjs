// Duty: the option `clock` of a database in memory, with testClock() of openkv/testing: everything of the
// database that depends on the time follows it, and nothing else does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testClock } from "openkv/testing";
import { freshPath, open } from "./databases.mjs";

const HOUR_MS = 3_600_000;
const START = Date.UTC(2001, 0, 1);

/** A database whose clock stands at the start of 2001. */
async function timed() {
  const clock = testClock(START);
  return { clock, kv: await open(":memory:", { clock }) };
}

test("entries expire when the clock is advanced, and not before", async () => {
  const { clock, kv } = await timed();
  await kv.set(["a"], 1, { expireIn: HOUR_MS });
  await kv.set(["b"], 2, { expireAt: new Date(START + 2 * HOUR_MS) });
  await kv.set(["c"], 3);
  assert.deepEqual((await kv.ttl(["a"])).expireAt, new Date(START + HOUR_MS));
  await clock.advance(HOUR_MS - 1);
  assert.equal(kv.getSync(["a"]).value, 1);
  await clock.advance(1);
  assert.equal(kv.getSync(["a"]).value, null);
  assert.equal((await kv.get(["a"])).value, null);
  assert.equal(await kv.count({ prefix: [] }), 2);
  await clock.advance(HOUR_MS);
  const left = await kv.list({ prefix: [] }).toArray();
  assert.deepEqual(
    left.map(({ value }) => value),
    [3],
  );
  assert.equal(await kv.ttl(["b"]), null);
});

test("a write that was not awaited is of the time before", async () => {
  const { clock, kv } = await timed();
  const writing = kv.set(["a"], 1, { expireIn: 1000 });
  const advancing = clock.advance(999);
  await Promise.all([writing, advancing]);
  assert.equal((await kv.get(["a"])).value, 1);
  await clock.advance(1);
  assert.equal((await kv.get(["a"])).value, null);
});

test("a watch tells of an expiry", async () => {
  const { clock, kv } = await timed();
  await kv.set(["a"], 1, { expireIn: HOUR_MS });
  const reader = kv.watch([["a"]]).getReader();
  assert.equal((await reader.read()).value[0].value, 1);
  await clock.advance(HOUR_MS);
  assert.equal((await reader.read()).value[0].value, null);
  await reader.cancel();
});

test("messages are due when the clock says so", async () => {
  const { clock, kv } = await timed();
  const queue = kv.queue("q");
  await queue.enqueue("delayed", { delay: HOUR_MS });
  await queue.enqueue("at", { at: new Date(START + 2 * HOUR_MS) });
  await assert.rejects(queue.enqueue("too late", { at: Date.now() }), { code: "INVALID" });
  assert.equal(await queue.receive(), null);
  await clock.advance(HOUR_MS);
  const message = await queue.receive();
  assert.equal(message.value, "delayed");
  assert.deepEqual(message.enqueuedAt, new Date(START));
  await message.ack();
  const handled = [];
  const stop = new AbortController();
  const listening = queue.listen((value) => void handled.push(value), { signal: stop.signal });
  await clock.advance(HOUR_MS);
  while (handled.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(handled, ["at"]);
  stop.abort();
  await listening;
});

test("a lock expires, and the message is delivered again", async () => {
  const { clock, kv } = await timed();
  const queue = kv.queue("q");
  await queue.enqueue("a");
  const first = await queue.receive({ lockDuration: 60_000 });
  await clock.advance(59_999);
  assert.equal((await queue.stats()).processing, 1);
  await clock.advance(1);
  const second = await queue.receive({ lockDuration: 60_000 });
  assert.equal(second.attempts, 2);
  assert.equal(await first.ack(), false);
  assert.equal(await second.extend(HOUR_MS), true);
  await clock.advance(HOUR_MS - 1);
  assert.equal(await second.ack(), true);
});

test("retries wait for the clock, and dead letters are kept by it", async () => {
  const { clock, kv } = await timed();
  const queue = kv.queue("q");
  await queue.enqueue("a", { backoffSchedule: [5000], deadRetention: HOUR_MS });
  await (await queue.receive()).nack();
  await clock.advance(4999);
  assert.equal(await queue.receive(), null);
  await clock.advance(1);
  await (await queue.receive()).nack();
  const { messages } = await queue.dead.list();
  assert.deepEqual(messages[0].diedAt, new Date(START + 5000));
  assert.equal(await queue.dead.purge({ olderThan: 1 }), 0);
  await clock.advance(HOUR_MS);
  assert.equal((await queue.stats()).dead, 0);
});

test("databases share a clock, and leave it when they are closed", async () => {
  const { clock, kv } = await timed();
  const other = await open(":memory:", { clock });
  await kv.set(["a"], 1, { expireIn: 10 });
  await other.set(["a"], 1, { expireIn: 20 });
  await kv.close();
  await clock.advance(10);
  assert.equal((await other.get(["a"])).value, 1);
  await clock.advance(10);
  assert.equal((await other.get(["a"])).value, null);
  assert.equal(clock.now(), START + 20);
  await other.close();
  await clock.advance(10);
});

test("a database that is opened while the clock moves has its time", async () => {
  const clock = testClock(START);
  const opening = open(":memory:", { clock });
  await clock.advance(HOUR_MS);
  const kv = await opening;
  await kv.enqueue("a");
  await kv.set(["a"], 1, { expireAt: new Date(START + HOUR_MS) });
  assert.equal((await kv.get(["a"])).value, null);
});

test("only memory takes a clock, and only a clock", async () => {
  const clock = testClock();
  await assert.rejects(open(freshPath(), { clock }), {
    message: "Option 'clock' is not for a file: open ':memory:' with it",
  });
  await assert.rejects(open("http://127.0.0.1:1", { clock }), {
    message: /Option 'clock' is not for the URL of a server/,
  });
  for (const wrong of [null, 5, {}, { now: Date.now }, "clock"]) {
    await assert.rejects(open(":memory:", { clock: wrong }), /clock must be a clock/);
  }
  const follow = () => () => {};
  for (const now of [() => Number.NaN, () => -1, () => 0.5, () => "1", () => 9e15]) {
    await assert.rejects(open(":memory:", { clock: { now, follow } }), /clock\.now\(\) must be/);
  }
});

test("testClock and advance check what they are given", async () => {
  for (const wrong of [-1, 0.5, Number.NaN, new Date(Number.NaN)]) {
    assert.throws(() => testClock(wrong), RangeError);
  }
  const clock = testClock(new Date(5));
  assert.equal(clock.now(), 5);
  for (const wrong of [-1, 0.5, "1", undefined]) {
    await assert.rejects(clock.advance(wrong), RangeError);
  }
  await clock.advance(0);
  assert.equal(clock.now(), 5);
});
