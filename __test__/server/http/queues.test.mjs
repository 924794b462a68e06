// Duty: queues over the HTTP API: messages from enqueue to their end, and dead letters.

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { test } from "node:test";
import { freshPath } from "../../api/databases.mjs";
import { connect } from "../serving.mjs";
import { TYPED, readToken, serveApi } from "./calling.mjs";

test("a message is enqueued, taken and acknowledged", async () => {
  const { server, call } = await serveApi();
  const enqueue = (body) => call("POST", "/queue/enqueue?queue=mail", { body });
  const { body: first } = await enqueue({ value: { to: "Ada" }, deduplicationKey: "k" });
  assert.equal(first.ok, true);
  const { body: second } = await enqueue({ value: 2, deduplicationKey: "k" });
  assert.deepEqual([second.id, second.deduplicated], [first.id, true]);
  const stats = async () => (await call("GET", "/queue/stats?queue=mail")).body;
  assert.deepEqual(await stats(), {
    pending: 1,
    delayed: 0,
    processing: 0,
    dead: 0,
    paused: false,
  });
  const poll = async (more = "") =>
    (await call("GET", `/queue/poll?queue=mail&lockDuration=60000${more}`)).body.message;
  const message = await poll();
  assert.deepEqual([message.id, message.value, message.attempts], [first.id, { to: "Ada" }, 1]);
  assert.equal(await poll(), null);
  assert.equal((await stats()).processing, 1);
  const { id, lock } = message;
  const extended = await call("POST", "/queue/extend", { body: { id, lock, lockDuration: 90000 } });
  assert.deepEqual(extended.body, { ok: true });
  assert.deepEqual((await call("POST", "/queue/ack", { body: { id, lock } })).body, { ok: true });
  const late = (await call("POST", "/queue/ack", { body: { id, lock } })).body;
  assert.deepEqual([late.ok, late.errorName], [false, "LockExpired"]);
  // A poll that waits gets the message of the JavaScript API.
  const waiting = poll("&wait=30000");
  const kv = await connect(server);
  await kv.queue("mail").enqueue(5n);
  assert.equal((await waiting).value, 5);
});

test("values of messages are typed if the client asks for it", async () => {
  const { call } = await serveApi();
  const value = { type: "Set", value: [{ type: "bigint", value: "5" }] };
  await call("POST", "/queue/enqueue", { body: { value }, type: TYPED });
  const { body } = await call("GET", "/queue/poll", { headers: { accept: TYPED } });
  assert.deepEqual(body.message.value, value);
});

test("messages are looked at and not taken", async () => {
  const { call } = await serveApi();
  const enqueue = (value, more) =>
    call("POST", "/queue/enqueue?queue=mail", { body: { value, ...more } });
  await enqueue("first");
  await enqueue({ type: "Set", value: [] }, { delay: 3_600_000 });
  await call("GET", "/queue/poll?queue=mail&lockDuration=60000");
  await enqueue("urgent", { priority: 9 });
  const list = async (more = "") => (await call("GET", `/queue/messages?queue=mail${more}`)).body;
  const first = await list("&limit=2");
  assert.deepEqual(
    first.messages.map(({ value, state, priority, attempts, lockedUntil }) => [
      ...[value, state, priority, attempts, lockedUntil],
    ]),
    [
      ["urgent", "pending", 9, 0, null],
      [{ type: "Set", value: [] }, "delayed", 0, 0, null],
    ],
  );
  assert.equal(first.hasMore, true);
  const { messages, cursor } = await list(`&limit=2&cursor=${first.cursor}`);
  assert.deepEqual([messages.map(({ value }) => value), cursor], [["first"], null]);
  const [{ state, attempts, lockedUntil, dueAt }] = messages;
  assert.deepEqual([state, attempts], ["processing", 1]);
  assert.ok(Date.parse(lockedUntil) - Date.parse(dueAt) >= 60_000);
  assert.deepEqual((await list("&state=processing")).messages, messages);
  assert.deepEqual((await list("&state=pending")).messages, first.messages.slice(0, 1));
  const typed = await call("GET", "/queue/messages?queue=mail&state=pending", {
    headers: { accept: TYPED },
  });
  assert.deepEqual(typed.body.messages[0].value, { type: "string", value: "urgent" });
  for (const wrong of ["state=dead", "cursor=1-2", "limit=0", "after=1"])
    assert.equal((await call("GET", `/queue/messages?${wrong}`)).status, 400, wrong);
  assert.equal((await call("GET", "/queue/poll?queue=mail")).body.message.value, "urgent");
});

