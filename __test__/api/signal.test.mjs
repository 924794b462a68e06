// Duty: the `signal` of every asynchronous call: aborted before, nothing is done; aborted later, the
// call rejects with the reason; streams end; no listener stays on the signal.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { until } from "../kit/time.mjs";
import { all, freshPath, onEveryKind, open } from "./databases.mjs";
import { declaredMethods } from "./methods/declared.mjs";

/** Each method as (kv, options) with what it needs, its options given last. */
const CALLS = {
  "Kv.get": (kv, options) => kv.get(["a"], options),
  "Kv.getMany": (kv, options) => kv.getMany([["a"], ["b"]], options),
  "Kv.set": (kv, options) => kv.set(["written"], 1, options),
  "Kv.delete": (kv, options) => kv.delete(["a"], options),
  "Kv.ttl": (kv, options) => kv.ttl(["a"], options),
  "Kv.touch": (kv, options) => kv.touch(["a"], { expireIn: 5_000_000, ...options }),
  "Kv.persist": (kv, options) => kv.persist(["a"], options),
  "Kv.count": (kv, options) => kv.count({ prefix: [] }, options),
  "Kv.explain": (kv, options) => kv.explain({ prefix: [] }, options),
  "Kv.paginate": (kv, options) => kv.paginate({ prefix: [], ...options }),
  "Kv.deleteMany": (kv, options) => kv.deleteMany({ prefix: ["a"] }, options),
  "Kv.enqueue": (kv, options) => kv.enqueue("message", options),
  "Kv.search": (kv, options) => kv.search(["indexed"], "word", options),
  "Kv.createIndex": (kv, options) =>
    kv.createIndex({ prefix: ["other"], fields: ["name"], ...options }),
  "Kv.listIndexes": (kv, options) => kv.listIndexes(options),
  "Kv.dropIndex": (kv, options) => kv.dropIndex(["indexed"], options),
  "Kv.stats": (kv, options) => kv.stats(options),
  "Kv.metrics": (kv, options) => kv.metrics(options),
  "Kv.vacuum": (kv, options) => kv.vacuum(options),
  "Kv.checkpoint": (kv, options) => kv.checkpoint(options),
  "Kv.check": (kv, options) => kv.check(options),
  "Kv.transaction": (kv, options) =>
    kv.transaction(async (tx) => void tx.set(["written"], (await tx.get(["a"])).value), options),
  "KvTransaction.get": (kv, options) => kv.transaction((tx) => tx.get(["a"], options)),
  "KvTransaction.getMany": (kv, options) => kv.transaction((tx) => tx.getMany([["a"]], options)),
  "KvTransaction.count": (kv, options) => kv.transaction((tx) => tx.count({ prefix: [] }, options)),
  "KvTransaction.paginate": (kv, options) =>
    kv.transaction((tx) => tx.paginate({ prefix: [], ...options })),
  "KvTransaction.list": (kv, options) =>
    kv.transaction(async (tx) => void (await tx.list({ prefix: [] }, options).next())),
  "KvTransactionListIterator.toArray": (kv, options) =>
    kv.transaction((tx) => tx.list({ prefix: [] }, options).toArray()),
  "KvListIterator.next": async (kv, options) => await kv.list({ prefix: [] }, options).next(),
  "KvListIterator.toArray": async (kv, options) => await kv.list({ prefix: [] }, options).toArray(),
  "AtomicOperation.commit": (kv, options) => kv.atomic().set(["written"], 1).commit(options),
  "KvIndex.ready": async (kv, options) =>
    (await kv.createIndex({ prefix: ["indexed"], fields: ["name"] })).ready(options),
  "KvValueIndex.ready": async (kv, options) => (await kv.createIndex(BY_NAME)).ready(options),
  "KvQueue.enqueue": (kv, options) => kv.queue().enqueue("message", options),
  "KvQueue.receive": (kv, options) => kv.queue("empty").receive({ wait: 50, ...options }),
  "KvQueue.stats": (kv, options) => kv.queue().stats(options),
  "KvQueue.schedule": (kv, options) => kv.queue().schedule("s", { every: 60_000 }, 1, options),
  "KvQueue.unschedule": (kv, options) => kv.queue().unschedule("s", options),
  "KvQueue.schedules": (kv, options) => kv.queue().schedules(options),
  "KvQueue.pause": (kv, options) => kv.queue().pause(options),
  "KvQueue.resume": (kv, options) => kv.queue().resume(options),
  "KvQueue.drain": (kv, options) => kv.queue().drain(options),
  "KvQueue.setLimits": (kv, options) => kv.queue().setLimits({}, options),
  "KvQueue.limits": (kv, options) => kv.queue().limits(options),
  "KvQueue.groups": (kv, options) => kv.queue().groups(options),
  "KvQueue.cancel": (kv, options) => kv.queue().cancel("1", options),
  "KvQueue.result": (kv, options) => kv.queue().result("1", options),
  "KvQueue.progress": (kv, options) => kv.queue().progress("1", options),
  "KvQueue.delete": (kv, options) => kv.queue().delete("1", options),
  "KvDeadLetters.list": (kv, options) => kv.queue().dead.list(options),
  "KvDeadLetters.get": (kv, options) => kv.queue().dead.get("1", options),
  "KvDeadLetters.requeue": (kv, options) => kv.queue().dead.requeue("1", options),
  "KvDeadLetters.requeueAll": (kv, options) => kv.queue().dead.requeueAll(options),
  "KvDeadLetters.delete": (kv, options) => kv.queue().dead.delete("1", options),
  "KvDeadLetters.purge": (kv, options) => kv.queue().dead.purge(options),
};

