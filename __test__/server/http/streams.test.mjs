// Duty: export and import over the HTTP API, against those of the JavaScript API.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { request } from "node:http";
import { test } from "node:test";
import { KvU64, openKv } from "../../../index.mjs";
import { assertSame } from "../../codec/graph.mjs";
import { Random } from "../../property/random.mjs";
import { randomValue } from "../../property/values.mjs";
import { open } from "../../kit/server.mjs";
import { until } from "../../kit/time.mjs";
import { accessToken, adminToken, folder, start } from "../serving.mjs";
import { caller, readToken, serveApi } from "./calling.mjs";

const require = createRequire(import.meta.url);
const { exportChunks } = require("../../../build/interchange/export.js");
const { importLines } = require("../../../build/interchange/import.js");

const LINES = "application/x-ndjson";

/** A handle that accepts large values. */
const connect = (server, token = accessToken, path = "") =>
  open(server.url + path, { accessToken: token, limits: "wide" });

/** The export of the JavaScript API. */
async function exported(kv, options) {
  const chunks = [];
  for await (const { bytes } of exportChunks(kv, options)) chunks.push(bytes);
  return Buffer.concat(chunks).toString();
}

const line = (key, n = 1) =>
  `{"key":[{"type":"string","value":"${key}"}],"value":{"type":"number","value":${n}}}`;

test("an export has the bytes of the JavaScript API's, and an import brings them back", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  for (let seed = 0; seed < 300; seed++) await kv.set(["v", seed], randomValue(new Random(seed)));
  await kv.set(["b", 1n, true, -0, new Uint8Array([0, 1])], new Uint8Array(200_000).fill(7));
  await kv.set(["u"], new KvU64(5n), { expireIn: 3_600_000 });
  await kv.set(["large"], "é\n".repeat(1_000_000));
  const whole = await call("GET", "/export", { token: readToken });
  assert.equal(whole.status, 200);
  assert.equal(whole.headers.get("content-type"), LINES);
  assert.equal(whole.bytes.toString(), await exported(kv));
  const part = await call("GET", "/export?prefix=v");
  assert.equal(part.bytes.toString(), await exported(kv, { prefix: ["v"] }));
  const start = encodeURIComponent('["v",100]');
  const tail = await call("GET", `/export?prefix=v&start=${start}`);
  assert.equal(tail.bytes.toString().split("\n").length - 1, 200);
  assert.equal((await call("GET", "/export?prefix=none")).bytes.length, 0);
  const other = await serveApi();
  const done = await other.call("POST", "/import", { body: whole.bytes, type: LINES });
  assert.deepEqual([done.status, done.body], [200, { imported: 303, skipped: 0 }]);
  const there = await connect(other.server);
  for await (const { key, value } of kv.list({ prefix: [] })) {
    assertSame((await there.get(key)).value, value, String(key[1]));
  }
  const expiry = async (of) => (await of.get(["u"], { withExpiry: true })).expireAt.getTime();
  assert.equal(await expiry(there), await expiry(kv));
});

test("an import takes prefix and overwrite as the JavaScript API does", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.set(["p", "a"], "kept");
  const expired = line("old").replace(/}$/, ',"expireAt":5}');
  const text = `\ufeff${line("a")}\n\n${line("b")}\r\n${expired}\n${line("c")}`;
  const local = await openKv(":memory:");
  await local.set(["p", "a"], "kept");
  const counts = await importLines(local, [Buffer.from(text)], { prefix: ["p"], overwrite: false });
  const asked = { body: text, type: `${LINES}; charset=utf-8` };
  const done = await call("POST", "/import?prefix=p&overwrite=false", asked);
  assert.deepEqual(done.body, { imported: counts.imported, skipped: counts.skipped });
  assert.deepEqual(done.body, { imported: 2, skipped: 2 });
  const values = async (of) => {
    const found = [];
    for await (const { value } of of.list({ prefix: [] })) found.push(value);
    return found;
  };
  assert.deepEqual(await values(kv), await values(local));
  assert.deepEqual((await call("POST", "/import?prefix=p", asked)).body, {
    imported: 3,
    skipped: 1,
  });
  assert.deepEqual(await values(kv), [1, 1, 1]);
});