test("a message is deleted while it waits, and not while a consumer has it", async () => {
  const { call } = await serveApi();
  const enqueue = async (value, more) =>
    (await call("POST", "/queue/enqueue?queue=mail", { body: { value, ...more } })).body.id;
  const remove = (id, queue = "mail") => call("DELETE", `/queue/messages/${id}?queue=${queue}`);
  const taken = await enqueue("taken");
  const { message } = (await call("GET", "/queue/poll?queue=mail&lockDuration=60000")).body;
  const [due, later] = [await enqueue("due"), await enqueue("later", { delay: 3_600_000 })];
  const held = await remove(taken);
  assert.deepEqual([held.status, held.body.code], [409, "CONFLICT"]);
  assert.equal((await remove(due, "other")).status, 404);
  assert.equal((await remove("x")).status, 404);
  for (const id of [due, later]) {
    assert.deepEqual((await remove(id)).body, { deleted: 1 });
    const again = await remove(id);
    assert.deepEqual([again.status, again.body.code], [404, "NOT_FOUND"]);
  }
  const stats = (await call("GET", "/queue/stats?queue=mail")).body;
  assert.deepEqual(stats, { pending: 0, delayed: 0, processing: 1, dead: 0, paused: false });
  const { id, lock } = message;
  assert.deepEqual((await call("POST", "/queue/ack", { body: { id, lock } })).body, { ok: true });
});

test("Deno's own messages of a file that Deno has made are not looked at", async () => {
  const path = freshPath();
  copyFileSync(new URL("../../../tests/vectors/files/deno.sqlite3", import.meta.url), path);
  const { call } = await serveApi({ path });
  const refused = await call("GET", "/queue/messages");
  assert.equal(refused.body.code, "UNSUPPORTED");
  assert.match(refused.body.detail, /^peek: /);
  const kept = await call("DELETE", "/queue/messages/1");
  assert.deepEqual([kept.status, kept.body.code], [422, "UNSUPPORTED"]);
  await call("POST", "/queue/enqueue?queue=mail", { body: { value: 1 } });
  const { messages } = (await call("GET", "/queue/messages?queue=mail")).body;
  assert.deepEqual(
    messages.map(({ value }) => value),
    [1],
  );
});

test("a message without a retry left is a dead letter, which is read, requeued and deleted", async () => {
  const { call } = await serveApi();
  const queue = "queue=mail";
  const die = async (value) => {
    const body = { value, backoffSchedule: [] };
    const { id } = (await call("POST", `/queue/enqueue?${queue}`, { body })).body;
    const { message } = (await call("GET", `/queue/poll?${queue}`)).body;
    assert.equal(message.id, id);
    const end = { id, lock: message.lock, error: 'no "luck"' };
    assert.deepEqual((await call("POST", "/queue/nack", { body: end })).body, { ok: true });
    return id;
  };
  const ids = [];
  for (const value of ["a", "b", "c"]) ids.push(await die(value));
  const page = async (more) => (await call("GET", `/queue/dlq?${queue}&limit=2${more}`)).body;
  const first = await page("");
  assert.deepEqual(
    first.messages.map(({ id, value, error }) => [id, value, error]),
    [
      [ids[0], "a", 'no "luck"'],
      [ids[1], "b", 'no "luck"'],
    ],
  );
  assert.equal(first.hasMore, true);
  const rest = await page(`&cursor=${first.cursor}`);
  assert.deepEqual([rest.messages.map(({ id }) => id), rest.cursor], [[ids[2]], null]);
  const letter = `/queue/dlq/${ids[0]}`;
  assert.equal((await call("GET", `${letter}?${queue}`)).body.value, "a");
  assert.equal((await call("GET", `${letter}?queue=other`)).status, 404);
  assert.deepEqual((await call("POST", `${letter}/requeue?${queue}`)).body, { ok: true });
  assert.equal((await call("POST", `${letter}/requeue?${queue}`)).status, 404);
  assert.equal((await call("GET", `/queue/poll?${queue}`)).body.message.value, "a");
  const second = `/queue/dlq/${ids[1]}?${queue}`;
  assert.deepEqual((await call("DELETE", second)).body, { deleted: 1 });
  assert.equal((await call("DELETE", second)).status, 404);
  assert.deepEqual((await call("DELETE", `/queue/dlq?${queue}`)).body, { deleted: 1 });
  assert.deepEqual((await page("")).messages, []);
});

