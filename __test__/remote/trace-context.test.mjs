// Duty: the trace context of requests to a server: what a subscriber of the channel `openkv:request` gives, on
// every request of that context, and nothing without a subscriber.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { connect, start } from "./mock.mjs";

const contexts = new AsyncLocalStorage();
const parentOf = (n) => `00-0af7651916cd43dd8448eb211c80319c-000000000000000${n}-01`;

/** Runs `work` while requests carry the headers that their context holds. Returns the events. */
async function carrying(work) {
  const events = [];
  const carry = (event) => {
    events.push(event.database);
    Object.assign(event.headers, contexts.getStore());
  };
  subscribe("openkv:request", carry);
  try {
    await work();
  } finally {
    unsubscribe("openkv:request", carry);
  }
  return events;
}

/** The trace contexts of the requests of a kind. */
const sent = (mock, kind) =>
  mock.requests.filter(({ name }) => name === kind).map(({ headers }) => headers.traceparent);

test("a read and a write carry the context in which they are called", async () => {
  const mock = await start();
  const kv = await connect(mock);
  const events = await carrying(async () => {
    await contexts.run({ traceparent: parentOf(1), tracestate: "vendor=1" }, async () => {
      await kv.set(["a"], 1);
      await kv.get(["a"]);
    });
    await contexts.run({ traceparent: parentOf(2) }, () => kv.get(["a"]));
    await kv.get(["a"]);
  });
  assert.deepEqual(sent(mock, "atomic_write"), [parentOf(1)]);
  assert.deepEqual(sent(mock, "snapshot_read"), [parentOf(1), parentOf(2), undefined]);
  const read = mock.requests.find(({ name }) => name === "snapshot_read");
  assert.equal(read.headers.tracestate, "vendor=1");
  assert.deepEqual([...new Set(events)], [mock.url]);
});

test("a request that several contexts share carries that of its first operation", async () => {
  const mock = await start();
  const kv = await connect(mock);
  await carrying(async () => {
    const one = contexts.run({ traceparent: parentOf(1) }, () => kv.get(["a"]));
    const other = contexts.run({ traceparent: parentOf(2) }, () => kv.get(["b"]));
    await Promise.all([one, other]);
  });
  assert.deepEqual(sent(mock, "snapshot_read"), [parentOf(1)]);
});

test("an operation that waits for a write keeps its context", async () => {
  const mock = await start();
  const kv = await connect(mock);
  await carrying(async () => {
    const write = contexts.run({ traceparent: parentOf(1) }, () => kv.set(["a"], 1));
    const read = contexts.run({ traceparent: parentOf(2) }, () => kv.get(["a"]));
    await Promise.all([write, read]);
  });
  assert.deepEqual(sent(mock, "atomic_write"), [parentOf(1)]);
  assert.deepEqual(sent(mock, "snapshot_read"), [parentOf(2)]);
});

test("every attempt of a request carries its context", async () => {
  const mock = await start();
  mock.scripts.snapshot_read = (_, response, __, count) => {
    if (count > 1) return false;
    response.writeHead(503).end();
    return true;
  };
  const kv = await connect(mock);
  await carrying(() => contexts.run({ traceparent: parentOf(1) }, () => kv.get(["a"])));
  assert.deepEqual(sent(mock, "snapshot_read"), [parentOf(1), parentOf(1)]);
});

test("no other header is sent, and what is no header is left out", async () => {
  const mock = await start();
  const kv = await connect(mock);
  const headers = { authorization: "Bearer other", baggage: "a=1", tracestate: "a\nhost: other" };
  await carrying(() => contexts.run(headers, () => kv.get(["a"])));
  const { headers: of } = mock.requests.find(({ name }) => name === "snapshot_read");
  assert.equal(of.authorization, "Bearer data-token");
  assert.equal(of.baggage, undefined);
  assert.equal(of.tracestate, "a");
  assert.notEqual(of.host, "other");
});

test("without a subscriber requests carry none", async () => {
  const mock = await start();
  const kv = await connect(mock);
  await carrying(() => {});
  await contexts.run({ traceparent: parentOf(1) }, async () => {
    await kv.set(["a"], 1);
    await kv.get(["a"]);
  });
  assert.deepEqual(sent(mock, "atomic_write"), [undefined]);
  assert.deepEqual(sent(mock, "snapshot_read"), [undefined]);
});
