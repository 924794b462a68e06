// Duty: pauses, drains, cancellations, results, progress and events of queues, wherever the database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guard, sleep, until } from "../kit/time.mjs";
import { onEveryKind } from "./databases.mjs";

/** A lock that is renewed three times as often. */
const LOCK_MS = 2_000;

onEveryKind("jobs", suite);

/** Listens until `stop` is called, which also waits for the end. */
function listening(queue, handler, options) {
  const end = new AbortController();
  const done = queue.listen(handler, { onError: () => {}, ...options, signal: end.signal });
  return async () => {
    end.abort();
    await done;
  };
}

function suite(fresh) {
  test("a paused queue delivers nothing until it resumes", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.pause();
    await queue.pause();
    await queue.enqueue("a");
    assert.equal(await queue.receive(), null);
    const { paused, pending } = await queue.stats();
    assert.deepEqual([paused, pending], [true, 1]);
    assert.equal(Object.keys((await kv.metrics()).queues).length, 1, "the mark is no queue");
    const handled = [];
    const stop = listening(queue, (value) => handled.push(value));
    const waiting = queue.receive({ wait: 60_000 });
    // Another queue goes on.
    await kv.queue("other").enqueue("b");
    assert.equal((await kv.queue("other").receive({ wait: 10_000 })).value, "b");
    assert.deepEqual(handled, []);
    await queue.enqueue("c");
    await queue.resume();
    const received = await guard(waiting, 30_000, "a waiting receiver gets a message");
    await until(() => handled.length === 1);
    assert.deepEqual([received.value, ...handled].sort(), ["a", "c"]);
    await received.ack();
    await stop();
    await queue.resume();
    assert.equal((await queue.stats()).paused, false);
  });

  test("what runs when its queue is paused ends as ever", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.enqueue("done");
    await queue.enqueue("failed", { backoffSchedule: [0] });
    const [done, failed] = [await queue.receive(), await queue.receive()];
    await queue.pause();
    assert.equal(await done.ack(), true);
    assert.equal(await failed.nack(), true);
    assert.equal(await queue.receive(), null, "the retry waits");
    await queue.resume();
    assert.equal((await queue.receive()).attempts, 2);
  });

  test("a drain deletes what waits", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail", { keepResult: "1h" });
    for (let n = 0; n < 3; n++) await queue.enqueue(n);
    await queue.enqueue("later", { delay: 60_000, deduplicationKey: "k" });
    const running = await queue.receive();
    assert.equal(await queue.drain(), 2);
    assert.equal(await queue.drain(), 0);
    const { delayed, processing, dead } = await queue.stats();
    assert.deepEqual([delayed, processing, dead], [1, 1, 0]);
    assert.equal(await queue.drain({ delayed: true }), 1);
    assert.equal(await running.ack(), true);
    const again = await queue.enqueue("later", { deduplicationKey: "k" });
    assert.equal(again.deduplicated, false, "its key is free");
  });

  test("a drain takes more than one step", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    for (let n = 0; n < 6; n++) {
      const batch = kv.atomic();
      for (let i = 0; i < 100; i++) batch.enqueue(i, { queue: "mail" });
      await batch.commit();
    }
    assert.equal(await queue.drain(), 600);
    assert.equal((await queue.stats()).total, 0);
  });

  test("the result of a handler is kept by the commit that acknowledges its message", async () => {
    const kv = await fresh();
    const queue = kv.queue("sums");
    const { id } = await queue.enqueue([1, 2n, new Map([["a", new Date(5)]])], {
      keepResult: "1h",
    });
    const other = await queue.enqueue([]);
    assert.equal(await queue.result(id), null);
    const waiting = queue.result(id, { wait: 60_000 });
    const stop = listening(queue, (value) => value.at(2));
    const end = await guard(waiting, 30_000, "the result arrives");
    assert.equal(end.state, "completed");
    assert.deepEqual(end.value, new Map([["a", new Date(5)]]));
    assert.ok(end.at instanceof Date);
    assert.deepEqual(await queue.result(id), end);
    await stop();
    assert.equal(await queue.result(other.id), null, "nothing is kept of it");
    assert.equal(await queue.result("99999"), null);
    assert.equal(await queue.result("99999", { wait: 1 }), null);
    assert.equal((await queue.stats()).total, 0);
  });

  test("a received message and one that a commit acknowledges have a result too", async () => {
    const kv = await fresh();
    const queue = kv.queue("sums", { keepResult: 3_600_000 });
    const first = await queue.enqueue(1);
    const message = await queue.receive();
    assert.equal(await message.ack({ sum: 1 }), true);
    assert.deepEqual((await queue.result(first.id)).value, { sum: 1 });
    assert.equal(await message.ack(2), false, "it is gone");
    assert.deepEqual((await queue.result(first.id)).value, { sum: 1 });
    const { messages } = await kv.atomic().enqueue(2, { queue: "sums", keepResult: "1m" }).commit();
    const stop = listening(queue, async (value, message) => {
      await kv.atomic().set(["effect"], value).ack(message).commit();
      return "own";
    });
    const end = await queue.result(messages[0].id, { wait: 60_000 });
    assert.deepEqual([end.state, end.value], ["completed", "own"]);
    await stop();
  });

  test("the result of a message that fails is its last error", async () => {
    const kv = await fresh();
    const queue = kv.queue("sums");
    const options = { keepResult: "1h", backoffSchedule: [0] };
    const { id } = await queue.enqueue(0, options);
    const stop = listening(queue, (_, { attempts }) => {
      throw new RangeError(`attempt ${attempts}`);
    });
    const end = await queue.result(id, { wait: 60_000 });
    await stop();
    assert.equal(end.state, "dead");
    assert.deepEqual(end.error, { name: "RangeError", message: "attempt 2" });
  });

  test("a result that cannot be stored fails the message", async () => {
    const kv = await fresh();
    const queue = kv.queue("sums");
    const { id } = await queue.enqueue(0, { keepResult: "1h", backoffSchedule: [] });
    const stop = listening(queue, () => () => {});
    const end = await queue.result(id, { wait: 60_000 });
    await stop();
    assert.equal(end.state, "dead");
    assert.match(end.error.message, /could not be cloned/);
  });

  test("events tell what happens to messages whose results are kept", async () => {
    const kv = await fresh();
    const queue = kv.queue("video", { keepResult: "1h" });
    const reader = queue.events().getReader();
    await kv.queue("video").enqueue("untold", { delay: 60_000 });
    const { id } = await queue.enqueue("a", { backoffSchedule: [0] });
    const stop = listening(queue, async (_, message) => {
      await message.progress({ percent: 10 * message.attempts });
      if (message.attempts === 1) throw new Error("not yet");
      return "seen";
    });
    const seen = [];
    for (let end = false; !end; ) {
      const { value } = await guard(reader.read(), 30_000, "an event");
      assert.equal(value.id, id);
      seen.push(value);
      end = value.type === "completed";
    }
    await stop();
    // That it has started is told beside the handler.
    const types = seen.map(({ type }) => type);
    assert.equal(types[0], "enqueued");
    const others = types.filter((type) => type !== "started");
    assert.deepEqual(others, ["enqueued", "progress", "failed", "progress", "completed"]);
    assert.equal(types.filter((type) => type === "started").length, 2);
    const { at, error, attempts } = seen.find(({ type }) => type === "failed");
    assert.deepEqual([error.message, attempts], ["not yet", 1]);
    assert.ok(at instanceof Date);
    assert.equal(seen.at(-1).value, "seen");
    assert.deepEqual(await queue.progress(id), { percent: 20 });
    assert.equal(await queue.progress("99999"), undefined);
    await reader.cancel();
    const behind = queue.events({ since: seen.at(-2).versionstamp }).getReader();
    assert.equal((await behind.read()).value.type, "completed");
    await behind.cancel();
  });

  test("a message that waits is cancelled", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    const { id } = await queue.enqueue("a", { keepResult: "1h", deduplicationKey: "k" });
    assert.equal(await kv.queue("other").cancel(id), false, "of another queue");
    assert.equal(await queue.cancel(id), true);
    assert.equal(await queue.cancel(id), false);
    assert.equal((await queue.stats()).total, 0);
    assert.equal((await queue.result(id)).state, "cancelled");
    assert.equal((await queue.enqueue("a", { deduplicationKey: "k" })).deduplicated, false);
  });

  test("a cancellation reaches running handlers through their signals", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    const began = [];
    const reasons = new Map();
    const stop = listening(
      queue,
      async (_, message) => {
        // The lock is not renewed before the test is over.
        const aborted = new Promise((resolve) => {
          message.signal.addEventListener("abort", () => resolve(message.signal.reason));
        });
        began.push(message);
        const reason = await aborted;
        reasons.set(message.id, reason.name);
        assert.deepEqual((await kv.atomic().set(["late"], 1).ack(message).commit()).ok, false);
        throw reason;
      },
      { lockDuration: 86_400_000 },
    );
    for (const value of ["a", "b"]) await queue.enqueue(value, { keepResult: "1h" });
    await until(() => began.length === 2);
    for (const { id } of began) {
      assert.equal(await queue.cancel(id), true);
      await until(() => reasons.has(id));
      assert.equal(reasons.get(id), "Cancelled");
      assert.equal((await queue.result(id)).state, "cancelled");
    }
    await stop();
    assert.equal((await kv.get(["late"])).value, null);
    assert.equal((await queue.stats()).total, 0, "it is neither retried nor dead");
  });

  // The renewal found the lock lost first, and the reason was LockLost.
  test("a handler that asks for its signal late learns of the cancellation too", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    let [cancelled, reason] = [];
    const stop = listening(
      queue,
      async (_, message) => {
        cancelled = await queue.cancel(message.id);
        // Meanwhile its lock should be renewed.
        await sleep(LOCK_MS);
        await until(() => message.signal.aborted);
        reason = message.signal.reason.name;
      },
      { lockDuration: LOCK_MS },
    );
    await queue.enqueue("a");
    await until(() => reason !== undefined);
    assert.equal(cancelled, true);
    assert.equal(reason, "Cancelled");
    await stop();
  });
}
