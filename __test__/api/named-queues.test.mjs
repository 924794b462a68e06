// Duty: kv.queue(name): what it does in memory and on a file, and what it refuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HANG_MS, sleep, until } from "../kit/time.mjs";
import { all, onEveryKind } from "./databases.mjs";

/** `Promise.withResolvers`, which Node 20 lacks. */
function resolvers() {
  let resolve;
  const promise = new Promise((resolved) => (resolve = resolved));
  return { promise, resolve };
}

const CLOSED = { name: "BadResource", code: "CLOSED" };

onEveryKind("named queues", (fresh) => {
  test("receive, ack, nack, extend", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    assert.equal(queue.name, "mail");
    assert.equal(await queue.receive(), null);
    assert.equal((await queue.enqueue({ n: 1n })).ok, true);
    const first = await queue.receive();
    assert.deepEqual([first.value, first.attempts, typeof first.id], [{ n: 1n }, 1, "string"]);
    assert.ok(first.enqueuedAt instanceof Date);
    assert.equal(await queue.receive(), null, "it is taken");
    assert.equal(await first.extend(60_000), true);
    assert.equal(await first.nack({ delay: 0 }), true);
    assert.equal(await first.ack(), false, "it is no longer ours");
    assert.equal(await first.extend(1000), false);
    const second = await queue.receive();
    assert.deepEqual([second.id, second.attempts], [first.id, 2]);
    assert.equal(await second.ack(), true);
    assert.deepEqual(await queue.stats(), {
      pending: 0,
      delayed: 0,
      processing: 0,
      dead: 0,
      total: 0,
      paused: false,
    });
  });

  // A handler that threw was silent until its message was dead.
  test("a handler that fails: every failure with onError, else one warning", async () => {
    const kv = await fresh();
    const queue = kv.queue("fails");
    const stop = new AbortController();
    const failures = [];
    const { promise: both, resolve: bothFailed } = resolvers();
    const listening = queue.listen(
      (value) => {
        throw new Error(`cannot do ${value}`);
      },
      {
        signal: stop.signal,
        onError: (error, message) => {
          if (failures.push([error.message, message.value, message.attempts]) === 2) bothFailed();
          throw new Error("onError fails as well");
        },
      },
    );
    const warnings = [];
    const warned = (warning) => warnings.push(warning);
    process.on("warning", warned);
    await queue.enqueue("one", { backoffSchedule: [] });
    await queue.enqueue("two", { backoffSchedule: [] });
    await both;
    stop.abort();
    await listening;
    assert.deepEqual(failures.sort(), [
      ["cannot do one", "one", 1],
      ["cannot do two", "two", 1],
    ]);

    const silent = new AbortController();
    const { promise: bothSilent, resolve: bothDone } = resolvers();
    let calls = 0;
    const without = queue.listen(
      (value) => {
        if (++calls === 2) bothDone();
        return Promise.reject(new Error(`still cannot do ${value}`));
      },
      { signal: silent.signal, concurrency: 1 },
    );
    await queue.enqueue("three", { backoffSchedule: [] });
    await queue.enqueue("four", { backoffSchedule: [] });
    await bothSilent;
    silent.abort();
    await without;
    await sleep(1); // warnings come in a turn of their own
    process.off("warning", warned);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ["OPENKV_HANDLER_FAILED", "OPENKV_HANDLER_FAILED"],
    );
    assert.match(
      warnings[0].message,
      /onError of a listener of the queue "fails" failed: Error: onError fails/,
    );
    assert.match(
      warnings[1].message,
      /"fails" failed: Error: still cannot do three \(attempt 1 of message/,
    );
    assert.match(warnings[1].message, /give listen\(\) an onError/);
    // How a message ended is committed after its handler has.
    await until(async () => (await queue.stats()).dead >= 4, "all four are dead letters");
    assert.equal((await queue.stats()).total, 4, "what is told changes no delivery");
    await assert.rejects(
      queue.listen(() => {}, { onError: "log" }),
      {
        name: "TypeError",
        message: /onError must be a function/,
      },
    );
  });

  test("order: priority, then due time, then enqueue order; queues keep apart", async () => {
    const kv = await fresh();
    const queue = kv.queue();
    assert.equal(queue.name, "default");
    const now = Date.now();
    await queue.enqueue("third", { at: now - 5 });
    await queue.enqueue("second", { at: new Date(now - 10) });
    await queue.enqueue("fourth", { at: now - 5 });
    await queue.enqueue("first", { priority: 9 });
    await kv.queue("other").enqueue("elsewhere");
    await kv.enqueue("Deno's");
    const got = [];
    for (let message; (message = await queue.receive()) !== null; ) got.push(message.value);
    assert.deepEqual(got, ["first", "second", "third", "fourth"]);
    assert.equal((await kv.queue("other").receive()).value, "elsewhere");
  });

  test("a deduplication key adds nothing while its message is there", async () => {
    const kv = await fresh();
    const queue = kv.queue("jobs");
    for (let n = 0; n < 3; n++) await queue.enqueue(n, { deduplicationKey: "once" });
    await kv.atomic().enqueue(3, { queue: "jobs", deduplicationKey: "once" }).commit();
    const message = await queue.receive();
    assert.equal(message.value, 0);
    await message.ack();
    await queue.enqueue(4, { deduplicationKey: "once" });
    assert.equal((await queue.receive()).value, 4);
    assert.equal(await queue.receive(), null);
  });

  test("a message of an atomic operation comes with its commit or not at all", async () => {
    const kv = await fresh();
    const enqueue = (versionstamp) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp })
        .set(["a"], 1)
        .enqueue("m", { queue: "mail", priority: 2 })
        .commit();
    assert.equal((await enqueue(null)).ok, true);
    assert.equal((await enqueue(null)).ok, false);
    assert.equal((await kv.queue("mail").stats()).pending, 1);
  });

  test("receive waits, and stops waiting", async () => {
    const kv = await fresh();
    const queue = kv.queue("slow");
    const waiting = queue.receive({ wait: 60_000 });
    await queue.enqueue("here", { delay: 500 });
    assert.equal((await queue.stats()).delayed, 1);
    assert.equal((await waiting).value, "here");
    assert.equal(await queue.receive({ wait: 10 }), null);
    const abort = new AbortController();
    const aborted = queue.receive({ wait: 60_000, signal: abort.signal });
    abort.abort(new Error("enough"));
    await assert.rejects(aborted, { message: "enough" });
    await assert.rejects(queue.receive({ signal: abort.signal }), { message: "enough" });
    // One that arrives too late goes back unseen.
    const late = new AbortController();
    const lost = queue.receive({ wait: 60_000, signal: late.signal });
    await queue.enqueue("again");
    late.abort(new Error("too late"));
    await lost.catch(() => {});
    const message = await queue.receive({ wait: 1000, lockDuration: 1000 });
    if (message !== null) assert.deepEqual([message.value, message.attempts], ["again", 1]);
  });

  test("listen: retries by the schedule, then death with its error", async () => {
    const kv = await fresh();
    const queue = kv.queue("work");
    const stop = new AbortController();
    const seen = [];
    const listening = queue.listen(
      async (value, message) => {
        seen.push([value, message.attempts]);
        if (value === "bad") throw new RangeError(`attempt ${message.attempts}`);
        stop.abort();
        await sleep(10);
        seen.push("the running handler ends first");
      },
      { concurrency: 1, signal: stop.signal },
    );
    await queue.enqueue("bad", { backoffSchedule: [0, 10], keysIfUndelivered: [["lost"]] });
    await until(async () => (await queue.stats()).dead === 1, "the bad one is a dead letter");
    await queue.enqueue("good");
    await listening;
    const expected = [
      ["bad", 1],
      ["bad", 2],
      ["bad", 3],
      ["good", 1],
    ];
    assert.deepEqual(seen, [...expected, "the running handler ends first"]);
    assert.equal((await kv.get(["lost"])).value, "bad");
    const {
      messages: [dead],
      cursor,
    } = await queue.dead.list();
    assert.deepEqual(dead.error, { name: "RangeError", message: "attempt 3" });
    assert.deepEqual([dead.value, dead.attempts, cursor], ["bad", 3, null]);
    assert.ok(dead.enqueuedAt <= dead.firstAttemptAt && dead.firstAttemptAt <= dead.lastAttemptAt);
    assert.ok(dead.lastAttemptAt <= dead.diedAt);
    await queue.enqueue("after");
    await sleep(30);
    assert.equal((await queue.stats()).pending, 1, "nobody listens any more");
  });

  test("listeners share the work, and their places are respected", async () => {
    const kv = await fresh();
    const queue = kv.queue("shared");
    const stop = new AbortController();
    const counts = [0, 0];
    let running = 0;
    let most = 0;
    const handler = (who) => async () => {
      counts[who]++;
      most = Math.max(most, ++running);
      await until(() => counts[0] > 0 && counts[1] > 0, "both listeners get messages");
      running--;
      if (counts[0] + counts[1] === 40) stop.abort();
    };
    const options = { concurrency: 2, signal: stop.signal };
    const listening = [0, 1].map((who) => queue.listen(handler(who), options));
    await Promise.all(Array.from({ length: 40 }, (_, n) => queue.enqueue(n)));
    await Promise.all(listening);
    assert.equal(counts[0] + counts[1], 40);
    assert.ok(most <= 4, String(most));
  });

  test("a listener that is stopped keeps the lock of what its handler has", async () => {
    const kv = await fresh();
    const queue = kv.queue("stopped");
    await queue.enqueue("long", { backoffSchedule: [0] });
    const stop = new AbortController();
    let attempts = 0;
    const looked = resolvers();
    const handler = async () => {
      attempts++;
      stop.abort();
      await looked.promise;
    };
    const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
    const options = { lockDuration: 6_000, drain: HANG_MS, signal: stop.signal };
    const listening = queue.listen(handler, options);
    await stopped;
    const lockedUntil = async () =>
      (await queue.peek({ state: "processing" })).messages[0].lockedUntil;
    const before = await lockedUntil();
    await until(async () => (await lockedUntil()) > before, "a renewal");
    assert.equal(await queue.receive(), null, "its lock has run out");
    looked.resolve();
    await listening;
    // Commits behind the end of the message.
    await kv.set(["after"], true);
    assert.equal((await queue.stats()).total, 0);
    assert.equal(attempts, 1);
  });

  test("peek: every state in pages, and nothing is taken", async () => {
    const kv = await fresh();
    const queue = kv.queue("peek");
    assert.deepEqual(await queue.peek(), { messages: [], cursor: null });
    const bytes = new Uint8Array([1, 2]);
    await queue.enqueue({ n: 1n, bytes }, { priority: 9 });
    const taken = await queue.receive({ lockDuration: 60_000 });
    await queue.enqueue("low");
    await queue.enqueue("later", { delay: 3_600_000, priority: 5 });
    await queue.enqueue("high", { priority: 7 });
    await kv.queue("other").enqueue("another queue's");
    const before = await queue.stats();
    const found = [];
    let cursor = null;
    do {
      const page = await queue.peek({ limit: 3, cursor });
      found.push(...page.messages);
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(
      found.map(({ value, state, priority, attempts }) => [value, state, priority, attempts]),
      [
        ["high", "pending", 7, 0],
        ["low", "pending", 0, 0],
        ["later", "delayed", 5, 0],
        [{ n: 1n, bytes }, "processing", 9, 1],
      ],
    );
    const [high, , later, locked] = found;
    assert.equal(locked.id, taken.id);
    assert.ok(locked.lockedUntil - locked.enqueuedAt >= 60_000 && high.lockedUntil === null);
    assert.ok(later.dueAt - later.enqueuedAt > 3_500_000);
    for (const state of ["pending", "delayed", "processing"]) {
      const { messages } = await queue.peek({ state });
      assert.deepEqual(
        messages,
        found.filter((message) => message.state === state),
      );
    }
    assert.deepEqual(await queue.stats(), before);
    assert.equal(await taken.ack(), true);
    assert.equal((await queue.receive()).value, "high", "it was not taken");
    // A lock that has expired holds nothing: the message is pending again.
    const { value } = await queue.receive({ lockDuration: 100 });
    assert.equal(value, "low");
    const [again] = await until(async () => {
      const { messages } = await queue.peek({ state: "pending" });
      return messages.length > 0 && messages;
    }, "its lock runs out");
    assert.deepEqual([again.value, again.lockedUntil], ["low", null]);
  });

  test("delete: a message that waits, and none that a consumer has", async () => {
    const kv = await fresh();
    const queue = kv.queue("delete");
    await queue.enqueue("taken");
    const taken = await queue.receive();
    const key = { deduplicationKey: "k", keysIfUndelivered: [["undelivered"]] };
    const [{ id }, later] = await Promise.all([
      queue.enqueue("due", key),
      queue.enqueue("later", { delay: 3_600_000 }),
    ]);
    assert.equal(await queue.delete(taken.id), false, "a consumer has it");
    assert.equal(await kv.queue("other").delete(id), false, "another queue's");
    assert.equal(await queue.delete(id), true);
    assert.equal(await queue.delete(id), false);
    assert.equal(await queue.delete(later.id), true);
    const { pending, delayed, processing, dead } = await queue.stats();
    assert.deepEqual([pending, delayed, processing, dead], [0, 0, 1, 0]);
    assert.equal((await kv.get(["undelivered"])).value, null);
    assert.equal((await queue.enqueue("again", key)).deduplicated, false);
    assert.equal(await taken.ack(), true);
    assert.equal((await queue.receive()).value, "again");
  });

  test("dead messages: pages, one, again, forgotten, purged by themselves", async () => {
    const kv = await fresh();
    const queue = kv.queue("dead", { deadRetention: 3_600_000 });
    for (let n = 0; n < 5; n++) await queue.enqueue(n, { backoffSchedule: [] });
    await queue.enqueue("short", { backoffSchedule: [], deadRetention: 30 });
    for (let message; (message = await queue.receive()) !== null; ) {
      await message.nack({ error: `no ${message.value}` });
    }
    const values = [];
    let cursor = null;
    do {
      const page = await queue.dead.list({ limit: 2, cursor });
      values.push(...page.messages.map(({ value }) => value));
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(values.slice(0, 5), [0, 1, 2, 3, 4]);
    const { messages } = await queue.dead.list();
    const [first, second] = messages;
    assert.deepEqual(first.error, { name: "string", message: "no 0" });
    assert.deepEqual(await queue.dead.get(first.id), first);
    assert.equal(await kv.queue("other").dead.get(first.id), null);
    assert.equal(await queue.dead.delete(first.id), true);
    assert.equal(await queue.dead.delete(first.id), false);
    assert.equal(await queue.dead.requeue(second.id), true);
    assert.equal(await queue.dead.requeue(second.id), false);
    const again = await queue.receive();
    assert.deepEqual([again.id, again.value, again.attempts], [second.id, 1, 1]);
    await until(async () => (await queue.stats()).dead <= 3, "the short one purges itself");
    assert.equal(await queue.dead.purge({ olderThan: 3_600_000 }), 0);
    assert.equal(await queue.dead.purge(), 3);
    assert.deepEqual(await queue.dead.list(), { messages: [], cursor: null });
  });

  test("all dead messages of a queue are requeued", async () => {
    const kv = await fresh();
    const queue = kv.queue("many dead");
    const COUNT = 520; // more than one step
    const enqueueing = kv.atomic();
    for (let n = 0; n < COUNT; n++) {
      enqueueing.enqueue(n, { queue: queue.name, backoffSchedule: [] });
    }
    await enqueueing.commit();
    const stop = new AbortController();
    let left = COUNT;
    const fail = () => {
      if (--left === 0) stop.abort();
      throw new Error("no");
    };
    await queue.listen(fail, { concurrency: 100, signal: stop.signal, onError: () => {} });
    assert.equal((await queue.stats()).dead, COUNT);
    assert.equal(await kv.queue("other").dead.requeueAll(), 0);
    assert.equal(await queue.dead.requeueAll(), COUNT);
    const { pending, dead } = await queue.stats();
    assert.deepEqual([pending, dead], [COUNT, 0]);
    assert.equal(await queue.dead.requeueAll(), 0);
  });

  test("a lock that runs out gives the message to somebody else", async () => {
    const kv = await fresh();
    const queue = kv.queue("locks");
    await queue.enqueue("m");
    const first = await queue.receive({ lockDuration: 100 });
    const second = await queue.receive({ wait: 10_000 });
    assert.deepEqual([second.id, second.attempts], [first.id, 2]);
    assert.equal(await first.ack(), false);
    assert.equal(await second.ack(), true);
  });

  test("a closed handle", async () => {
    const kv = await fresh();
    const queue = kv.queue("closed");
    await queue.enqueue("m");
    const message = await queue.receive();
    const waiting = assert.rejects(queue.receive({ wait: 60_000 }), CLOSED);
    const listening = queue.listen(() => {});
    await kv.close();
    await Promise.all([listening, waiting]);
    const calls = [
      queue.enqueue(1),
      queue.listen(() => {}),
      queue.receive(),
      queue.stats(),
      message.ack(),
      message.nack(),
      message.extend(1000),
      queue.peek(),
      queue.dead.list(),
      queue.dead.get("1"),
      queue.dead.requeue("1"),
      queue.dead.delete("1"),
      queue.dead.purge(),
      queue.dead.requeueAll(),
    ];
    await Promise.all(calls.map((call) => assert.rejects(call, CLOSED)));
    assert.throws(() => kv.queue("closed"), CLOSED);
  });

  const refused = [
    ["enqueue", (q) => q.enqueue(() => 1), /could not be cloned/],
    ["enqueue", (q) => q.enqueue("x".repeat(65_537)), /payload too large/],
    ["enqueue", (q) => q.enqueue(1, 5), /options must be an object/],
    ["enqueue", (q) => q.enqueue(1, { dealy: 5 }), /unknown option 'dealy'/],
    ["enqueue", (q) => q.enqueue(1, { delay: 1, at: 1 }), /either delay or at, not both/],
    ["enqueue", (q) => q.enqueue(1, { delay: -1 }), /Delay must be >= 0/],
    ["enqueue", (q) => q.enqueue(1, { at: "now" }), /at must be a Date or ms/],
    ["enqueue", (q) => q.enqueue(1, { at: new Date(Number.NaN) }), /an invalid Date/],
    ["enqueue", (q) => q.enqueue(1, { at: Date.now() + 1e11 }), /limits.delayMsMax/],
    ["enqueue", (q) => q.enqueue(1, { priority: 10 }), /from 0 to 9: received 10/],
    ["enqueue", (q) => q.enqueue(1, { priority: "1" }), /received the string "1"/],
    ["enqueue", (q) => q.enqueue(1, { priority: 0.5 }), /received 0.5/],
    ["enqueue", (q) => q.enqueue(1, { deduplicationKey: "" }), /must not be empty/],
    ["enqueue", (q) => q.enqueue(1, { deduplicationKey: 5 }), /must be a string/],
    ["enqueue", (q) => q.enqueue(1, { deduplicationKey: "é".repeat(513) }), /max 1024 bytes/],
    ["enqueue", (q) => q.enqueue(1, { deadRetention: -1 }), /deadRetention must be a duration/],
    ["peek", (q) => q.peek({ limit: 0 }), /limit must be an integer from 1/],
    [
      "peek",
      (q) => q.peek({ state: "dead" }),
      /state must be "pending", "delayed" or "processing"/,
    ],
    ["peek", (q) => q.peek({ cursor: "1-2" }), /cursor must be one that peek\(\) gave/],
    ["peek", (q) => q.peek({ states: [] }), /states/],
    ["enqueue", (q) => q.enqueue(1, { backoffSchedule: [1, 1, 1, 1, 1, 1] }), /max 5 intervals/],
    ["enqueue", (q) => q.enqueue(1, { keysIfUndelivered: [5] }), /array/],
    ["listen", (q) => q.listen(), /handler must be a function/],
    ["listen", (q) => q.listen(() => {}, { concurrency: 0 }), /concurrency must be an integer/],
    ["listen", (q) => q.listen(() => {}, { concurrency: 1001 }), /from 1 to 1000/],
    ["listen", (q) => q.listen(() => {}, { lockDuration: 99 }), /from 100 ms to 86400000 ms/],
    ["listen", (q) => q.listen(() => {}, { signal: {} }), /must be an AbortSignal/],
    ["listen", (q) => q.listen(() => {}, { concurency: 1 }), /unknown option 'concurency'/],
    ["receive", (q) => q.receive({ wait: -1 }), /wait must be a duration/],
    ["receive", (q) => q.receive({ wait: Number.POSITIVE_INFINITY }), /received Infinity/],
    ["receive", (q) => q.receive({ lockDuration: "5" }), /lockDuration must be a duration/],
    ["receive", (q) => q.receive({ signal: 5 }), /must be an AbortSignal/],
    ["receive", (q) => q.receive({ waits: 1 }), /unknown option 'waits'/],
    ["dead.list", (q) => q.dead.list({ limit: 0 }), /from 1 to 1000/],
    ["dead.list", (q) => q.dead.list({ limit: 1001 }), /from 1 to 1000/],
    [
      "dead.list",
      (q) => q.dead.list({ cursor: "x" }),
      /one that list\(\) gave: received the string "x"/,
    ],
    ["dead.list", (q) => q.dead.list({ cursor: 5 }), /received 5/],
    ["dead.list", (q) => q.dead.list({ limits: 5 }), /unknown option 'limits'/],
    ["dead.get", (q) => q.dead.get(1), /received 1/],
    ["dead.get", (q) => q.dead.get("0x1"), /received the string "0x1"/],
    ["dead.requeue", (q) => q.dead.requeue(), /received undefined/],
    ["dead.delete", (q) => q.dead.delete("-1"), /must be the id of a message/],
    ["dead.purge", (q) => q.dead.purge({ olderThan: -1 }), /olderThan must be a duration/],
    ["dead.purge", (q) => q.dead.purge({ older: 1 }), /unknown option 'older'/],
  ];
  test("what is refused: arguments", async () => {
    const kv = await fresh();
    const queue = kv.queue("matrix");
    for (const [method, call, message] of refused) {
      await assert.rejects(call(queue), { name: "TypeError", message }, method);
    }
    await queue.enqueue("m");
    const message = await queue.receive();
    for (const ms of [99, 86_400_001, "5", undefined, Number.NaN]) {
      await assert.rejects(message.extend(ms), /ms must be a duration from 100 ms/);
    }
    await assert.rejects(message.nack({ delay: -1 }), /delay must be a duration/);
    await assert.rejects(message.nack({ dealy: 1 }), /unknown option 'dealy'/);
    assert.equal(await message.ack(), true);
    assert.equal((await queue.stats()).total, 0);
    assert.deepEqual(await all(kv.list({ prefix: [] })), []);
  });

  test("what is refused: names, and named options without a name", async () => {
    const kv = await fresh();
    for (const name of ["", 5, null, "x".repeat(257), "\ud800"]) {
      assert.throws(() => kv.queue(name), { name: "TypeError", message: /^kv\.queue: name / });
    }
    assert.throws(() => kv.queue("a", { deadRetension: 1 }), /unknown option 'deadRetension'/);
    assert.throws(() => kv.queue("a", { deadRetention: 0.5 }), /deadRetention must be a duration/);
    for (const options of [{ priority: 1 }, { at: 1 }, { deduplicationKey: "k" }, { queue: "a" }]) {
      await assert.rejects(kv.enqueue(1, options), /is for named queues: use kv.queue/);
    }
    // The methods "at" of a text and of an array were taken for the option; Deno ignores both.
    for (const none of ["x", [], 5]) assert.equal((await kv.enqueue(1, none)).ok, true);
    assert.throws(() => kv.atomic().enqueue(1, { priority: 1 }), /is for named queues/);
    assert.throws(() => kv.atomic().enqueue(1, { queue: "" }), /queue must not be empty/);
    assert.throws(() => kv.atomic().enqueue(1, { queue: "a", dealy: 1 }), /option 'dealy'/);
    assert.equal((await kv.queue("a").stats()).total, 0);
  });
});