const BY_NAME = { type: "value", prefix: ["indexed"], on: "name" };

/** Calls that a database without full-text search refuses before it looks at anything. */
const OF_SEARCH = ["Kv.search", "Kv.createIndex", "KvIndex.ready"];

const OTHERS = {
  "Kv.backup": "backup.test.mjs",
  "Kv.at": "history.test.mjs",
  "Kv.archive": "it begins, or rejects: stop() ends it",
  "KvArchive.stop": "what is left is archived first",
  "KvReplica.status": "it waits for nothing",
  "KvReplica.ready": "__test__/replica",
  "KvReplica.reached": "__test__/replica",
  "Kv.listenQueue": "it resolves: below",
  "KvQueue.listen": "it resolves: named-queues.test.mjs",
  "Kv.close": "it always ends",
  "Kv.[Symbol.asyncDispose]": "it always ends",
  "KvMessage.ack": "settling is not given up",
  "KvMessage.nack": "settling is not given up",
  "KvMessage.extend": "settling is not given up",
  "KvMessage.progress": "it is a write of the handler, whose own signal counts",
  "KvHandledMessage.progress": "it is a write of the handler, whose own signal counts",
  "KvServer.close": "it always ends",
  "KvServer.[Symbol.asyncDispose]": "it always ends",
  "KvCollection.migrateAll": "collections.test.mjs",
  "Kv.lease": "lease.test.mjs",
  "Kv.once": "the function gets a signal",
  "KvLease.release": "releasing is not given up",
  "KvLimiter.take": "it takes no signal",
  "KvLimiter.peek": "it takes no signal",
  "KvLimiter.reset": "it takes no signal",
  "KvTransaction.checkLease": "the signal of the transaction counts",
  openKv: "options.test.mjs of remote",
  restore: "a file is put in place whole, or not at all",
  serve: "it takes no signal",
};

/** Documents are read and written by single calls of a handle, which take a signal themselves. */
const OF_DOCUMENTS = /^Kv(Collection|CollectionReads|TransactionCollection|Documents|TypedKeys)\./;

