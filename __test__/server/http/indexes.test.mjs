// Duty: value indexes over the HTTP API: their routes, lists in their order, explanations; and that the routes of
// the HTTP API and of KeyVal read no more than an index names.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { openKv } from "../../../index.mjs";
import { until } from "../../kit/time.mjs";
import { connect, freshPath } from "../serving.mjs";
import { caller, readToken, serveApi } from "./calling.mjs";

const AGE = { type: "value", prefix: ["u"], on: "age", name: "age" };

async function filled() {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const all = kv.atomic();
  for (let i = 0; i < 25; i++) all.set(["u", i], { age: 40 - i, even: i % 2 === 0 });
  await all.commit();
  return { server, call, kv };
}

const ids = ({ entries }) => entries.map(({ key }) => key[1]);

test("indexes of both types are created, listed and dropped", async () => {
  const { call, kv } = await filled();
  const create = (body) => call("POST", "/indexes", { body });
  const { status, body: made } = await create(AGE);
  assert.equal(status, 200);
  assert.deepEqual(
    [made.type, made.name, made.on],
    ["value", "age", [{ path: "age", order: "asc" }]],
  );
  // Two paths, and not one with its order.
  const { body: two } = await create({
    type: "value",
    prefix: ["u"],
    on: ["age", "desc"],
    name: "two",
  });
  assert.deepEqual(
    two.on.map(({ path }) => path),
    ["age", "desc"],
  );
  const on = ["even", { path: "age", order: "desc" }];
  const { body: named } = await create({ type: "value", prefix: ["u"], on, sparse: true });
  const same = await kv.createIndex({ type: "value", prefix: ["u"], on, sparse: true });
  assert.equal(named.name, same.name);
  const { body: text } = await create({ prefix: ["u"], fields: ["name"] });
  assert.equal(text.type, "fulltext");
  const areReady = async () => (await kv.listIndexes()).every(({ state }) => state === "ready");
  await until(areReady, "all indexes are ready");
  const listed = (await call("GET", "/indexes")).body.indexes;
  const plain = (infos) => infos.map((info) => JSON.parse(JSON.stringify(info)));
  assert.deepEqual(listed, plain(await kv.listIndexes()));

  const unique = { type: "value", prefix: ["u"], on: ["even"], unique: true, name: "even" };
  assert.equal((await create(unique)).status, 200);
  await assert.rejects((await kv.createIndex({ ...unique, replace: false })).ready());
  const failed = (await call("GET", "/indexes")).body.indexes.find(({ name }) => name === "even");
  assert.equal(failed.state, "failed");
  assert.deepEqual(failed.failure, { key: ["u", 2], other: ["u", 0] });
  const drop = async (name) =>
    (await call("DELETE", `/indexes?name=${encodeURIComponent(name)}`)).body.ok;
  for (const { name } of (await call("GET", "/indexes")).body.indexes) assert.ok(await drop(name));
  assert.equal(await drop("age"), false);
  assert.deepEqual((await call("GET", "/indexes")).body, { indexes: [] });
});

test("mistakes of an index are named", async () => {
  const { call } = await filled();
  for (const [more, fault] of [
    [{ on: undefined }, /missing field `on`/],
    [{ on: 5 }, /on: a path, or an array of paths/],
    [{ on: [{ path: "a", order: "up" }] }, /on: a path, or an array of paths/],
    [{ on: [] }, /must name 1 to 8 paths: 0 given/],
    [{ on: ["a", "a"] }, /names 'a' twice/],
    [{ fields: ["a"] }, /of a full-text index: give on/],
    [{ type: "values" }, /unknown variant `values`/],
    [{ type: "fulltext" }, /of a value index: give type value/],
    [{ type: "fulltext", on: undefined }, /missing field `fields`/],
    [{ uniq: true }, /uniq/],
  ]) {
    const { status, body } = await call("POST", "/indexes", { body: { ...AGE, ...more } });
    assert.equal(status, 400, JSON.stringify(more));
    assert.match(body.detail, fault);
  }
  const other = { ...AGE, on: "even", replace: false };
  assert.equal((await call("POST", "/indexes", { body: AGE })).status, 200);
  assert.equal((await call("POST", "/indexes", { body: other })).status, 400);
  assert.equal((await call("POST", "/indexes", { body: AGE, token: readToken })).status, 403);
});

