// Duty: the diagnostics channels: what is published of each operation, and the context of a message, which no
// reader of its value sees.

import assert from "node:assert/strict";
import { tracingChannel } from "node:diagnostics_channel";
import { test } from "node:test";
import { freshPath, onEach, onServed, open } from "./databases.mjs";

const CHANNELS = ["read", "commit", "transaction", "enqueue", "receive", "process"];
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** Collects the events of an end while `work` runs, with `start` called for each start. */
async function observing(work, start = () => {}) {
  const ended = [];
  const add = (event) => ended.push(event);
  const subscribers = { start, asyncEnd: add, end: (event) => event.synchronous && add(event) };
  for (const name of CHANNELS) tracingChannel(`openkv:${name}`).subscribe(subscribers);
  try {
    await work();
  } finally {
    for (const name of CHANNELS) tracingChannel(`openkv:${name}`).unsubscribe(subscribers);
  }
  return ended;
}

/** Puts headers into every message that is enqueued. */
const carrying =
  (headers = { traceparent: TRACEPARENT }) =>
  (event) => {
    if (event.operation === "enqueue" || event.operation === "create") {
      Object.assign(event.headers, headers);
    }
  };

/** The first message of a listener: its value, and the headers of its event. */
async function handled(kv, queue) {
  const stop = new AbortController();
  let value;
  const [event] = await observing(async () => {
    const listening = kv.queue(queue).listen(
      (message) => {
        value = message;
        stop.abort();
      },
      { concurrency: 1, signal: stop.signal },
    );
    await listening;
  });
  return { value, event };
}