test("every method that answers a promise is here", () => {
  const names = [...declaredMethods()].filter(([, promise]) => promise).map(([name]) => name);
  const isHere = (name) => name in CALLS || name in OTHERS || OF_DOCUMENTS.test(name);
  const missing = names.filter((name) => !isHere(name));
  assert.deepEqual(missing, []);
});

async function contents(kv) {
  const { queues } = await kv.metrics();
  const ends = await all(kv.list({ prefix: [] }, { withExpiry: true }));
  return { ends, queues, indexes: (await kv.listIndexes()).map(({ name }) => name) };
}

onEveryKind("signals", (fresh, { withoutSearch } = {}) => {
  const reason = new Error("given up");
  const lacking = withoutSearch ? OF_SEARCH : [];
  const calls = Object.entries(CALLS).filter(([name]) => !lacking.includes(name));

  async function indexed(kv) {
    if (!withoutSearch) {
      await (await kv.createIndex({ prefix: ["indexed"], fields: ["name"] })).ready();
    }
    await (await kv.createIndex(BY_NAME)).ready();
  }

  async function filled() {
    const kv = await fresh();
    await kv.set(["a"], { name: "word" }, { expireIn: 3_600_000 });
    await kv.set(["indexed", 1], { name: "word" });
    await indexed(kv);
    return kv;
  }

  test("aborted before: each call rejects with the reason, and nothing is done", async () => {
    const kv = await filled();
    const before = await contents(kv);
    const signal = AbortSignal.abort(reason);
    for (const [name, call] of calls) {
      await assert.rejects(call(kv, { signal }), (error) => error === reason, name);
    }
    assert.deepEqual(await contents(kv), before);
  });

  test("aborted later: each call rejects with the reason, or has ended", async () => {
    const kv = await filled();
    for (const [name, call] of calls) {
      const controller = new AbortController();
      const called = call(kv, { signal: controller.signal });
      controller.abort(reason);
      await assert.rejects(called, (error) => error === reason, name);
      assert.equal(getEventListeners(controller.signal, "abort").length, 0, name);
    }
    await kv.set(["works"], 1);
    assert.equal((await kv.get(["works"])).value, 1);
  });

  test("never aborted: each call does what it does without, and leaves no listener", async () => {
    const kv = await filled();
    const { signal } = new AbortController();
    const outcome = (promise) =>
      promise.then(
        () => "done",
        (error) => error.code ?? error,
      );
    for (const [name, call] of calls) {
      const expected = await outcome(call(kv, {}));
      for (const given of [signal, undefined, null]) {
        await indexed(kv);
        assert.deepEqual(await outcome(call(kv, { signal: given })), expected, name);
      }
      assert.equal(getEventListeners(signal, "abort").length, 0, name);
    }
  });

  test("what is no signal is a TypeError that says so", async () => {
    const kv = await filled();
    const before = await contents(kv);
    for (const [name, call] of calls) {
      for (const signal of ["now", 5, {}, new AbortController()]) {
        const run = async () => await call(kv, { signal });
        await assert.rejects(
          run,
          { name: "TypeError", message: /signal must be an AbortSignal/ },
          name,
        );
      }
    }
    assert.deepEqual(await contents(kv), before);
  });

  test("a watch and a feed end, also while they are read, and are forgotten", async () => {
    const kv = await filled();
    const ways = [
      (signal) => kv.watch([["a"]], { signal }),
      (signal) => kv.watch({ prefix: [] }, { signal }),
    ];
    for (const watch of ways) {
      const controller = new AbortController();
      const { signal } = controller;
      const reader = watch(signal).getReader();
      if (watch === ways[0]) assert.equal((await reader.read()).done, false);
      const pending = reader.read();
      await kv.get(["a"]);
      controller.abort(reason);
      assert.deepEqual(await pending, { done: true, value: undefined });
      assert.deepEqual(await reader.read(), { done: true, value: undefined });
      const unread = new AbortController();
      const stream = watch(unread.signal);
      unread.abort();
      for await (const _ of stream) assert.fail("it yields");
      for await (const _ of watch(AbortSignal.abort())) assert.fail("it yields");
      const cancelled = new AbortController();
      await watch(cancelled.signal).cancel();
      for (const used of [signal, unread.signal, cancelled.signal]) {
        assert.equal(getEventListeners(used, "abort").length, 0);
      }
      assert.throws(() => watch("now"), /signal must be an AbortSignal/);
    }
    const isForgotten = async () => {
      const { watches, feeds } = await kv.metrics();
      return watches === 0 && feeds === 0;
    };
    await until(isForgotten, "no watch and no feed is left");
  });

  test("a list rejects from then on, and goes no further", async () => {
    const kv = await fresh();
    for (let i = 0; i < 100; i++) await kv.set(["n", i], i);
    for (const options of [{}, { keysOnly: true }]) {
      const controller = new AbortController();
      const { signal } = controller;
      const list = kv.list({ prefix: ["n"] }, { ...options, signal });
      const seen = [];
      const reading = (async () => {
        for await (const entry of list) {
          seen.push(entry);
          if (seen.length === 40) controller.abort(reason);
        }
      })();
      await assert.rejects(reading, (error) => error === reason);
      assert.equal(seen.length, 40);
      await assert.rejects(list.toArray(), (error) => error === reason);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    }
  });

  test("listenQueue resolves, after its handlers", async () => {
    const kv = await fresh();
    const controller = new AbortController();
    let ended = false;
    const listening = kv.listenQueue(
      async () => {
        controller.abort(reason);
        await new Promise((resolve) => setTimeout(resolve, 20));
        ended = true;
      },
      { signal: controller.signal },
    );
    await kv.enqueue("message");
    await listening;
    assert.ok(ended);
    await kv.listenQueue(() => {}, { signal: AbortSignal.abort() });
    await assert.rejects(
      kv.listenQueue(() => {}, { signal: 5 }),
      /signal must be an AbortSignal/,
    );
  });
});

