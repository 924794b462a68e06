// Duty: the versions of an entry over the HTTP API, and what a database without a history answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../../index.mjs";
import { connect, freshPath } from "../serving.mjs";
import { TYPED, readToken, serveApi } from "./calling.mjs";

const STAMP = /^[0-9a-f]{20}$/;

/** A server of a database that keeps a history, and a handle on it. */
async function withHistory() {
  const path = freshPath();
  await (await openKv(path, { history: "7d" })).close();
  const { server, call } = await serveApi({ path });
  return { call, kv: await connect(server) };
}

test("the versions of an entry are what kv.history has, in every form", async () => {
  const { call, kv } = await withHistory();
  const first = await kv.set(["price"], 100);
  await kv.set(["price"], { euro: 5n }, { expireIn: 3_600_000 });
  await kv.delete(["price"]);
  await kv.set(["other"], 1);
  const { status, body } = await call("GET", "/history?key=price", { token: readToken });
  assert.equal(status, 200);
  assert.deepEqual([body.cursor, body.hasMore], [null, false]);
  const known = [];
  for await (const version of kv.history(["price"])) known.push(version);
  assert.deepEqual(
    body.versions.map(({ type, versionstamp, committedAt, expireAt }) => [
      type,
      versionstamp,
      committedAt,
      expireAt,
    ]),
    known.map(({ type, versionstamp, committedAt, expireAt }) => [
      type,
      versionstamp,
      committedAt.toISOString(),
      expireAt?.toISOString() ?? null,
    ]),
  );
  assert.deepEqual(
    body.versions.map(({ type }) => type),
    ["delete", "set", "set"],
  );
  assert.deepEqual([body.versions[0].value, body.versions[2].value], [null, 100]);
  assert.equal(body.versions[2].versionstamp, first.versionstamp);
  const typed = await call("GET", "/history?key=price", { headers: { accept: TYPED } });
  assert.deepEqual(typed.body.versions[2].value, { type: "number", value: 100 });
  const cbor = { accept: "application/cbor" };
  const binary = await call("GET", "/history?key=price", { headers: cbor });
  assert.deepEqual([binary.status, binary.headers.get("content-type")], [200, "application/cbor"]);
});

test("pages follow each other by their cursors", async () => {
  const { call, kv } = await withHistory();
  for (let i = 0; i < 7; i++) await kv.set(["n", 1n], i);
  const key = encodeURIComponent('["n",1n]');
  const values = [];
  let cursor = "";
  do {
    const { status, body } = await call("GET", `/history?key=${key}&limit=3&cursor=${cursor}`);
    assert.equal(status, 200);
    assert.ok(body.versions.length <= 3);
    for (const { value, versionstamp } of body.versions) {
      assert.match(versionstamp, STAMP);
      values.push(value);
    }
    assert.equal(body.hasMore, body.cursor !== null);
    cursor = body.cursor ?? "";
  } while (cursor !== "");
  assert.deepEqual(values, [6, 5, 4, 3, 2, 1, 0]);
  assert.deepEqual((await call("GET", "/history?key=none")).body, {
    versions: [],
    cursor: null,
    hasMore: false,
  });
});

test("bad parameters name the parameter", async () => {
  const { call } = await withHistory();
  for (const [query, text] of [
    ["", /\?key=/],
    ["?key=%5B%5D", /no parts/],
    ["?key=a&limit=0", /limit must be from 1 to 100/],
    ["?key=a&limit=101", /limit must be from 1 to 100/],
    ["?key=a&limit=x", /limit/],
    ["?key=a&cursor=zz", /cursor must be a versionstamp/],
    ["?key=a&before=1", /unknown parameter 'before'/],
  ]) {
    const { status, body } = await call("GET", `/history${query}`);
    assert.equal(status, 400, query);
    assert.match(body.detail, text);
  }
  assert.equal((await call("GET", "/history?key=a", { token: "no" })).status, 401);
});

test("a database without a history says how it begins, and then has one", async () => {
  const path = freshPath();
  const { call } = await serveApi({ path });
  assert.equal((await call("PUT", "/keys/a", { body: 1 })).status, 200);
  const { status, body } = await call("GET", "/history?key=a");
  assert.deepEqual([status, body.code], [422, "UNSUPPORTED"]);
  assert.match(body.detail, /openKv\(path, \{ history: "7d" \}\)/);
  const kv = await openKv(path, { history: "7d" });
  await call("PUT", "/keys/a", { body: 2 });
  await kv.close();
  const values = (await call("GET", "/history?key=a")).body.versions.map(({ value }) => value);
  assert.deepEqual(values, [2, 1]);
});
