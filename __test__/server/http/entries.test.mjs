// Duty: one entry over the HTTP API: keys, conditions, expiry, deletion.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../../index.mjs";
import { connect, freshPath } from "../serving.mjs";
import { readToken, serveApi } from "./calling.mjs";

test("an entry is written, read and deleted", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const put = await call("PUT", "/keys/users/123", { body: { name: "Ada" } });
  assert.equal(put.status, 200);
  assert.deepEqual(put.body, {
    ok: true,
    versionstamp: (await kv.get(["users", "123"])).versionstamp,
  });
  assert.equal(put.headers.get("etag"), `"${put.body.versionstamp}"`);
  const got = await call("GET", "/keys/users/123");
  assert.deepEqual(got.body, {
    key: ["users", "123"],
    value: { name: "Ada" },
    versionstamp: put.body.versionstamp,
  });
  assert.equal(got.headers.get("openkv-lossy"), null);
  const head = await call("HEAD", "/keys/users/123");
  assert.deepEqual([head.status, head.bytes.length], [200, 0]);
  assert.equal(head.headers.get("etag"), put.headers.get("etag"));
  assert.deepEqual((await call("DELETE", "/keys/users/123")).body, { deleted: 1 });
  const gone = await call("GET", "/keys/users/123");
  assert.equal(gone.headers.get("content-type"), "application/problem+json");
  assert.deepEqual([gone.status, gone.body.code], [404, "NOT_FOUND"]);
  assert.equal(gone.body.error, gone.body.detail);
});

test("a key of any parts is a literal in the query, and lossless in the answer", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const key = ["users", 42n, 7, Number.NaN, -0, true, new Uint8Array([1, 2])];
  await kv.set(key, 1);
  const found = (await call("GET", "/keys?prefix=users")).body.entries[0];
  assert.deepEqual(found.key, [
    "users",
    { type: "bigint", value: "42" },
    7,
    { type: "number", value: "NaN" },
    { type: "number", value: "-0" },
    true,
    { type: "Uint8Array", value: "AQI", byteLength: 2 },
  ]);
  const batch = await call("POST", "/keys/batch", { body: { keys: [found.key, ["none"]] } });
  assert.deepEqual(batch.body.entries[0], found);
  assert.deepEqual(batch.body.entries[1], { key: ["none"], value: null, versionstamp: null });
  const one = encodeURIComponent('["n",42n]');
  assert.equal((await call("PUT", `/keys?key=${one}`, { body: 5 })).status, 200);
  assert.equal((await kv.get(["n", 42n])).value, 5);
  assert.equal((await call("GET", `/keys?key=${one}`)).body.value, 5);
  assert.deepEqual((await call("DELETE", `/keys?key=${one}`)).body, { deleted: 1 });
  assert.equal((await call("GET", "/keys?key=%5B1")).status, 400);
});

