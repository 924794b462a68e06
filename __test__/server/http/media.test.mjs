// Duty: media types of the HTTP API: every type of value through each form, compared with the
// JavaScript API; negotiation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../../index.mjs";
import { connect } from "../serving.mjs";
import { serveApi, TYPED } from "./calling.mjs";

const shared = { n: 1 };
const VALUES = {
  null: null,
  undefined: undefined,
  true: true,
  number: 1.5,
  negativeZero: -0,
  nan: Number.NaN,
  infinity: Number.NEGATIVE_INFINITY,
  bigint: 2n ** 70n,
  text: "ä\u0000\ud800",
  array: [1, [2], "x"],
  holes: [1, , 3],
  object: { a: 1, b: { c: [null] } },
  shared: [shared, shared],
  map: new Map([[{ k: 1 }, "v"]]),
  set: new Set([1, "a"]),
  date: new Date(1234567890123),
  regexp: /a.b/gi,
  error: new TypeError("no"),
  buffer: new Uint8Array([1, 2, 3]).buffer,
  floats: new Float64Array([1.5, Number.NaN]),
  bytes: new Uint8Array([0, 255, 7]),
  u64: new KvU64(2n ** 64n - 1n),
};
const PLAIN = new Set(["null", "true", "number", "text", "array", "object"]);

test("every value goes through the typed form, and through CBOR, unchanged", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  for (const [name, value] of Object.entries(VALUES)) {
    await kv.set(["from", name], value);
    const { value: expected } = await kv.get(["from", name]);
    const typed = await call("GET", `/keys/from/${name}`, { headers: { accept: TYPED } });
    assert.equal(typed.headers.get("content-type"), TYPED);
    assert.equal(typed.headers.get("openkv-lossy"), null, name);
    const body = JSON.stringify(typed.body.value);
    assert.equal((await call("PUT", `/keys/to/${name}`, { body, type: TYPED })).status, 200, name);
    assert.deepEqual((await kv.get(["to", name])).value, expected, name);
    const headers = { accept: "application/cbor" };
    const cbor = await call("GET", `/keys/from/${name}`, { headers });
    assert.equal(cbor.headers.get("openkv-lossy"), name === "u64" ? "true" : null);
    const type = "application/cbor";
    const put = await call("PUT", `/keys/cbor/${name}`, { body: cbor.bytes, type });
    assert.equal(put.status, 200, name);
    const back = (await kv.get(["cbor", name])).value;
    assert.deepEqual(back, name === "u64" ? 2n ** 64n - 1n : expected, name);
    const plain = await call("GET", `/keys/from/${name}`);
    assert.equal(plain.headers.get("openkv-lossy"), PLAIN.has(name) ? null : "true", name);
    if (PLAIN.has(name)) {
      assert.deepEqual(plain.body.value, expected);
      await call("PUT", `/keys/json/${name}`, { body: JSON.stringify(plain.body.value) });
      assert.deepEqual((await kv.get(["json", name])).value, expected, name);
    }
  }
});

test("bytes are sent as they are", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const body = new Uint8Array([0, 1, 254]);
  const type = "application/octet-stream";
  assert.equal((await call("PUT", "/keys/a", { body, type })).status, 200);
  assert.deepEqual((await kv.get(["a"])).value, body);
  const got = await call("GET", "/keys/a", { headers: { accept: type } });
  assert.deepEqual([...got.bytes], [...body]);
  await kv.set(["b"], 1);
  const refused = await call("GET", "/keys/b", { headers: { accept: type } });
  assert.deepEqual([refused.status, refused.body.code], [406, "NOT_ACCEPTABLE"]);
});

test("other media types are refused", async () => {
  const { call } = await serveApi();
  const put = await call("PUT", "/keys/a", { body: "1", type: "text/plain" });
  assert.deepEqual([put.status, put.body.code], [415, "UNSUPPORTED_MEDIA_TYPE"]);
  const list = await call("POST", "/keys/list", { body: "{}", type: "application/octet-stream" });
  assert.equal(list.status, 415);
  const get = await call("GET", "/keys", { headers: { accept: "text/html" } });
  assert.equal(get.status, 406);
  for (const body of ["{", "[1", '{"prefix":5}', '{"none":1}', '{"limit":0}', '{"limit":1001}']) {
    assert.equal((await call("POST", "/keys/list", { body })).status, 400, body);
  }
});

test("a list is available in each form, and compressed when it is long", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.set(["a", 1n], new Date(0));
  const typed = await call("GET", "/keys", { headers: { accept: TYPED } });
  assert.deepEqual(typed.body.entries[0].key, [
    { type: "string", value: "a" },
    { type: "bigint", value: "1" },
  ]);
  assert.deepEqual(typed.body.entries[0].value, {
    type: "Date",
    value: "1970-01-01T00:00:00.000Z",
  });
  const cbor = await call("GET", "/keys", { headers: { accept: "application/cbor" } });
  // A map of three, the text "entries", an array of one entry: a map of three, the text "key".
  assert.equal(
    cbor.bytes.subarray(0, 15).toString("hex"),
    "a367656e747269657381a3636b6579".slice(0, 30),
  );
  assert.ok(cbor.bytes.includes(Buffer.from("d818", "hex")), "values are embedded");
  const encoding = async () => (await call("GET", "/keys")).headers.get("content-encoding");
  assert.equal(await encoding(), null);
  for (let i = 0; i < 50; i++) await kv.set(["b", i], "x".repeat(100));
  assert.match(await encoding(), /^(br|gzip)$/);
  assert.equal((await call("GET", "/keys?limit=1000")).body.entries.length, 51);
});
