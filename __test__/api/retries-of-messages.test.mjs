// Duty: how attempts of messages end before a handler does, and whether they are repeated: timeouts, lost
// locks, KvDoNotRetry, and the rule of exponential intervals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { KvDoNotRetry } from "../../index.mjs";
import { guard, until } from "../kit/time.mjs";
import { onEveryKind } from "./databases.mjs";

onEveryKind("retries of messages", suite);

/** Listens until `stop` aborts, with the errors in `failures`. */
function listening(queue, handler, options = {}) {
  const stop = new AbortController();
  const failures = [];
  const onError = (error, message) => failures.push([error.name, message.attempts]);
  const over = queue.listen(handler, { onError, signal: stop.signal, ...options });
  return { failures, stop: () => (stop.abort(), over) };
}

function suite(fresh) {
  test("attemptsLeft counts the deliveries that can follow", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.enqueue("a", { backoffSchedule: [0, 0] });
    for (const [attempts, left] of [
      [1, 2],
      [2, 1],
      [3, 0],
    ]) {
      const message = await queue.receive({ wait: 10_000 });
      assert.deepEqual([message.attempts, message.attemptsLeft], [attempts, left]);
      assert.equal(await message.nack(), true);
    }
    assert.equal((await queue.stats()).dead, 1);
  });

  test("a message that no attempt can help is dead at once", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.enqueue("a");
    const message = await queue.receive();
    assert.equal(await message.nack({ retry: false, error: new Error("never") }), true);
    assert.equal(await message.nack({ retry: false }), false, "it is gone");
    class NoAddress extends KvDoNotRetry {}
    const { failures, stop } = listening(queue, (to) => {
      throw to === "b" ? new NoAddress("no address") : new KvDoNotRetry("no", { cause: to });
    });
    await queue.enqueue("b");
    await queue.enqueue("c");
    await until(async () => (await queue.stats()).dead === 3);
    await stop();
    const { messages } = await queue.dead.list();
    assert.deepEqual(
      messages.map(({ error, attempts }) => [error.name, error.message, attempts]).toSorted(),
      [
        ["Error", "never", 1],
        ["KvDoNotRetry", "no address", 1],
        ["KvDoNotRetry", "no", 1],
      ].toSorted(),
    );
    assert.deepEqual(failures, [
      ["KvDoNotRetry", 1],
      ["KvDoNotRetry", 1],
    ]);
  });

  // Its own rejection was unhandled, and the message stayed with the consumer.
  test("a thrown value that cannot be looked at fails its message as any other", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    const handler = () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      throw proxy;
    };
    const { stop } = listening(queue, handler, { onError: () => {} });
    await queue.enqueue("a", { backoffSchedule: [] });
    await until(async () => (await queue.stats()).dead === 1, "it is dead");
    await stop();
    const { messages } = await queue.dead.list();
    assert.equal(messages[0].error.message, "an error that cannot be read");
  });

  test("a handler over its timeout fails, its signal aborts, and its end has no effect", async () => {
    const kv = await fresh();
    const queue = kv.queue("hangs");
    const ends = [];
    let acknowledged;
    const { failures, stop } = listening(
      queue,
      async (value, message) => {
        await new Promise((resolve) => message.signal.addEventListener("abort", resolve));
        ends.push([value, message.signal.reason.name]);
        if (message.attempts === 2) {
          await until(async () => (await queue.stats()).dead === 1);
          acknowledged = await kv.atomic().set(["late"], 1).ack(message).commit();
        }
        return "done";
      },
      { timeout: 50, concurrency: 1 },
    );
    await queue.enqueue("a", { backoffSchedule: [0] });
    await until(() => acknowledged !== undefined);
    await stop();
    assert.deepEqual(acknowledged, { ok: false, failed: [0] });
    assert.equal((await kv.get(["late"])).value, null);
    assert.deepEqual(failures, [
      ["TimeoutError", 1],
      ["TimeoutError", 2],
    ]);
    assert.deepEqual(ends, [
      ["a", "TimeoutError"],
      ["a", "TimeoutError"],
    ]);
    const [dead] = (await queue.dead.list()).messages;
    assert.match(dead.error.message, /longer than its timeout of 50 ms/);
  });

  test("a handler in time keeps its signal, and hears nothing of its own acknowledgement", async () => {
    const kv = await fresh();
    const queue = kv.queue("quick");
    let signals = 0;
    let renewed;
    const ended = new Promise((resolve) => (renewed = resolve));
    const { failures, stop } = listening(
      queue,
      async (value, message) => {
        const { signal } = message;
        assert.equal(signal, message.signal, "it is one object");
        if (value === "acknowledges") {
          assert.equal((await kv.atomic().ack(message).commit()).ok, true);
          // Renewals of the lock go on meanwhile, and find no message.
          await new Promise((resolve) => setTimeout(resolve, 1_500));
          renewed();
        }
        signals += signal.aborted ? 1 : 0;
      },
      { timeout: 60_000, lockDuration: 3_000 },
    );
    await queue.enqueue("returns");
    await queue.enqueue("acknowledges");
    await guard(ended, 30_000, "the end of the handler");
    await stop();
    assert.deepEqual([signals, failures], [0, []]);
    assert.equal((await queue.stats()).total, 0);
  });

  test("a message takes the place of the waiting one with its key, or its delay begins anew", async () => {
    const kv = await fresh();
    const queue = kv.queue("search");
    const deduplicationKey = "ada";
    const enqueue = (value, options) => queue.enqueue(value, { deduplicationKey, ...options });
    const first = await enqueue("a", { delay: 60_000 });
    const dropped = await enqueue("b", { deduplication: "drop" });
    const replaced = await enqueue("c", { deduplication: "replace", priority: 3 });
    for (const { id, deduplicated } of [dropped, replaced]) {
      assert.deepEqual([id, deduplicated], [first.id, true]);
    }
    const [waiting] = (await queue.peek()).messages;
    assert.deepEqual([waiting.value, waiting.priority, waiting.state], ["c", 3, "delayed"]);
    const options = { queue: "search", deduplicationKey, deduplication: "debounce" };
    const { messages } = await kv.atomic().enqueue("d", options).commit();
    assert.deepEqual(messages, [{ id: first.id, deduplicated: true }]);
    const held = await queue.receive({ wait: 10_000 });
    assert.deepEqual([held.value, held.id, held.attempts], ["d", first.id, 1]);

    const beside = await enqueue("e", { deduplication: "replace" });
    assert.equal(beside.deduplicated, false, "a consumer has the other one");
    assert.notEqual(beside.id, first.id);
    assert.equal((await enqueue("f", { deduplication: "debounce" })).id, beside.id);
    assert.equal(await held.ack(), true);
    const last = await queue.receive({ wait: 10_000 });
    assert.deepEqual([last.value, last.id], ["f", beside.id]);
    assert.equal(await last.ack(), true);
    assert.equal((await queue.stats()).total, 0);
    assert.match(inspect(kv.atomic().enqueue(1, options)), /deduplication: 'debounce'/);
    await assert.rejects(queue.enqueue(1, { deduplication: "replace" }), {
      code: "INVALID",
      message: "kv.queue().enqueue: deduplication needs a deduplicationKey",
    });
    await assert.rejects(enqueue(1, { deduplication: "never" }), {
      code: "INVALID",
      message: /deduplication must be "drop", "replace", "debounce" or "again": received .*never/,
    });
  });

  test("intervals of a rule double up to a maximum, and jitter only shortens them", async () => {
    const kv = await fresh({ limits: { backoffIntervalsMax: 5 } });
    const rule = { type: "exponential", base: 100, max: 350, attempts: 5 };
    const shown = inspectOf(kv, rule);
    assert.match(shown, /backoffSchedule: \[ 100, 200, 350, 350 \]/);
    const jittered = inspectOf(kv, { ...rule, jitter: 0.5 });
    const intervals = JSON.parse(/backoffSchedule: (\[[^\]]*\])/.exec(jittered)[1]);
    [100, 200, 350, 350].forEach((most, at) => {
      assert.ok(intervals[at] <= most && intervals[at] >= most / 2, jittered);
    });
    assert.match(inspectOf(kv, { type: "exponential", base: 1 }), /\[ 1, 2, 4, 8, 16 \]/);
    assert.match(inspectOf(kv, { ...rule, attempts: 1 }), /backoffSchedule: \[\]/);
    for (const [wrong, why] of [
      [
        { type: "linear", base: 1 },
        /backoffSchedule.type must be "exponential": received .*linear/,
      ],
      [{ type: "exponential" }, /backoffSchedule.base must be an integer from 1 to 3600000/],
      [{ ...rule, base: 0 }, /base must be an integer from 1 to 3600000: received 0/],
      [{ ...rule, max: 99 }, /max must be an integer from 100 to 3600000: received 99/],
      [{ ...rule, jitter: 1.1 }, /jitter must be a number from 0 to 1: received 1.1/],
      [{ ...rule, attempts: 0 }, /attempts must be an integer from 1 to 6: received 0/],
      [{ ...rule, attempts: 7 }, /attempts is too large \(max 6\): 7 given; raise limits.back/],
      [{ ...rule, atempts: 5 }, /unknown option 'atempts'/],
    ]) {
      assert.throws(() => inspectOf(kv, wrong), { name: "TypeError", message: why });
    }
    await assert.rejects(kv.queue("mail").enqueue(1, { backoffSchedule: { ...rule, base: 0 } }), {
      code: "INVALID",
      message: /^kv\.queue\(\)\.enqueue: backoffSchedule\.base must/,
    });
  });
}

const inspectOf = (kv, backoffSchedule) =>
  inspect(kv.atomic().enqueue(1, { queue: "mail", backoffSchedule }));