test("If-Match and If-None-Match decide about reads and writes", async () => {
  const { call } = await serveApi();
  const create = () => call("PUT", "/keys/a", { body: 1, headers: { "if-none-match": "*" } });
  const first = await create();
  assert.equal(first.status, 200);
  const again = await create();
  assert.deepEqual([again.status, again.body.code], [412, "PRECONDITION_FAILED"]);
  assert.deepEqual(again.body.entry, {
    key: ["a"],
    value: 1,
    versionstamp: first.body.versionstamp,
  });
  const etag = first.headers.get("etag");
  const same = await call("GET", "/keys/a", { headers: { "if-none-match": etag } });
  assert.deepEqual([same.status, same.bytes.length, same.headers.get("etag")], [304, 0, etag]);
  const second = await call("PUT", "/keys/a", { body: 2, headers: { "if-match": etag } });
  assert.equal(second.status, 200);
  for (const method of ["PUT", "DELETE"]) {
    const options = { headers: { "if-match": etag } };
    const stale = await call(method, "/keys/a", {
      ...options,
      ...(method === "PUT" ? { body: 3 } : {}),
    });
    assert.deepEqual([stale.status, stale.body.entry.value], [412, 2], method);
  }
  assert.equal((await call("GET", "/keys/a", { headers: { "if-match": etag } })).status, 412);
  const any = await call("PUT", "/keys/none", { body: 1, headers: { "if-match": "*" } });
  assert.deepEqual([any.status, any.body.entry], [412, null]);
  assert.equal(
    (await call("PUT", "/keys/a", { body: 3, headers: { "if-match": "*" } })).status,
    200,
  );
  const either = { "if-match": `"0", ${second.headers.get("etag")}` };
  assert.equal((await call("PUT", "/keys/a", { body: 4, headers: either })).status, 412);
  for (const more of [{ query: "?descendants=true" }, { body: { where: {} } }]) {
    const { query = "", body } = more;
    const below = await call("DELETE", `/keys/a${query}`, { body, headers: { "if-match": "*" } });
    assert.equal(below.status, 400);
  }
  const one = await call("DELETE", "/keys/a", { headers: { "if-match": "*" } });
  assert.deepEqual(one.body, { deleted: 1 });
  assert.equal((await call("GET", "/keys/a", { headers: { "if-match": "a" } })).status, 400);
});

test("an entry expires", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  for (const name of ["expireIn", "expiresIn"]) {
    const before = Date.now();
    assert.equal((await call("PUT", `/keys/a?${name}=60000`, { body: 1 })).status, 200);
    const at = Date.parse((await call("GET", "/keys/a")).body.expireAt);
    assert.ok(at >= before + 60_000 && at <= Date.now() + 60_000, `${at}`);
    assert.equal((await kv.ttl(["a"])).expireAt.getTime(), at);
  }
  assert.equal((await call("PUT", "/keys/a?expireIn=0", { body: 1 })).status, 400);
  assert.equal((await call("PUT", "/keys/a?expireIn=x", { body: 1 })).status, 400);
});

// `curl -X DELETE …/keys/users` deleted every user.
test("a deletion takes the entry of the key, or also what is below it, or what matches", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const fill = async () => {
    for (const key of [["a"], ["a", 1], ["a", 1, 2], ["ab"]]) await kv.set(key, { n: key.length });
  };
  const remove = async (query, body) => (await call("DELETE", `/keys/a${query}`, { body })).body;
  await fill();
  assert.deepEqual(await remove(""), { deleted: 1 });
  assert.deepEqual(await remove("", { descendants: false }), { deleted: 0 });
  assert.deepEqual(await remove("", { where: { n: { $gte: 3 } } }), { deleted: 1 });
  assert.deepEqual(await remove("", { where: {}, descendants: false }), { deleted: 0 });
  assert.deepEqual(await remove("?descendants=true"), { deleted: 1 });
  assert.deepEqual((await call("GET", "/keys/count")).body, { count: 1 });
  await fill();
  assert.deepEqual(await remove("", { descendants: true }), { deleted: 3 });
  await fill();
  const batch = async (body) => (await call("POST", "/keys/delete-batch", { body })).body;
  const keys = [["a"], ["ab"]];
  assert.deepEqual(await batch({ keys }), { deleted: 2 });
  assert.deepEqual(await batch({ keys, where: { n: 2 } }), { deleted: 1 });
  await fill();
  assert.deepEqual(await batch({ keys, descendants: true }), { deleted: 4 });
  assert.equal((await call("DELETE", "/keys/a?exact=true")).status, 400);
  assert.equal((await call("DELETE", "/keys")).status, 400);
});

test("a deletion of no keys commits nothing, and a token tells its rights", async () => {
  const path = freshPath();
  const { server, call } = await serveApi({ path });
  const commits = async () => (await call("GET", "/metrics")).body.commits;
  const before = await commits();
  const none = await call("POST", "/keys/delete-batch", { body: { keys: [] } });
  assert.deepEqual([none.body, await commits()], [{ deleted: 0 }, before]);
  assert.deepEqual((await call("GET", "/rights")).body, { write: true });
  assert.deepEqual((await call("GET", "/rights", { token: readToken })).body, { write: false });
  await server.close();
  const still = await serveApi({ path, readonly: true });
  assert.deepEqual((await still.call("GET", "/rights")).body, { write: false });
});

