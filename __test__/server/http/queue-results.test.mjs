// Duty: results, progress, events and limits of queues over the HTTP API.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { EventSource } from "eventsource";
import { until } from "../../kit/time.mjs";
import { accessToken, connect } from "../serving.mjs";
import { TYPED, readToken, serveApi } from "./calling.mjs";

/** A server, a handle on its database, and requests about its queue mail. */
async function serveMail() {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const enqueue = async (value, more) => {
    const body = { value, keepResult: "1h", backoffSchedule: [], ...more };
    return (await call("POST", "/queue/enqueue?queue=mail", { body })).body.id;
  };
  const get = (path, options) =>
    call("GET", `${path}${path.includes("?") ? "&" : "?"}queue=mail`, options);
  const result = (id, more = "", options = {}) =>
    get(`/queue/messages/${id}/result${more}`, options);
  /** Ends after `count` messages. */
  const handle = async (handler, count) => {
    const stop = new AbortController();
    let left = count;
    const one = async (...given) => {
      try {
        return await handler(...given);
      } finally {
        if (--left === 0) stop.abort();
      }
    };
    await kv.queue("mail").listen(one, { signal: stop.signal, onError: () => {} });
  };
  return { server, call, kv, enqueue, get, result, handle };
}

/** The events of the queue mail, as they arrive. */
function follow(server, more = "", headers = {}) {
  const source = new EventSource(`${server.url}/api/queue/events?queue=mail${more}`, {
    fetch: (url, options) =>
      fetch(url, {
        ...options,
        headers: { ...options.headers, authorization: `Bearer ${readToken}`, ...headers },
      }),
  });
  after(() => source.close());
  const seen = { source, told: [], last: "", gaps: 0 };
  for (const name of ["events", "ping", "gap"]) {
    source.addEventListener(name, ({ data, lastEventId }) => {
      seen.last = lastEventId;
      if (name === "gap") seen.gaps++;
      if (name === "events") seen.told.push(...JSON.parse(data));
    });
  }
  return seen;
}

const timeOf = ({ at }) => Number.isInteger(Date.parse(at));

test("how a message has ended is told, and waited for", async () => {
  const { kv, call, enqueue, result, handle } = await serveMail();
  const id = await enqueue({ file: "a" });
  const early = await result(id);
  assert.deepEqual([early.status, early.body.code], [404, "NOT_FOUND"]);
  assert.match(early.body.detail, /has not ended, or its result is not kept: .*keepResult/);
  const waiting = result(id, "?wait=30s", { token: readToken });
  const shared = { n: 5n };
  await handle(async () => ({ file: "b", twice: [shared, shared] }), 1);
  const { status, headers, body } = await waiting;
  assert.equal(status, 200, JSON.stringify(body));
  const { at, ...rest } = body;
  const twice = [{ n: 5 }, { n: 5 }];
  assert.deepEqual(rest, { state: "completed", value: { file: "b", twice } });
  assert.equal(headers.get("openkv-lossy"), "true");
  assert.ok(timeOf({ at }));
  assert.equal(headers.get("content-type"), "application/json");
  const typed = (await result(id, "", { headers: { accept: TYPED } })).body;
  assert.equal(typed.value.type, "CBOR", "an object that occurs twice");
  const inCbor = await result(id, "", { headers: { accept: "application/cbor" } });
  assert.equal(inCbor.headers.get("content-type"), "application/cbor");

  const dead = await enqueue("dies");
  await handle(async () => {
    throw new TypeError("no stamp");
  }, 1);
  const died = (await result(dead, "?wait=30000")).body;
  assert.deepEqual(
    [died.state, died.errorName, died.error, "value" in died],
    ["dead", "TypeError", "no stamp", false],
  );
  // Requeued, it can end once more: the last end is told.
  assert.equal(await kv.queue("mail").dead.requeue(dead), true);
  await handle(async () => undefined, 1);
  const revived = async () => (await result(dead)).body.state === "completed" || undefined;
  await until(revived);

  const cancelled = await enqueue("cancelled");
  const cancelling = result(cancelled, "?wait=1m");
  await call("POST", `/queue/messages/${cancelled}/cancel?queue=mail`);
  const { at: when, ...end } = (await cancelling).body;
  assert.deepEqual(end, { state: "cancelled" });
  assert.ok(timeOf({ at: when }));
});