test("an import ends at the first line that is no entry, and says what is committed", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const lines = Array.from({ length: 1700 }, (_, i) => line(`k${i}`));
  for (const [bad, fault, refused = 400] of [
    ["nothing", /^line 1501: .*JSON/],
    ['{"key":[]}', /^line 1501: key/],
    [line("x".repeat(3000)), /^line 1501: Key too large/, 413],
    [`"${"\\u00e4".repeat(20_000)}"`, /^line 1501: must be an object/],
  ]) {
    await kv.deleteMany({ prefix: [] });
    const body = lines.with(1500, bad).join("\n");
    const { status, body: problem } = await call("POST", "/import", { body, type: LINES });
    assert.equal(status, refused, bad.slice(0, 50));
    assert.match(problem.detail, fault);
    assert.deepEqual([problem.line, problem.imported, problem.skipped], [1501, 1500, 0]);
    assert.equal(await kv.count({ prefix: [] }), 1500);
  }
  const type = await call("POST", "/import", { body: "{}" });
  assert.deepEqual([type.status, type.body.code], [415, "UNSUPPORTED_MEDIA_TYPE"]);
  const bytes = Buffer.concat([Buffer.from(`${line("a")}\n`), Buffer.from([0xff, 0x0a])]);
  const text = await call("POST", "/import", { body: bytes, type: LINES });
  assert.deepEqual([text.body.line, text.body.detail], [2, "line 2: not UTF-8"]);
  const accept = { accept: "application/json" };
  assert.equal((await call("GET", "/export", { headers: accept })).status, 406);
  assert.equal((await call("GET", "/export?limit=1")).status, 400);
});

test("an import ends at the first line that a unique index refuses", async () => {
  for (const overwrite of [true, false]) {
    const { server, call } = await serveApi();
    const kv = await connect(server);
    await (await kv.createIndex({ type: "value", prefix: [], on: "m", unique: true })).ready();
    const entry = (key, m) =>
      `{"key":[{"type":"string","value":"${key}"}],"value":{"type":"object","value":{"m":{"type":"number","value":${m}}}}}`;
    const body = [entry("a", 1), entry("b", 2), entry("c", 1), entry("d", 4)].join("\n");
    const path = `/import?overwrite=${overwrite}`;
    const { status, body: problem } = await call("POST", path, { body, type: LINES });
    assert.equal(status, 409);
    assert.match(problem.detail, /^line 3: .*the value of \["c"\] for \["a"\] already/);
    assert.deepEqual([problem.line, problem.imported, problem.skipped], [3, 2, 0]);
    assert.equal(await kv.count({ prefix: [] }), 2);
  }
});

/** The answer of a request whose body may be left unread. */
function begin(url, token = accessToken) {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(url, { headers }, resolve).on("error", reject).end();
  });
}

test("an export shows one state of the database, however slowly it is read", async () => {
  const { server } = await serveApi();
  const kv = await connect(server);
  const big = new Uint8Array(100_000);
  for (let i = 0; i < 300; i++) await kv.set([i], big);
  const answer = await begin(`${server.url}/api/export`);
  await new Promise((resolve) => answer.once("readable", resolve));
  await kv.deleteMany({ prefix: [] });
  await kv.set(["later"], 1);
  let count = 0;
  for await (const piece of answer) for (const byte of piece) count += byte === 0x0a ? 1 : 0;
  assert.equal(count, 300);
});

test("an export ends with its client, and few run at one time", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const big = new Uint8Array(100_000);
  for (let i = 0; i < 300; i++) await kv.set([i], big);
  const two = [await begin(`${server.url}/api/export`), await begin(`${server.url}/api/export`)];
  const third = await call("GET", "/export?prefix=none");
  assert.deepEqual([third.status, third.body.code], [429, "OVER_QUOTA"]);
  for (const answer of two) answer.on("error", () => {}).destroy();
  const isFree = async () => (await call("GET", "/export?prefix=none")).status === 200;
  await until(isFree, "a place for an export");
});

test("an export that cannot be complete breaks off", async () => {
  const server = await start({ path: `${folder()}/exports/`, adminToken });
  const call = caller(server.url, adminToken);
  const { token } = (await call("POST", "/v1/admin/databases", { body: { name: "a" } })).body;
  const kv = await connect(server, token, "/a");
  const big = new Uint8Array(100_000);
  for (let i = 0; i < 300; i++) await kv.set([i], big);
  const answer = await begin(`${server.url}/a/api/export`, token);
  kv.close();
  assert.equal((await call("DELETE", "/v1/admin/databases/a")).status, 204);
  await assert.rejects(async () => {
    for await (const piece of answer) assert.ok(piece.length > 0);
  }, /aborted/);
});