test("all dead letters are requeued, at most 512 by one request", async () => {
  const { call, server } = await serveApi();
  const kv = await connect(server);
  const mail = kv.queue("mail");
  const COUNT = 600;
  const enqueueing = kv.atomic();
  for (let n = 0; n < COUNT; n++) enqueueing.enqueue(n, { queue: "mail", backoffSchedule: [] });
  await enqueueing.commit();
  await kv.queue("other").enqueue(1, { backoffSchedule: [] });
  await (await kv.queue("other").receive()).nack();
  const stop = new AbortController();
  let left = COUNT;
  const fail = () => {
    if (--left === 0) stop.abort();
    throw new Error("no");
  };
  await mail.listen(fail, { concurrency: 100, signal: stop.signal, onError: () => {} });
  const requeue = async () => (await call("POST", "/queue/dlq/requeue?queue=mail")).body;
  assert.deepEqual(await requeue(), { requeued: 512, left: COUNT - 512 });
  assert.deepEqual(await requeue(), { requeued: COUNT - 512, left: 0 });
  assert.deepEqual(await requeue(), { requeued: 0, left: 0 });
  const { pending, dead } = await mail.stats();
  assert.deepEqual([pending, dead], [COUNT, 0]);
  assert.equal((await kv.queue("other").stats()).dead, 1);
  assert.equal((await mail.receive()).value, 0, "in the order of their deaths");
});

test("queues need the right to write, and their requests are checked", async () => {
  const { call } = await serveApi();
  for (const [method, path, body] of [
    ["POST", "/queue/enqueue", { value: 1 }],
    ["GET", "/queue/poll"],
    ["POST", "/queue/ack", { id: "1", lock: "1" }],
    ["POST", "/queue/nack", { id: "1", lock: "1" }],
    ["POST", "/queue/extend", { id: "1", lock: "1" }],
    ["DELETE", "/queue/messages/1"],
    ["DELETE", "/queue/dlq"],
    ["DELETE", "/queue/dlq/1"],
    ["POST", "/queue/dlq/1/requeue"],
    ["POST", "/queue/dlq/requeue"],
    ["POST", "/queue/progress", { id: "1", lock: "1", value: 1 }],
  ]) {
    const refused = await call(method, path, { body, token: readToken });
    assert.deepEqual([refused.status, refused.body.code], [403, "DENIED"], path);
    assert.equal((await call(method, path, { body, token: null })).status, 401, path);
  }
  for (const [method, path, body] of [
    ["POST", "/queue/enqueue", { value: 1, priority: 10 }],
    ["POST", "/queue/enqueue", {}],
    ["GET", "/queue/poll?lockDuration=99"],
    ["GET", "/queue/poll?wait=60001"],
    ["POST", "/queue/ack", { id: 1, lock: "1" }],
    ["POST", "/queue/extend", { id: "1", lock: "x" }],
    ["POST", "/queue/progress", { id: "1", lock: "1" }],
    ["POST", "/queue/dlq/requeue?limit=5"],
    ["GET", "/queue/dlq?cursor=1"],
  ]) {
    assert.equal((await call(method, path, { body })).status, 400, path);
  }
  for (const id of ["x", "-", "1.5", "99999999999999999999"]) {
    assert.equal((await call("GET", `/queue/dlq/${id}`)).status, 404, id);
    assert.equal((await call("DELETE", `/queue/dlq/${id}`)).status, 404, id);
    assert.equal((await call("POST", `/queue/dlq/${id}/requeue`)).status, 404, id);
    assert.equal((await call("DELETE", `/queue/messages/${id}`)).status, 404, id);
  }
  const long = await call("GET", `/queue/stats?queue=${"q".repeat(257)}`);
  assert.equal(long.status, 413);
});