test("a wait ends when its time is over, and a message without keepResult has no result", async () => {
  const { kv, call, result, handle, enqueue } = await serveMail();
  const waits = await enqueue("waits");
  const late = await result(waits, "?wait=20ms");
  assert.equal(late.status, 404);
  const { id } = await kv.queue("mail").enqueue("not kept");
  await handle(async () => 1, 2);
  assert.equal((await result(waits, "?wait=30s")).body.value, 1);
  const refused = await result(id, "?wait=1");
  assert.equal(refused.status, 404);
  assert.match(refused.body.detail, /without keepResult there is none/);
  const other = await call("GET", `/queue/messages/${waits}/result?queue=other`);
  assert.equal(other.status, 404);
});

test("the last progress of a message is told", async () => {
  const { enqueue, get, handle } = await serveMail();
  const id = await enqueue({ file: "a" });
  const progress = (options) => get(`/queue/messages/${id}/progress`, options);
  const none = await progress();
  assert.deepEqual([none.status, none.body.code], [404, "NOT_FOUND"]);
  assert.match(none.body.detail, /No progress of message .* for an hour/);
  await handle(async (_, message) => {
    await message.progress({ percent: 10 });
    await message.progress({ percent: 90 });
  }, 1);
  const { status, body } = await progress({ token: readToken });
  assert.equal(status, 200, JSON.stringify(body));
  const { at, ...rest } = body;
  assert.deepEqual(rest, { attempts: 1, value: { percent: 90 } });
  assert.ok(timeOf({ at }));
  const typed = (await progress({ headers: { accept: TYPED } })).body.value;
  assert.deepEqual(typed.value.percent, { type: "number", value: 90 });
});

test("a worker over HTTP tells its progress, and acknowledges with a result", async () => {
  const { server, call, enqueue, get, result } = await serveMail();
  const poll = async () => (await get("/queue/poll?lockDuration=60000")).body.message;
  const post = async (path, body, options) => (await call("POST", path, { body, ...options })).body;
  const seen = follow(server);
  await until(() => seen.last !== "");
  const id = await enqueue({ file: "a" });
  const { lock } = await poll();
  const waiting = result(id, "?wait=30s", { token: readToken });
  for (const percent of [10, 90]) {
    assert.deepEqual(await post("/queue/progress", { id, lock, value: { percent } }), { ok: true });
  }
  const { attempts, value } = (await get(`/queue/messages/${id}/progress`)).body;
  assert.deepEqual([attempts, value], [1, { percent: 90 }]);
  const typed = { result: { type: "object", value: { n: { type: "bigint", value: "7" } } } };
  const headers = { "content-type": TYPED };
  assert.deepEqual(await post("/queue/ack", { id, lock, ...typed }, { headers }), { ok: true });
  const end = (await waiting).body;
  assert.deepEqual([end.state, end.value], ["completed", { n: 7 }]);
  await until(() => seen.told.some(({ type }) => type === "completed"), "completed");
  const told = seen.told.map((event) => [event.type, event.attempts]);
  assert.deepEqual(told, [
    ["enqueued", undefined],
    ["progress", 1],
    ["progress", 1],
    ["completed", 1],
  ]);

  // The lock is gone: refused by name, and nothing is stored.
  for (const [path, more] of [
    ["/queue/progress", { value: { percent: 5 } }],
    ["/queue/ack", { result: "late" }],
  ]) {
    const lost = await post(path, { id, lock, ...more });
    assert.deepEqual([lost.ok, lost.errorName], [false, "LockExpired"], path);
    assert.match(lost.error, /lock .* does not hold any more/);
  }
  assert.equal((await get(`/queue/messages/${id}/progress`)).body.value.percent, 90);
  assert.deepEqual((await result(id)).body.value, { n: 7 });

  // Without a result, and with null.
  for (const [more, expected] of [
    [{}, undefined],
    [{ result: null }, null],
  ]) {
    const next = await enqueue("next");
    const taken = await poll();
    assert.deepEqual(await post("/queue/ack", { id: next, lock: taken.lock, ...more }), {
      ok: true,
    });
    const { state, value: kept } = (await result(next)).body;
    assert.deepEqual([state, kept], ["completed", expected]);
  }
});

