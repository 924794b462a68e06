// Duty: lists, counts, batches and atomic operations over the HTTP API.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../../index.mjs";
import { connect } from "../serving.mjs";
import { serveApi } from "./calling.mjs";

test("pages of a list are those of the JavaScript API, with its cursors", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  for (let i = 0; i < 25; i++) await kv.set(["n", i], { i, even: i % 2 === 0 });
  for (const reverse of [false, true]) {
    const seen = [];
    let cursor = null;
    do {
      const query = `limit=10&reverse=${reverse}${cursor === null ? "" : `&cursor=${cursor}`}`;
      const { body } = await call("GET", `/keys?prefix=n&${query}`);
      const page = await kv.paginate({ prefix: ["n"] }, { limit: 10, cursor, reverse });
      assert.deepEqual([body.cursor, body.hasMore], [page.cursor, page.hasMore]);
      seen.push(...body.entries.map((entry) => entry.key[1]));
      ({ cursor } = body);
    } while (cursor !== null);
    const all = [...Array(25).keys()];
    assert.deepEqual(seen, reverse ? all.reverse() : all);
  }
  const where = { even: true };
  const body = { prefix: ["n"], start: ["n", 5], where, limit: 3, keysOnly: true };
  const listed = (await call("POST", "/keys/list", { body })).body;
  assert.deepEqual(
    listed.entries.map(({ key, value }) => [key[1], value]),
    [
      [6, undefined],
      [8, undefined],
      [10, undefined],
    ],
  );
  assert.equal(listed.hasMore, true);
  const rest = { ...body, cursor: listed.cursor };
  assert.equal((await call("POST", "/keys/paginate", { body: rest })).body.entries[0].key[1], 12);
  assert.deepEqual((await call("POST", "/keys/count", { body: { prefix: ["n"], where } })).body, {
    count: 13,
  });
  const range = `start=${encodeURIComponent('["n",1]')}&end=${encodeURIComponent('["n",4]')}`;
  assert.deepEqual((await call("GET", `/keys/count?${range}`)).body, { count: 3 });
  assert.equal((await call("GET", `/keys/paginate?${range}&limit=2`)).body.entries.length, 2);
  assert.equal((await call("GET", "/keys?cursor=%21")).status, 400);
  assert.equal((await call("GET", "/keys?start=a")).status, 400);
  assert.equal((await call("GET", "/keys?other=a")).status, 400);
});

test("a page of large values ends early and goes on", async () => {
  const { call } = await serveApi();
  const body = `"${"x".repeat(1_000_000)}"`;
  const key = (i) => encodeURIComponent(`[${i}]`);
  for (let i = 0; i < 12; i++) await call("PUT", `/keys?key=${key(i)}`, { body });
  const seen = [];
  let cursor = "";
  do {
    const { status, body } = await call("GET", `/keys?cursor=${cursor ?? ""}`);
    assert.equal(status, 200);
    seen.push(...body.entries.map((entry) => entry.key[0]));
    ({ cursor } = body);
  } while (cursor !== null);
  assert.deepEqual(seen, [...Array(12).keys()]);
});

test("depth shows the keys of a level", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  for (const key of [
    ["a", "b"],
    ["a", "b", "c"],
    ["a", "d"],
  ])
    await kv.set(key, 1);
  const { body } = await call("GET", "/keys?prefix=a&depth=1&keysOnly");
  assert.deepEqual(
    body.entries.map((entry) => entry.key),
    [
      ["a", "b"],
      ["a", "d"],
    ],
  );
  assert.deepEqual((await call("GET", "/keys/count?prefix=a&depth=1")).body, { count: 2 });
});

test("an atomic operation does all mutations, or says which checks failed", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.set(["sum"], new KvU64(5n));
  await kv.set(["list"], [2]);
  const u64 = (n) => ({ type: "KvU64", value: `${n}` });
  const atomic = (body) => call("POST", "/atomic", { body });
  const done = await atomic({
    checks: [{ key: ["a"], versionstamp: null }],
    mutations: [
      { type: "set", key: ["a"], value: { n: 1 }, expireIn: 60_000 },
      { type: "sum", key: ["sum"], value: u64(3) },
      { type: "sum", key: ["number"], value: 2 },
      { type: "max", key: ["bigint"], value: { type: "bigint", value: "7" } },
      { type: "append", key: ["list"], value: [3] },
      { type: "prepend", key: ["list"], value: [1] },
      { type: "delete", key: ["none"] },
      { type: "set", key: ["log", { type: "commitVersionstamp" }], value: 1 },
      { type: "set", key: ["id", { type: "uuidv7" }, 1], value: 1 },
      { type: "enqueue", queue: "mail", value: { to: "Ada" } },
    ],
  });
  assert.equal(done.body.ok, true, JSON.stringify(done.body));
  assert.equal((await kv.get(["sum"])).value.value, 8n);
  assert.equal((await kv.get(["number"])).value, 2);
  assert.equal((await kv.get(["bigint"])).value, 7n);
  assert.deepEqual((await kv.get(["list"])).value, [1, 2, 3]);
  assert.equal((await kv.get(["log", done.body.versionstamp])).value, 1);
  assert.equal((await kv.get(["id", done.body.uuids[0], 1])).value, 1);
  assert.match(done.body.uuids[0], /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal((await kv.queue("mail").stats()).pending, 1);
  const failed = await atomic({
    checks: [
      { key: ["number"], versionstamp: done.body.versionstamp },
      { key: ["a"], versionstamp: null },
    ],
    mutations: [{ type: "delete", key: ["number"] }],
  });
  assert.deepEqual([failed.status, failed.body], [200, { ok: false, failed: [1] }]);
  assert.equal((await kv.get(["number"])).value, 2);
  for (const mutation of [
    { type: "set", key: ["a"] },
    { type: "set", value: 1 },
    { type: "other", key: ["a"] },
    { type: "delete", key: ["a"], expireIn: 5 },
    { type: "sum", key: ["a"], value: "x" },
    { type: "append", key: ["a"], value: 1 },
    { type: "delete", key: ["a", { type: "uuidv7" }] },
    { type: "set", key: [{ type: "commitVersionstamp" }, 1], value: 1 },
    { type: "set", key: ["a"], value: 1, queue: "q" },
    { type: "enqueue", key: ["a"], value: 1 },
  ]) {
    const { status } = await atomic({ mutations: [mutation] });
    assert.equal(status, 400, JSON.stringify(mutation));
  }
  const sum = await atomic({ mutations: [{ type: "sum", key: ["list"], value: 1 }] });
  assert.equal(sum.status, 400);
});

test("a batch has at most a thousand keys", async () => {
  const { call } = await serveApi();
  const keys = (count) => Array.from({ length: count }, (_, i) => [i]);
  const batch = (count) => call("POST", "/keys/batch", { body: { keys: keys(count) } });
  assert.equal((await batch(1000)).body.entries.length, 1000);
  assert.equal((await batch(1001)).status, 413);
  assert.equal((await call("POST", "/keys/batch", { body: { keys: [[]] } })).status, 400);
});
