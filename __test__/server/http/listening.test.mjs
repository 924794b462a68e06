// Duty: messages of a queue as server-sent events: delivery, room for the next ones, locks, the end.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { EventSource } from "eventsource";
import { until } from "../../kit/time.mjs";
import { accessToken, connect } from "../serving.mjs";
import { TYPED, readToken, serveApi } from "./calling.mjs";

const LONG = "lockDuration=60000";

/** The messages of a stream, as they arrive. */
function listen(server, query, headers = {}) {
  const authorization = `Bearer ${accessToken}`;
  const source = new EventSource(`${server.url}/api/queue/listen?${query}`, {
    fetch: (address, options) =>
      fetch(address, { ...options, headers: { ...options.headers, authorization, ...headers } }),
  });
  after(() => source.close());
  const messages = [];
  source.addEventListener("message", ({ data }) => messages.push(JSON.parse(data)));
  return { source, messages };
}

const values = (messages) => messages.map(({ value }) => value);

test("a stream delivers so many messages, and one more for each that is settled", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const queue = kv.queue("mail");
  const { messages } = listen(server, `queue=mail&concurrency=3&${LONG}`);
  for (let n = 0; n < 8; n++) await queue.enqueue(n);
  await until(() => messages.length === 3, "three messages");
  assert.deepEqual(values(messages), [0, 1, 2]);
  assert.equal((await queue.stats()).processing, 3);
  const end = (route, n, more = {}) => {
    const { id, lock } = messages[n];
    return call("POST", `/queue/${route}`, { body: { id, lock, ...more } });
  };
  assert.deepEqual((await end("ack", 0)).body, { ok: true });
  await until(() => messages.length === 4, "one more");
  assert.deepEqual((await end("nack", 1, { delay: 3_600_000 })).body, { ok: true });
  await until(() => messages.length === 5, "one more");
  assert.deepEqual((await end("extend", 2, { lockDuration: 90_000 })).body, { ok: true });
  assert.deepEqual((await queue.stats()).processing, 3, "an extension makes no room");
  for (let n = 2; n < 8; n++) {
    await until(() => messages.length > n, `message ${n}`);
    assert.deepEqual((await end("ack", n)).body, { ok: true });
  }
  assert.deepEqual(values(messages), [0, 1, 2, 3, 4, 5, 6, 7]);
  const { pending, processing, delayed } = await queue.stats();
  assert.deepEqual([pending, processing, delayed], [0, 0, 1]);
});

test("a message whose lock expires comes again, and makes room", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const queue = kv.queue("q");
  const { messages } = listen(server, "queue=q&concurrency=1&lockDuration=100");
  await queue.enqueue("a", { backoffSchedule: [1] });
  await until(() => messages.length === 2, "the second delivery");
  assert.deepEqual([messages[0].attempts, messages[1].attempts], [1, 2]);
  assert.equal(messages[0].id, messages[1].id);
  assert.notEqual(messages[0].lock, messages[1].lock);
  const { id, lock } = messages[0];
  assert.equal((await call("POST", "/queue/ack", { body: { id, lock } })).body.ok, false);
});

test("what a stream has not delivered belongs to others when it ends", async () => {
  const { server } = await serveApi();
  const kv = await connect(server);
  const queue = kv.queue("q");
  const { source, messages } = listen(server, `queue=q&concurrency=1&${LONG}`);
  for (let n = 0; n < 3; n++) await queue.enqueue(n);
  await until(() => messages.length === 1, "a message");
  source.close();
  const got = [];
  queue.listen((value) => void got.push(value));
  await until(() => got.length === 2, "the others");
  assert.deepEqual(got, [1, 2]);
});

test("values are typed if the client asks for it, and options have bounds", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.enqueue(5n);
  const { messages } = listen(server, LONG, { accept: `text/event-stream, ${TYPED}` });
  await until(() => messages.length === 1, "the message");
  assert.deepEqual(messages[0].value, { type: "bigint", value: "5" });
  for (const bad of ["concurrency=0", "concurrency=1001", "lockDuration=99", "other=1"]) {
    assert.equal((await call("GET", `/queue/listen?${bad}`)).status, 400, bad);
  }
  assert.equal((await call("GET", "/queue/listen", { token: readToken })).status, 403);
});
