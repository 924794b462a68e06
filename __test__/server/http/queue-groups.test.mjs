// Duty: groups and limits of queues over the HTTP API, and durations as texts in its bodies and parameters.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../serving.mjs";
import { serveApi } from "./calling.mjs";

test("a queue gets limits, and its groups are listed, paused and drained", async () => {
  const { server, call } = await serveApi();
  const limits = (body) => call("PUT", "/queue/limits?queue=mail", { body });
  const rule = { concurrency: 5, group: { concurrency: 1, rate: { limit: 9, per: "1m" } } };
  assert.deepEqual((await limits(rule)).body, { changed: true });
  assert.deepEqual((await limits(rule)).body, { changed: false });
  for (const value of [1, 2]) {
    const body = { value, group: "ada" };
    assert.equal((await call("POST", "/queue/enqueue?queue=mail", { body })).status, 200);
  }
  const poll = async () =>
    (await call("GET", "/queue/poll?queue=mail&lockDuration=1m")).body.message;
  const message = await poll();
  assert.deepEqual([message.value, message.group], [1, "ada"]);
  assert.equal(await poll(), null, "one of the group runs");
  const { body } = await call("GET", "/queue/groups?queue=mail");
  assert.deepEqual(body, {
    limits: {
      concurrency: 5,
      rate: null,
      group: { concurrency: 1, rate: { limit: 9, per: 60_000, algorithm: "fixed" } },
    },
    groups: [{ name: "ada", pending: 1, delayed: 0, processing: 1, paused: false }],
    cursor: null,
    hasMore: false,
  });
  const kv = await connect(server);
  assert.deepEqual((await kv.queue("mail").limits()).concurrency, 5);
  const { id, lock } = message;
  await call("POST", "/queue/pause?queue=mail&group=ada");
  assert.deepEqual((await call("POST", "/queue/ack", { body: { id, lock } })).body, { ok: true });
  assert.equal(await poll(), null, "the group is paused");
  await call("POST", "/queue/resume?queue=mail&group=ada");
  const drained = await call("POST", "/queue/drain?queue=mail&group=ada");
  assert.deepEqual(drained.body, { deleted: 1 });
  for (const [bad, named] of [
    [{ concurrency: 0 }, /concurrency must be from 1/],
    [{ rate: { limit: 1, per: "soon" } }, /duration/],
    [{ rate: { limit: 1, per: 1, algorithm: "x" } }, /rate\.algorithm/],
    [{ group: { rate: { limit: 0, per: 1 } } }, /group\.rate\.limit/],
  ]) {
    const { status, body } = await limits(bad);
    assert.deepEqual([status, named.test(JSON.stringify(body))], [400, true], JSON.stringify(body));
  }
  assert.equal((await call("PUT", "/queue/limits", { body: rule })).status, 400);
  assert.equal((await call("POST", "/queue/pause?queue=mail&group=")).status, 400);
});

test("durations in bodies and parameters are ms or texts with units", async () => {
  const { call } = await serveApi();
  const mutations = [
    { type: "set", key: ["a"], value: 1, expireIn: "1h" },
    { type: "enqueue", value: 2, queue: "mail", delay: "5m", timeout: "30s", keepResult: "1h" },
  ];
  assert.equal((await call("POST", "/atomic", { body: { mutations } })).body.ok, true);
  const { body } = await call("GET", "/queue/messages?queue=mail");
  const [{ enqueuedAt, dueAt }] = body.messages;
  assert.equal(Date.parse(dueAt) - Date.parse(enqueuedAt), 300_000);
  const schedule = { value: 1, every: "1h30m", offset: "5m" };
  const put = await call("PUT", "/queue/schedules/s?queue=mail", { body: schedule });
  assert.deepEqual(put.body, { changed: true });
  const [{ every, offset }] = (await call("GET", "/queue/schedules?queue=mail")).body.schedules;
  assert.deepEqual([every, offset], [5_400_000, 300_000]);
  for (const [method, path, body, named] of [
    ["POST", "/queue/enqueue?queue=m", { value: 1, delay: "5" }, /\\"5m\\"/],
    ["POST", "/queue/enqueue?queue=m", { value: 1, delay: -1 }, /duration/],
    ["POST", "/queue/enqueue?queue=m", { value: 1, delay: 1.5 }, /duration/],
    ["POST", "/queue/enqueue?queue=m", { value: 1, timeout: "2d" }, /timeout: must be from 1/],
    ["POST", "/queue/enqueue?queue=m", { value: 1, group: "" }, /group must have 1 to 256 bytes/],
    ["POST", "/queue/enqueue", { value: 1, group: "a" }, /group: name a queue/],
    ["GET", "/queue/poll?lockDuration=soon", undefined, /lockDuration must be a duration/],
  ]) {
    const answer = await call(method, path, body && { body });
    const text = JSON.stringify(answer.body);
    assert.deepEqual([answer.status, named.test(text)], [400, true], text);
  }
});

test("a message runs once more after the run under way", async () => {
  const { call } = await serveApi();
  const again = { deduplicationKey: "k", deduplication: "again" };
  const enqueue = async (value) =>
    (await call("POST", "/queue/enqueue?queue=mail", { body: { value, ...again } })).body;
  const poll = async () => (await call("GET", "/queue/poll?queue=mail")).body.message;
  const first = await enqueue(1);
  const { id, lock } = await poll();
  const second = await enqueue(2);
  assert.deepEqual([second.deduplicated, second.id === first.id], [false, false]);
  assert.equal((await enqueue(3)).id, second.id);
  assert.equal(await poll(), null);
  await call("POST", "/queue/ack", { body: { id, lock } });
  assert.equal((await poll()).value, 2);
});
