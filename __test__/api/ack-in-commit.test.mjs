// Duty: acknowledgements in commits: effects, following messages and the acknowledgement happen together or
// not at all, wherever the database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { guard, until } from "../kit/time.mjs";
import { onEveryKind } from "./databases.mjs";

onEveryKind("acknowledgements in commits", suite);

function suite(fresh) {
  test("a commit acknowledges a received message, or nothing happens", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.enqueue("a");
    const message = await queue.receive();
    const taken = { key: ["taken"], versionstamp: "00000000000000000001" };
    const refused = await kv.atomic().check(taken).set(["x"], 1).ack(message).commit();
    assert.deepEqual(refused, { ok: false, failed: [0] });
    assert.equal((await queue.stats()).processing, 1);

    const done = kv.atomic().ack(message).set(["x"], 1).enqueue("b", { queue: "mail" });
    const { ok, messages } = await done.commit();
    assert.deepEqual([ok, messages.length], [true, 1]);
    assert.equal((await kv.get(["x"])).value, 1);
    assert.equal(await message.ack(), false, "it is gone");
    const free = { key: ["free"], versionstamp: null };
    const again = await kv.atomic().check(free).set(["x"], 2).ack(message).commit();
    assert.deepEqual(again, { ok: false, failed: [1] });
    assert.equal((await kv.get(["x"])).value, 1);
    const next = await queue.receive();
    assert.equal(next.value, "b");
    assert.deepEqual((await kv.atomic().ack(next).commit()).ok, true, "an acknowledgement alone");
    assert.equal((await queue.stats()).total, 0);
  });

  test("a lock that another consumer has taken over acknowledges nothing", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    await queue.enqueue("a", { backoffSchedule: [0] });
    const late = await queue.receive({ lockDuration: 100 });
    const holder = await queue.receive({ wait: 10_000 });
    assert.equal(holder.attempts, 2);
    const lost = await kv.atomic().set(["x"], 1).ack(late).commit();
    assert.deepEqual(lost, { ok: false, failed: [0] });
    let runs = 0;
    const transaction = kv.transaction(async (tx) => {
      runs++;
      await tx.get(["x"]);
      tx.set(["x"], 2).ack(late);
    });
    await assert.rejects(transaction, (error) => {
      assert.equal(error.name, "KvConflictError");
      assert.deepEqual([error.keys, error.ranges, error.messages], [[], [], [late.id]]);
      assert.match(error.message, /the lock of message \d+ is lost/);
      return true;
    });
    assert.equal(runs, 1, "another attempt would not have the lock either");
    assert.equal((await kv.get(["x"])).value, null);
    const { value, ok } = await kv.transaction(async (tx) => {
      const sum = ((await tx.get(["x"])).value ?? 0) + 5;
      tx.set(["x"], sum).ack(holder);
      return sum;
    });
    assert.deepEqual([value, ok], [5, true]);
    assert.equal((await queue.stats()).total, 0);
  });

  test("a handler acknowledges in its commit, and its message has no other end", async () => {
    const kv = await fresh();
    const queue = kv.queue("steps");
    const stop = new AbortController();
    const failures = [];
    let last;
    const ended = new Promise((resolve) => (last = resolve));
    const listening = queue.listen(
      async (step, message) => {
        const operation = kv.atomic().sum(["sum"], step).ack(message);
        // The key of the message itself: the acknowledgement frees it.
        const options = { queue: "steps", deduplicationKey: "chain", backoffSchedule: [] };
        if (step < 20) operation.enqueue(step + 1, options);
        const { ok, messages } = await operation.commit();
        assert.equal(ok, true);
        if (step < 20) assert.equal(messages[0].deduplicated, false);
        if (step === 10) throw new Error("after its end");
        if (step === 20) last();
      },
      { signal: stop.signal, concurrency: 1, onError: (error) => failures.push(error.message) },
    );
    await queue.enqueue(1, { deduplicationKey: "chain", backoffSchedule: [] });
    await guard(ended, 30_000, "the last step");
    stop.abort();
    await listening;
    assert.deepEqual(failures, ["after its end"]);
    assert.equal((await kv.get(["sum"])).value, 210);
    await until(async () => (await queue.stats()).total === 0);
    assert.equal((await queue.stats()).dead, 0);
  });

  test("no more handlers run than before while they go on after their commits", async () => {
    const kv = await fresh();
    const queue = kv.queue("slow");
    for (let n = 0; n < 6; n++) await queue.enqueue(n);
    const stop = new AbortController();
    const begun = [];
    let running = 0;
    const listening = queue.listen(
      async (n, message) => {
        assert.equal(++running, 1);
        begun.push(n);
        assert.equal((await kv.atomic().ack(message).commit()).ok, true);
        // In a local database the next message arrives with the outcome of the commit.
        for (let turn = 0; turn < 3; turn++) await queue.stats();
        if (n === 3) stop.abort();
        running--;
      },
      { concurrency: 1, signal: stop.signal },
    );
    await listening;
    assert.deepEqual(begun, [0, 1, 2, 3]);
    const next = await queue.receive({ wait: 10_000 });
    assert.deepEqual([next.value, next.attempts], [4, 1], "no handler has seen it");
  });

  test("only a message that a consumer has can be acknowledged", async () => {
    const kv = await fresh();
    for (const wrong of [undefined, null, 5, "7", {}, { id: "7" }]) {
      const refusal = { name: "TypeError", message: /ack: message must be one that receive/ };
      assert.throws(() => kv.atomic().ack(wrong), refusal);
      await assert.rejects(
        kv.transaction((tx) => tx.ack(wrong)),
        refusal,
      );
    }
    await kv.queue("mail").enqueue("a");
    const message = await kv.queue("mail").receive();
    assert.match(inspect(kv.atomic().ack(message)), new RegExp(`ack\\(message ${message.id}\\)`));
    await kv.atomic().ack(message, message).commit();
    assert.equal((await kv.queue("mail").stats()).total, 0);
  });
}