test("a result of a message without keepResult is not kept, its progress for an hour", async () => {
  const { call, kv, get, result } = await serveMail();
  const { id } = await kv.queue("mail").enqueue("plain");
  const { lock } = (await get("/queue/poll?lockDuration=60000")).body.message;
  const told = await call("POST", "/queue/progress", { body: { id, lock, value: 5 } });
  assert.deepEqual(told.body, { ok: true });
  assert.equal(await kv.queue("mail").progress(id), 5);
  const bytes = { type: "Uint8Array", value: "AAAA" };
  const refused = await call("POST", "/queue/ack", {
    body: { id, lock, result: bytes },
    headers: { "content-type": TYPED },
  });
  assert.equal(refused.status, 400);
  assert.match(refused.body.detail, /^result: /);
  const large = await call("POST", "/queue/progress", {
    body: { id, lock, value: "x".repeat(16 * 1024 * 1024 - 200) },
  });
  assert.equal(large.status, 413, "it has no room in an entry");
  const acked = await call("POST", "/queue/ack", { body: { id, lock, result: 1 } });
  assert.deepEqual(acked.body, { ok: true });
  assert.equal((await result(id)).status, 404);
});

test("events of a queue are followed, and go on behind the last one", async () => {
  const { server, kv, enqueue, handle } = await serveMail();
  const first = follow(server);
  await until(() => first.last !== "");
  const id = await enqueue({ n: 1 });
  // Of another queue, and of a message without keepResult.
  await kv.queue("other").enqueue(1, { keepResult: "1h" });
  await kv.queue("mail").enqueue("not kept", { backoffSchedule: [] });
  await handle(async (value, message) => {
    if (value === "not kept") throw new Error("no");
    await message.progress("half");
    return "done";
  }, 2);
  const about = (seen, type) => seen.told.find((event) => event.id === id && event.type === type);
  await until(() => about(first, "completed"), "completed");
  const types = first.told.filter((event) => event.id === id).map(({ type }) => type);
  assert.deepEqual([...types].sort(), ["completed", "enqueued", "progress", "started"]);
  assert.deepEqual(new Set(first.told.map((event) => event.id)), new Set([id]));
  const { at, versionstamp, ...completed } = about(first, "completed");
  assert.deepEqual(completed, { type: "completed", id, attempts: 1, value: "done" });
  assert.ok(timeOf({ at }));
  assert.equal(about(first, "progress").value, "half");
  const stamps = first.told.map((event) => event.versionstamp);
  assert.deepEqual(stamps, [...stamps].sort());
  first.source.close();

  const dead = await enqueue({ n: 2 });
  await handle(async () => {
    throw new Error("no stamp");
  }, 1);
  // A client that connects again misses nothing, and gets nothing twice.
  for (const [more, headers] of [
    [`&since=${versionstamp}`, {}],
    ["", { "last-event-id": versionstamp }],
  ]) {
    const again = follow(server, more, headers);
    await until(() => again.told.some(({ type }) => type === "dead"), "dead");
    assert.deepEqual(
      again.told.filter((event) => event.id === id),
      [],
    );
    const end = again.told.find(({ type }) => type === "dead");
    assert.deepEqual([end.id, end.errorName, end.error], [dead, "Error", "no stamp"]);
    again.source.close();
  }
  const typed = follow(server, `&since=${versionstamp}`, {
    accept: `text/event-stream, ${TYPED}`,
  });
  const typedId = await enqueue({ n: 3 });
  await handle(async () => 7n, 1);
  await until(() => typed.told.some((event) => event.id === typedId && event.value !== undefined));
  const { value } = typed.told.find((event) => event.id === typedId && event.value !== undefined);
  assert.deepEqual(value, { type: "bigint", value: "7" });
});

test("events that are no longer known are a gap, and the client goes on behind it", async () => {
  const { server, kv, enqueue, call } = await serveMail();
  const { versionstamp } = await kv.set(["p"], 1);
  const id = await enqueue("lost");
  await call(
    "DELETE",
    `/keys?key=${encodeURIComponent(`["openkv:jobs","mail","${id}","enqueued"]`)}`,
  );
  const seen = follow(server, `&since=${versionstamp}`);
  await until(() => seen.gaps === 1, "a gap");
  const next = await enqueue("next");
  await until(() => seen.told.length > 0);
  assert.deepEqual(
    seen.told.map((event) => [event.id, event.type]),
    [[next, "enqueued"]],
  );
});

