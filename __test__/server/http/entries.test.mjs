// Duty: one entry over the HTTP API: keys, conditions, expiry, deletion.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../serving.mjs";
import { serveApi } from "./calling.mjs";

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
    const stale = await call(method, "/keys/a?exact=true".slice(0, method === "PUT" ? 7 : 18), {
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
  const below = await call("DELETE", "/keys/a", { headers: { "if-match": "*" } });
  assert.equal(below.status, 400);
  const exact = await call("DELETE", "/keys/a?exact=true", { headers: { "if-match": "*" } });
  assert.deepEqual(exact.body, { deleted: 1 });
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

test("a deletion takes what is below the key, or only it, or what matches", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const fill = async () => {
    for (const key of [["a"], ["a", 1], ["a", 1, 2], ["ab"]]) await kv.set(key, { n: key.length });
  };
  await fill();
  assert.deepEqual((await call("DELETE", "/keys/a?exact=true")).body, { deleted: 1 });
  assert.deepEqual((await call("DELETE", "/keys/a", { body: { exact: true } })).body, {
    deleted: 0,
  });
  const matching = await call("DELETE", "/keys/a", { body: { where: { n: { $gte: 3 } } } });
  assert.deepEqual(matching.body, { deleted: 1 });
  assert.deepEqual((await call("DELETE", "/keys/a")).body, { deleted: 1 });
  assert.deepEqual((await call("GET", "/keys/count")).body, { count: 1 });
  await fill();
  const keys = [["a"], ["ab"]];
  const some = await call("POST", "/keys/delete-batch", { body: { keys, exact: true } });
  assert.deepEqual(some.body, { deleted: 2 });
  await fill();
  assert.deepEqual((await call("POST", "/keys/delete-batch", { body: { keys } })).body, {
    deleted: 4,
  });
  assert.equal((await call("DELETE", "/keys")).status, 400);
});