test("a text with slashes that is no literal is refused with the literals that could be meant", async () => {
  const { call } = await serveApi();
  for (const path of [
    "/keys?prefix=",
    "/keys?key=",
    "/keys/count?start=a&end=",
    "/watch/poll?keys=",
    "/export?prefix=",
  ]) {
    const { status, body } = await call("GET", `${path}users/12"3`);
    assert.equal(status, 400, path);
    assert.ok(body.detail.includes('["users","12\\"3"]'), body.detail);
    assert.ok(body.detail.includes('["users/12\\"3"]'), body.detail);
  }
  await call("PUT", `/keys?key=${encodeURIComponent('"a/b"')}`, { body: 1 });
  assert.deepEqual((await call("GET", `/keys?key=${encodeURIComponent('["a/b"]')}`)).body.key, [
    "a/b",
  ]);
});

test("an integer that a number would round is refused in values, keys and filters", async () => {
  const { call } = await serveApi();
  const large = "9007199254740993";
  for (const [method, path, body] of [
    ["PUT", "/keys/a", large],
    ["PUT", "/keys/a", `{"ids":[1,-${large}]}`],
    ["POST", "/keys/batch", `{"keys":[["a",${large}]]}`],
    ["POST", "/keys/list", `{"where":{"id":${large}}}`],
    ["POST", "/atomic", `{"mutations":[{"type":"sum","key":["a"],"value":${large}}]}`],
    ["POST", "/queue/enqueue", `{"value":${large}}`],
  ]) {
    const refused = await call(method, path, { body });
    assert.deepEqual([refused.status, refused.body.code], [400, "INVALID"], body);
    assert.match(
      refused.body.detail,
      /the integer at character \d+ has digits that a number cannot hold/,
    );
  }
  const line = `{"key":[{"type":"string","value":"a"}],"value":{"type":"number","value":${large}}}`;
  const imported = await call("POST", "/import", { body: line, type: "application/x-ndjson" });
  assert.deepEqual([imported.status, imported.body.line], [400, 1]);
  assert.equal((await call("PUT", "/keys/a", { body: "9007199254740992" })).status, 200);
  assert.equal((await call("GET", "/keys/a")).body.value, 2 ** 53);
});

test("a refused lifetime has its own name, and a missing key says how one is written", async () => {
  const { call } = await serveApi();
  assert.match(
    (await call("PUT", "/keys/a?expiresIn=0", { body: 1 })).body.detail,
    /^expiresIn must be/,
  );
  assert.match(
    (await call("PUT", "/keys/a?expireIn=0", { body: 1 })).body.detail,
    /^expireIn must be/,
  );
  const { status, body } = await call("GET", "/keys/");
  assert.equal(status, 404);
  assert.match(body.detail, /write \/keys\/users\/123 .* or \/keys\?key=\["users",123\]/);
});

test("a sum of two types that do not fit names both and what to write", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.set(["n"], 1);
  await kv.set(["u"], new KvU64(1n));
  const sum = async (key, value) =>
    (await call("POST", "/atomic", { body: { mutations: [{ type: "sum", key: [key], value }] } }))
      .body.detail;
  assert.match(
    await sum("u", 1),
    /it is a KvU64, and the operand is a number: give a bigint \(\{"type":"bigint","value":"1"\}\)/,
  );
  assert.match(
    await sum("n", { type: "bigint", value: "1" }),
    /it is a number, and the operand is a bigint: give a number \(1\)/,
  );
  await assert.rejects(
    kv.atomic().sum(["u"], 1).commit(),
    /it is a KvU64, and the operand is a number: give a bigint \(1n\)/,
  );
});