function suite(fresh) {
  test("each operation is published once, with what it is on", async () => {
    const kv = await fresh();
    const ended = await observing(async () => {
      await kv.set(["a"], 1);
      await kv.get(["a"], { withExpiry: true });
      await kv.getMany([["a"], ["b"]]);
      for await (const _ of kv.list({ prefix: ["a"] }));
      await kv.count({ prefix: [] });
      await kv.paginate({ prefix: [] });
      await kv.touch(["a"], { expireIn: 60_000 });
      await kv.persist(["a"]);
      await kv.delete(["a"]);
      await kv.deleteMany([["a"]]);
      await kv.atomic().set(["a"], 1).commit();
      await kv.transaction((tx) => tx.set(["a"], 2));
      await kv.enqueue(1);
      await kv.queue("q").enqueue(1);
      await (await kv.queue("q").receive()).ack();
    });
    const names = ended.map(({ operation }) => operation);
    assert.deepEqual(names, [
      ...["set", "get", "getMany", "list", "count", "paginate", "touch", "persist", "delete"],
      ...["deleteMany", "commit", "commit", "transaction", "enqueue", "enqueue", "receive"],
    ]);
    assert.deepEqual(ended[0].key, ["a"]);
    assert.equal(ended[0].result.ok, true);
    assert.deepEqual(ended[3].selector, { prefix: ["a"] });
    assert.deepEqual([ended[13].queue, ended[14].queue], ["", "q"]);
    assert.equal(new Set(ended.map(({ database }) => database)).size, 1);
    assert.doesNotMatch(ended[0].database, /@|\?/);
  });

  test("an error is published, and reaches the caller", async () => {
    const kv = await fresh();
    const [failed] = await observing(() => assert.rejects(kv.set([], 1), { code: "INVALID" }));
    assert.equal(failed.error.code, "INVALID");
  });

  test("a handler's event has the headers of the enqueue, and its value none of them", async () => {
    const kv = await fresh();
    const value = { a: [1n, new Set(["x"])], blob: new Blob(["abc"]), id: kv.uuidv7() };
    await observing(() => kv.queue("q").enqueue(value), carrying());
    const [peeked] = (await kv.queue("q").peek()).messages;
    const { event, value: got } = await handled(kv, "q");
    assert.deepEqual(event.headers, { traceparent: TRACEPARENT });
    assert.deepEqual(got.a, [1n, new Set(["x"])]);
    assert.equal(await got.blob.text(), "abc");
    assert.match(String(got.id), /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    assert.deepEqual(peeked.value.a, got.a);
  });

  test("a message of an atomic operation has the headers of its own enqueue", async () => {
    const kv = await fresh();
    const operation = kv.atomic();
    await observing(() => void operation.enqueue("a", { queue: "q" }), carrying());
    operation.enqueue("b", { queue: "q" });
    await operation.commit();
    const { event, value } = await handled(kv, "q");
    assert.deepEqual([value, event.headers], ["a", { traceparent: TRACEPARENT }]);
    const second = await handled(kv, "q");
    assert.deepEqual([second.value, second.event.headers], ["b", {}]);
  });

  test("a dead message leaves its value, without headers", async () => {
    const kv = await fresh();
    const options = { backoffSchedule: [], keysIfUndelivered: [["undelivered"]] };
    await observing(() => kv.queue("q").enqueue({ n: 1 }, options), carrying());
    const message = await kv.queue("q").receive();
    await message.nack();
    const { messages } = await kv.queue("q").dead.list();
    assert.deepEqual(
      messages.map(({ value }) => value),
      [{ n: 1 }],
    );
    assert.deepEqual((await kv.get(["undelivered"])).value, { n: 1 });
    // Filters read the stored bytes.
    const where = { n: 1 };
    assert.equal(await kv.count({ prefix: [] }, { where }), 1);
  });

  test("headers that HTTP could not carry are left out, and so are those over the bound", async () => {
    const kv = await fresh();
    const headers = {
      good: "1",
      "two words": "1",
      colon: "a: b",
      lines: "a\nb",
      umlaut: "ä",
      number: 1,
      empty: "",
      long: "x".repeat(1024),
      tracestate: "y".repeat(900),
    };
    await observing(() => kv.queue("q").enqueue("a", {}), carrying(headers));
    const { event } = await handled(kv, "q");
    const { good, colon, tracestate } = headers;
    assert.deepEqual(event.headers, { good, colon, tracestate });
  });

  test("headers of any length within the bound arrive", async () => {
    const kv = await fresh();
    for (const length of [1, 20, 21, 240, 252, 253, 1021]) {
      const headers = { a: "x".repeat(length) };
      await observing(() => kv.queue("q").enqueue(length), carrying(headers));
      const { event, value } = await handled(kv, "q");
      assert.deepEqual([value, event.headers], [length, headers]);
    }
  });

  test("a message as large as the limit goes without headers rather than not at all", async () => {
    const kv = await fresh();
    // A string of so many bytes has a head of three.
    for (const [bytes, headers] of [
      [65_536 - 3, {}],
      [65_536 - 3 - 200, { traceparent: TRACEPARENT }],
    ]) {
      const value = "x".repeat(bytes);
      await observing(() => kv.queue("q").enqueue(value), carrying());
      const found = await handled(kv, "q");
      assert.equal(found.value, value);
      assert.deepEqual(found.event.headers, headers);
    }
  });
}

onEach("channels", suite);
onServed("channels", suite);

test("a subscriber to the start may run the operation in a context", async () => {
  const kv = await open(":memory:");
  const seen = [];
  await observing(
    async () => assert.equal((await kv.get(["a"])).value, null),
    (event) => {
      event.run = (operation) => {
        seen.push("before");
        return operation();
      };
    },
  );
  assert.deepEqual(seen, ["before"]);
});

test("synchronous reads are published too", async () => {
  const kv = await open(":memory:");
  const ended = await observing(() => {
    kv.getSync(["a"]);
    kv.getManySync([["a"]]);
    assert.throws(() => kv.getSync([{}]), { code: "INVALID" });
  });
  const names = ended.map(({ operation, error }) => [operation, error?.code]);
  assert.deepEqual(names, [
    ["getSync", undefined],
    ["getManySync", undefined],
    ["getSync", "INVALID"],
  ]);
});

test("messages of Deno's queue in a file for Deno are stored without headers", async () => {
  const kv = await open(freshPath(), { encoding: "v8" });
  await observing(() => kv.enqueue({ a: new Map([[1, 2]]) }), carrying());
  const stop = new AbortController();
  let value;
  const [event] = await observing(() =>
    kv.listenQueue(
      (message) => {
        value = message;
        stop.abort();
      },
      { signal: stop.signal },
    ),
  );
  assert.deepEqual(value, { a: new Map([[1, 2]]) });
  assert.deepEqual(event.headers, {});
});

test("an iterator that has ended publishes nothing more", async () => {
  const kv = await open(":memory:");
  await kv.set(["a"], 1);
  const list = kv.list({ prefix: [] });
  assert.equal((await observing(() => list.next())).length, 1);
  assert.equal(
    (await observing(async () => void (await list.next(), await list.next()))).length,
    0,
  );
});