test("a list in the order of values has the pages and cursors of the JavaScript API", async () => {
  const { call, kv } = await filled();
  await (await kv.createIndex(AGE)).ready();
  for (const [orderBy, reverse] of [
    ["age", false],
    [{ age: "desc" }, false],
    [{ age: "desc" }, true],
  ]) {
    const seen = [];
    let cursor = null;
    do {
      const body = { prefix: ["u"], orderBy, reverse, limit: 10, ...(cursor && { cursor }) };
      const { body: page } = await call("POST", "/keys/list", { body });
      const theirs = await kv.paginate({ prefix: ["u"] }, { orderBy, reverse, limit: 10, cursor });
      assert.deepEqual([page.cursor, page.hasMore], [theirs.cursor, theirs.hasMore]);
      seen.push(...ids(page));
      ({ cursor } = page);
    } while (cursor !== null);
    const all = [...Array(25).keys()];
    assert.deepEqual(seen, (orderBy === "age") !== reverse || reverse ? all.toReversed() : all);
  }
  const listed = async (more) => {
    const body = { prefix: ["u"], orderBy: "age", limit: 3, ...more };
    return await call("POST", "/keys/paginate", { body });
  };
  const { body: even } = await listed({ where: { even: true }, keysOnly: true });
  assert.deepEqual([ids(even), "value" in even.entries[0]], [[24, 22, 20], false]);
  const unordered = { even: "asc", age: "asc" };
  assert.deepEqual(ids((await listed({ orderBy: unordered, sort: true })).body), [23, 21, 19]);
  for (const [more, fault] of [
    [{ orderBy: "even" }, /no index has the order of orderBy/],
    [{ orderBy: {} }, /orderBy names no path/],
    [{ orderBy: { age: "up" } }, /unknown variant `up`, expected `asc` or `desc`/],
    [{ orderBy: 5 }, /orderBy: a path, or an object/],
    [{ orderBy: undefined, sort: true }, /give orderBy/],
    [{ depth: 1 }, /orderBy and depth do not go together/],
    [{ cursor: "%" }, /invalid cursor/],
    [{ cursor: "AAAA" }, /the cursor is of another order/],
  ]) {
    const { status, body } = await listed(more);
    assert.equal(status, 400, JSON.stringify(more));
    assert.match(body.detail, fault);
  }
});

test("a list is explained as by the JavaScript API, with the right to read", async () => {
  const { call, kv } = await filled();
  await (await kv.createIndex(AGE)).ready();
  for (const options of [
    { where: { age: { $gte: 30 } }, limit: 5 },
    { where: { even: true }, limit: 1000 },
    { orderBy: { age: "desc" }, limit: 100 },
    { orderBy: "even", sort: true, reverse: true, limit: 2 },
    { depth: 1, limit: 100 },
  ]) {
    const body = { prefix: ["u"], ...options };
    const { status, body: explained } = await call("POST", "/keys/explain", {
      body,
      token: readToken,
    });
    assert.equal(status, 200, JSON.stringify(explained));
    assert.deepEqual(explained, await kv.explain({ prefix: ["u"] }, options));
  }
  const wrong = await call("POST", "/keys/explain", { body: { prefix: ["u"], orderBy: "even" } });
  assert.deepEqual([wrong.status, wrong.body.code], [400, "INVALID"]);
  assert.equal((await call("POST", "/keys/explain", { body: {}, token: "wrong" })).status, 401);
});

/** A file with an index of ages, and an entry that a scan cannot read: its bytes are changed behind the index. */
async function withUnreadable() {
  const path = freshPath();
  const kv = await openKv(path);
  const marker = "marker of this test";
  await (await kv.createIndex(AGE)).ready();
  for (let i = 0; i < 20; i++) await kv.set(["u", i], { about: i === 7 ? marker : "", age: i });
  await kv.checkpoint();
  await kv.close();
  const bytes = readFileSync(path);
  const at = bytes.indexOf(marker);
  assert.ok(at > 0 && bytes.indexOf(marker, at + 1) === -1);
  // The head of the text; there is no item that begins so.
  bytes[at - 1] = 0xff;
  writeFileSync(path, bytes);
  return path;
}

test("where on the routes of the HTTP API and of KeyVal reads what an index names", async () => {
  const { server, call } = await serveApi({ path: await withUnreadable() });
  const keyval = caller(`${server.url}/keyval/api`);
  const where = { age: { $gte: 15 } };
  const scanned = { other: 1 };
  const lists = [
    [call, "/keys/list", (body) => body.entries.length],
    [call, "/keys/paginate", (body) => body.entries.length],
    [call, "/keys/count", (body) => body.count],
    [keyval, "/keys/list", (body) => body.length],
  ];
  for (const [send, route, count] of lists) {
    const found = await send("POST", route, { body: { prefix: ["u"], where } });
    assert.equal(found.status, 200, `${route}: ${JSON.stringify(found.body)}`);
    assert.equal(count(found.body), 5, route);
    // A scan meets the entry that cannot be read.
    const failed = await send("POST", route, { body: { prefix: ["u"], where: scanned } });
    assert.match(JSON.stringify(failed.body), /could not be compared with where/, route);
  }
  const body = { prefix: ["u"], where };
  const { method, visited } = (await call("POST", "/keys/explain", { body })).body;
  assert.deepEqual([method, visited], ["index", 5]);
});