test("10,000 calls leave nothing on a signal that lives long", async () => {
  const kv = await open(freshPath());
  await kv.set(["a"], 1);
  const { signal } = new AbortController();
  for (let round = 0; round < 100; round++) {
    const calls = [];
    for (let i = 0; i < 50; i++) calls.push(kv.get(["a"], { signal }));
    for (let i = 0; i < 50; i++) calls.push(kv.set(["b", i], i, { signal }));
    // Node takes more than ten listeners for a leak, and warns.
    assert.equal(getEventListeners(signal, "abort").length, 1);
    await Promise.all(calls);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
});

test("a call that is refused leaves nothing on its signal", async () => {
  const kv = await open(":memory:");
  const queue = kv.queue("mail");
  const calls = {
    delete: (options) => queue.delete("no id", options),
    cancel: (options) => queue.cancel("no id", options),
    result: (options) => queue.result("no id", options),
    progress: (options) => queue.progress("no id", options),
    setLimits: (options) => queue.setLimits({ concurrency: -1 }, options),
    "dead.get": (options) => queue.dead.get("no id", options),
    dropIndex: (options) => kv.dropIndex(5, options),
    ttl: (options) => kv.ttl("no key", options),
  };
  for (const [name, call] of Object.entries(calls)) {
    const { signal } = new AbortController();
    await assert.rejects(call({ signal }), TypeError, name);
    assert.equal(getEventListeners(signal, "abort").length, 0, name);
  }
});

test("a signal that is aborted while a key is encoded gives the call up", async () => {
  const kv = await open(":memory:");
  const controller = new AbortController();
  const key = ["a"];
  Object.defineProperty(key, 0, {
    get() {
      controller.abort("in the getter");
      return "a";
    },
  });
  await assert.rejects(kv.get(key, { signal: controller.signal }), (r) => r === "in the getter");
});