test("an entry that a caller has stored in place of a result is an error there, and no event", async () => {
  const { server, kv, result, enqueue, get } = await serveMail();
  const seen = follow(server);
  await until(() => seen.last !== "");
  await kv.set(["openkv:jobs", "mail", "77", "completed"], "mine");
  await kv.set(["openkv:jobs", "mail", "77", "progress"], { at: 5 });
  await kv.set(["openkv:jobs", "mail", "77", "unknown"], { at: new Date() });
  await kv.set(["openkv:jobs", "mail", 77, "completed"], { at: new Date() });
  for (const refused of [await result(77), await get("/queue/messages/77/progress")])
    assert.deepEqual([refused.status, refused.body.code], [422, "CORRUPT"]);
  const id = await enqueue(1);
  await until(() => seen.told.length > 0);
  assert.deepEqual(
    seen.told.map((event) => [event.id, event.type]),
    [[id, "enqueued"]],
  );
});

test("the limits of a queue are read, and messages are listed with their groups", async () => {
  const { call, get } = await serveMail();
  const none = { concurrency: null, rate: null };
  assert.deepEqual((await get("/queue/limits")).body, { ...none, group: none });
  const rule = { rate: { limit: 5, per: "1m" }, group: { concurrency: 2 } };
  await call("PUT", "/queue/limits?queue=mail", { body: rule });
  const { status, body } = await get("/queue/limits", { token: readToken });
  assert.equal(status, 200);
  assert.deepEqual(body, {
    concurrency: null,
    rate: { limit: 5, per: 60_000, algorithm: "fixed" },
    group: { concurrency: 2, rate: null },
  });
  for (const more of [{}, { group: "ada" }])
    await call("POST", "/queue/enqueue?queue=mail", { body: { value: 1, ...more } });
  const { messages } = (await get("/queue/messages")).body;
  assert.deepEqual(
    messages.map(({ group }) => group),
    [undefined, "ada"],
  );
});

test("requests that are wrong are refused", async () => {
  const { call, get, enqueue } = await serveMail();
  const id = await enqueue(1);
  for (const [path, status, named] of [
    [`/queue/messages/${id}/result?queue=mail&wait=60001`, 400, /wait must be from 0 to 60000 ms/],
    [`/queue/messages/${id}/result?queue=mail&wait=soon`, 400, /wait must be a duration/],
    [`/queue/messages/${id}/result?queue=mail&waits=1`, 400, /unknown parameter 'waits'/],
    [`/queue/messages/${id}/result`, 400, /only queues with a name have results and progress/],
    [`/queue/messages/${id}/progress`, 400, /only queues with a name/],
    [`/queue/messages/${id}/progress?queue=mail&wait=1`, 400, /unknown parameter 'wait'/],
    ["/queue/messages/x/result?queue=mail&wait=30s", 404, /id is a number/],
    ["/queue/messages/99999999999999999999/result?queue=mail&wait=30s", 404, /id is a number/],
    ["/queue/messages/1.5/progress?queue=mail", 404, /id is a number/],
    ["/queue/events", 400, /only queues with a name have events/],
    ["/queue/events?queue=mail&since=5", 400, /since must be a versionstamp/],
    [`/queue/events?queue=${"q".repeat(257)}`, 413, /queue: too long/],
    ["/queue/limits", 400, /only queues with a name have limits/],
  ]) {
    const refused = await call("GET", path);
    const text = JSON.stringify(refused.body);
    assert.deepEqual([refused.status, named.test(text)], [status, true], `${path}: ${text}`);
    assert.equal((await call("GET", path, { token: null })).status, 401, path);
  }
  const form = await get(`/queue/messages/${id}/result`, { headers: { accept: "text/html" } });
  assert.equal(form.status, 406);
  assert.equal(
    (await call("POST", "/queue/events?queue=mail", { token: accessToken })).status,
    405,
  );
});