test("messages of an atomic operation have all options, and the answer names them", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const later = Date.now() + 3_600_000;
  const message = (more) => ({ type: "enqueue", queue: "mail", value: "m", ...more });
  const { body } = await call("POST", "/atomic", {
    body: {
      mutations: [
        message({ deduplicationKey: "k", priority: 5, deadRetention: 60_000 }),
        message({ deduplicationKey: "k" }),
        message({ at: later }),
        message({ delay: 1000, backoffSchedule: [] }),
      ],
    },
  });
  assert.equal(body.ok, true, JSON.stringify(body));
  assert.deepEqual(
    body.messages.map(({ deduplicated }) => deduplicated),
    [false, true, false, false],
  );
  assert.equal(body.messages[1].id, body.messages[0].id);
  const { pending, delayed } = await kv.queue("mail").stats();
  assert.deepEqual([pending, delayed], [1, 2]);
  const undelivered = {
    backoffSchedule: [],
    keysIfUndelivered: [["dead", { type: "bigint", value: "1" }]],
  };
  const dies = { type: "enqueue", value: "lost", ...undelivered };
  await call("POST", "/atomic", { body: { mutations: [dies] } });
  const { message: taken } = (await call("GET", "/queue/poll")).body;
  const { id, lock } = taken;
  await call("POST", "/queue/nack", { body: { id, lock } });
  assert.equal((await kv.get(["dead", 1n])).value, "lost");
  for (const [bad, fault] of [
    [message({ at: later, delay: 1 }), /at: not together/],
    [message({ priority: 10 }), /priority/i],
    [message({ keysIfUndelivered: [[null]] }), /keysIfUndelivered\[0\]: key\[0\]/],
    [{ type: "set", key: ["a"], value: 1, priority: 1 }, /for the type enqueue/],
  ]) {
    const refused = await call("POST", "/atomic", { body: { mutations: [bad] } });
    assert.equal(refused.status, 400);
    assert.match(refused.body.detail, fault);
  }
});

// The message vanished after its last nack, although docs/http.md promised a dead letter.
test("messages of the queue without a name are dead letters too, and those of kv.enqueue are not", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const die = async () => {
    const { message } = (await call("GET", "/queue/poll?wait=10000")).body;
    const { id, lock } = message;
    assert.equal(
      (await call("POST", "/queue/nack", { body: { id, lock, error: "why" } })).body.ok,
      true,
    );
  };
  const dead = async () => (await call("GET", "/queue/dlq")).body.messages;
  await call("POST", "/queue/enqueue", { body: { value: 1, backoffSchedule: [] } });
  await die();
  const [letter] = await dead();
  assert.deepEqual([letter.value, letter.error, letter.attempts], [1, "why", 1]);
  await call("POST", `/queue/dlq/${letter.id}/requeue`);
  await die();
  assert.equal((await dead()).length, 1);
  const mutations = [{ type: "enqueue", value: 2, backoffSchedule: [] }];
  await call("POST", "/atomic", { body: { mutations } });
  await die();
  await kv.enqueue(3, { backoffSchedule: [] });
  await die();
  assert.deepEqual(
    (await dead()).map(({ value }) => value),
    [1, 2],
  );
  assert.equal((await call("GET", "/queue/stats")).body.dead, 2);
});

test("in Deno's own files messages of Deno's queue leave no dead letters", async () => {
  const path = freshPath();
  copyFileSync(new URL("../../../tests/vectors/files/deno.sqlite3", import.meta.url), path);
  const { call } = await serveApi({ path });
  for (let message; ; ) {
    ({ message } = (await call("GET", "/queue/poll")).body);
    if (message === null) break;
    await call("POST", "/queue/ack", { body: { id: message.id, lock: message.lock } });
  }
  await call("POST", "/queue/enqueue", { body: { value: 1, backoffSchedule: [] } });
  const { message } = (await call("GET", "/queue/poll?wait=10000")).body;
  await call("POST", "/queue/nack", { body: { id: message.id, lock: message.lock } });
  assert.equal((await call("GET", "/queue/stats")).body.dead, 0);
  assert.deepEqual((await call("GET", "/queue/dlq")).body.messages, []);
});

test("schedules are set, listed and removed", async () => {
  const { call } = await serveApi();
  const at = (name) => `/queue/schedules/${name}?queue=mail`;
  const daily = { cron: "0 8 * * MON-FRI", timeZone: "Europe/Berlin" };
  const set = async (name, body) => await call("PUT", at(name), { body });
  assert.deepEqual((await set("a%20b", { value: 1, ...daily })).body, { changed: true });
  assert.deepEqual((await set("a%20b", { value: 1, ...daily })).body, { changed: false });
  assert.equal((await set("often", { value: 2, every: 20, priority: 3 })).body.changed, true);
  const list = async (more = "") => (await call("GET", `/queue/schedules?queue=mail${more}`)).body;
  const { schedules, cursor, hasMore } = await list();
  assert.deepEqual([cursor, hasMore], [null, false]);
  const [often, berlin] = schedules;
  assert.deepEqual(
    [often.name, often.every, often.offset, often.missed, often.priority, often.value],
    ["often", 20, 0, "once", 3, 2],
  );
  assert.deepEqual([berlin.name, berlin.cron, berlin.timeZone], ["a b", ...Object.values(daily)]);
  assert.ok(Date.parse(berlin.nextAt) > Date.now());
  const first = await list("&limit=1");
  assert.equal(first.hasMore, true);
  const rest = await list(`&cursor=${encodeURIComponent(first.cursor)}`);
  assert.ok(rest.schedules.some(({ name }) => name === "a b"));
  const polled = await call("GET", "/queue/poll?queue=mail&wait=30000");
  assert.equal(polled.body.message.value, 2);
  for (const [body, text] of [
    [{ value: 1, cron: "0 0 30 2 *" }, /never fires/],
    [{ value: 1, cron: "* * * * *", timeZone: "Mars/Base" }, /timeZone/],
    [{ value: 1, every: 9 }, /every must be from 10/],
    [{ value: 1 }, /either cron or every/],
    [{ value: 1, every: 20, missed: "some" }, /missed/],
    [{ value: 1, every: 20, timeout: 0 }, /timeout/],
  ]) {
    const refused = await set("bad", body);
    assert.equal(refused.status, 400, JSON.stringify(refused.body));
    assert.match(refused.body.detail, text);
  }
  assert.equal(
    (await call("PUT", "/queue/schedules/s", { body: { value: 1, every: 20 } })).status,
    400,
  );
  assert.deepEqual((await call("DELETE", at("often"))).body, { changed: true });
  assert.equal((await call("DELETE", at("often"))).status, 404);
});

test("a queue is paused, resumed and drained", async () => {
  const { call } = await serveApi();
  const post = async (path, body) => (await call("POST", `/queue/${path}`, { body })).body;
  const poll = async () => (await call("GET", "/queue/poll?queue=mail")).body.message;
  await post("enqueue?queue=mail", { value: 1 });
  await post("enqueue?queue=mail", { value: 2, delay: 3_600_000 });
  assert.deepEqual(await post("pause?queue=mail"), { ok: true });
  assert.equal(await poll(), null);
  assert.equal((await call("GET", "/queue/stats?queue=mail")).body.paused, true);
  assert.deepEqual(await post("drain?queue=mail"), { deleted: 1 });
  assert.deepEqual(await post("drain?queue=mail&delayed=true"), { deleted: 1 });
  await post("enqueue?queue=mail", { value: 3 });
  assert.deepEqual(await post("resume?queue=mail"), { ok: true });
  assert.equal((await poll()).value, 3);
  for (const path of ["pause?queue=%01paused", "drain?delayed=maybe", "pause?name=mail"])
    assert.equal((await call("POST", `/queue/${path}`)).status, 400, path);
});

test("a message is cancelled, and what is known of it is kept", async () => {
  const { call, server } = await serveApi();
  const { body } = await call("POST", "/queue/enqueue?queue=mail", {
    body: { value: { type: "a" }, keepResult: 3_600_000 },
  });
  const cancel = (id, queue = "mail") =>
    call("POST", `/queue/messages/${id}/cancel?queue=${queue}`);
  assert.equal((await cancel(body.id, "other")).status, 404);
  const { message } = (await call("GET", "/queue/poll?queue=mail")).body;
  assert.deepEqual(message.value, { type: "a" }, "the value alone");
  assert.deepEqual((await cancel(body.id)).body, { ok: true });
  assert.equal((await cancel(body.id)).status, 404);
  const { id, lock } = message;
  assert.equal((await call("POST", "/queue/ack", { body: { id, lock } })).body.ok, false);
  const kv = await connect(server);
  assert.equal((await kv.queue("mail").result(body.id)).state, "cancelled");
  const atomic = await call("POST", "/atomic", {
    body: {
      checks: [],
      mutations: [{ type: "enqueue", value: "b", queue: "mail", keepResult: 60_000 }],
    },
  });
  assert.equal(atomic.status, 200, JSON.stringify(atomic.body));
  const stop = new AbortController();
  const listening = kv.queue("mail").listen(() => stop.abort() ?? "done", { signal: stop.signal });
  await listening;
  const key = (id) => encodeURIComponent(`["openkv:jobs","mail","${id}","completed"]`);
  const { value } = (await call("GET", `/keys?key=${key(Number(body.id) + 1)}`)).body;
  assert.equal(value.value, "done");
  for (const keepResult of [0, 1e16]) {
    const wrong = await call("POST", "/queue/enqueue?queue=mail", {
      body: { value: 1, keepResult },
    });
    assert.equal(wrong.status, 400);
  }
  const unnamed = await call("POST", "/queue/enqueue", { body: { value: 1, keepResult: 5 } });
  assert.match(unnamed.body.detail, /keepResult: name a queue/);
});
