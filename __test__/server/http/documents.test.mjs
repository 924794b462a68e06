// Duty: bodies that are documents in CBOR, with each type of value; the UUIDs that a commit fills in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../../index.mjs";
import { evaluate, vectors } from "../../codec/codec.mjs";
import { assertSame } from "../../codec/graph.mjs";
import { connect } from "../serving.mjs";
import { serveApi, TYPED } from "./calling.mjs";

const CBOR_TYPE = "application/cbor";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The bytes of a value in the stored form, for a document. */
class Embedded {
  constructor(bytes) {
    this.bytes = bytes;
  }
}

function head(major, argument) {
  const first = major << 5;
  if (argument < 24) return Buffer.from([first | argument]);
  const bytes = Buffer.alloc(5, first | 26);
  bytes.writeUInt32BE(argument, 1);
  return bytes;
}

/** A document in CBOR. Not all heads have their shortest form: a document need not be canonical. */
function cbor(item) {
  if (item === null) return Buffer.from([0xf6]);
  if (typeof item === "boolean") return Buffer.from([item ? 0xf5 : 0xf4]);
  if (Number.isSafeInteger(item) && item >= 0 && !Object.is(item, -0)) return head(0, item);
  if (typeof item === "number") {
    const float = Buffer.alloc(9, 0xfb);
    float.writeDoubleBE(item, 1);
    return float;
  }
  if (typeof item === "bigint") {
    const digits = (item < 0n ? -1n - item : item).toString(16);
    const magnitude = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
    return Buffer.concat([Buffer.from([item < 0n ? 0xc3 : 0xc2]), cbor(magnitude)]);
  }
  if (typeof item === "string") {
    return Buffer.concat([head(3, Buffer.byteLength(item)), Buffer.from(item)]);
  }
  if (item instanceof Uint8Array) return Buffer.concat([head(2, item.length), item]);
  if (item instanceof Embedded) return Buffer.concat([Buffer.from([0xd8, 0x18]), cbor(item.bytes)]);
  if (Array.isArray(item)) return Buffer.concat([head(4, item.length), ...item.map(cbor)]);
  const members = Object.entries(item);
  return Buffer.concat([head(5, members.length), ...members.flat().map(cbor)]);
}

/** A server, and a function that sends a document. */
async function serveDocuments() {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const send = (path, document, headers) =>
    call("POST", path, { body: cbor(document), type: CBOR_TYPE, headers });
  const stored = async (key) =>
    new Embedded((await call("GET", `/keys/${key}`, { headers: { accept: CBOR_TYPE } })).bytes);
  return { kv, call, send, stored };
}

test("JavaScript reads each value of a document in CBOR", async () => {
  const { kv, send, stored } = await serveDocuments();
  const values = vectors("values")
    .values.filter(({ js, note }) => js !== undefined && note !== "float16")
    .map(({ name, js }) => [name, evaluate(js)]);
  values.push(["bytes", new Uint8Array([0, 255, 7])], ["KvU64", new KvU64(5n)]);
  const mutations = [];
  for (const [at, [, value]] of values.entries()) {
    await kv.set([`${at}`], value);
    mutations.push({ type: "set", key: ["set", at], value: await stored(at) });
  }
  const done = await send("/atomic", { mutations });
  assert.equal(done.status, 200, JSON.stringify(done.body));
  for (const [at, [name, written]] of values.entries()) {
    const value = written instanceof KvU64 ? written.value : (await kv.get([`${at}`])).value;
    assertSame((await kv.get(["set", at])).value, value, `${name}, set`);
    const queue = `q${at}`;
    const sent = await send(`/queue/enqueue?queue=${queue}`, { value: mutations[at].value });
    if (value?.constructor === Uint8Array) {
      assert.equal(sent.status, 400, name);
      continue;
    }
    assert.equal(sent.status, 200, `${name}: ${JSON.stringify(sent.body)}`);
    const message = await kv.queue(queue).receive();
    assertSame(message.value, value, `${name}, received`);
    await message.ack();
  }
});

test("a document in CBOR has keys of each type, checks, ranges and conditions", async () => {
  const { kv, send, stored } = await serveDocuments();
  const key = ["a", 1, -1.5, 42n, -(2n ** 80n), true, new Uint8Array([1, 0]), Infinity, -0];
  await kv.set(key, { n: 5 });
  const batch = await send("/keys/batch", { keys: [key, ["none"]] }, { accept: TYPED });
  assert.deepEqual(
    batch.body.entries.map(({ versionstamp }) => versionstamp !== null),
    [true, false],
  );
  assert.equal((await send("/keys/count", { prefix: ["a"] })).body.count, 1);
  const where = (n) => ({ prefix: ["a"], where: { n: { $gte: n } } });
  assert.equal((await send("/keys/count", where(5))).body.count, 1);
  assert.equal((await send("/keys/count", where(6))).body.count, 0);
  const { versionstamp } = await kv.get(key);
  await kv.set(["one"], 1);
  await kv.set(["items"], [1]);
  const [one, list] = [await stored("one"), await stored("items")];
  const operation = {
    checks: [{ key, versionstamp }],
    mutations: [
      { type: "sum", key: ["one"], value: one },
      { type: "append", key: ["items"], value: list },
      { type: "delete", key },
    ],
  };
  const done = await send("/atomic", operation);
  assert.equal(done.body.ok, true, JSON.stringify(done.body));
  assert.deepEqual((await send("/atomic", operation)).body, { ok: false, failed: [0] });
  assert.equal((await kv.get(["one"])).value, 2);
  assert.deepEqual((await kv.get(["items"])).value, [1, 1]);
});

test("other bytes are refused", async () => {
  const { call, send } = await serveDocuments();
  const deep = Array.from({ length: 200 }).reduce((item) => [item], 1);
  for (const document of [
    [],
    { keys: deep },
    { mutations: [{ type: "set", key: ["a"], value: 5 }] },
    { mutations: [{ type: "set", key: ["a"], value: new Embedded(Buffer.from([0xff])) }] },
    { mutations: [{ type: "set", key: ["a"], value: new Embedded(Buffer.from([1, 2])) }] },
  ]) {
    const { status, body } = await send("/atomic", document);
    assert.deepEqual([status, body.code], [400, "INVALID"], JSON.stringify(body));
  }
  for (const bytes of [
    "",
    "a1",
    "a0a0",
    "bf",
    "a16161",
    "a1f6f6",
    "a1616bf7",
    "a1616bc1",
    "a1616bd8185f",
  ]) {
    const body = Buffer.from(bytes, "hex");
    const { status } = await call("POST", "/atomic", { body, type: CBOR_TYPE });
    assert.equal(status, 400, bytes);
  }
});

test("a commit fills in UUIDs in keys, values and messages; those of one name are the same", async () => {
  const { kv, call } = await serveDocuments();
  const uuid = (value) => (value === undefined ? { type: "uuidv7" } : { type: "uuidv7", value });
  const object = (value) => ({ type: "object", value });
  const array = (...value) => ({ type: "Array", value });
  const nil = { type: "string", value: "00000000-0000-0000-0000-000000000000" };
  const mutations = [
    {
      type: "set",
      key: ["users", uuid("user")],
      value: object({ id: uuid("user"), nil, other: uuid() }),
    },
    { type: "append", key: ["log"], value: array(array(nil, uuid("user")), uuid("entry")) },
    { type: "set", key: ["whole", uuid("entry")], value: uuid() },
    { type: "enqueue", queue: "mail", value: array(uuid(), uuid("user")) },
  ];
  const atomic = (body) => call("POST", "/atomic", { body: JSON.stringify(body), type: TYPED });
  const { status, body } = await atomic({ mutations });
  assert.equal(status, 200, JSON.stringify(body));
  const [user, other, entry, whole, message] = body.uuids;
  assert.equal(new Set(body.uuids).size, 5);
  for (const found of body.uuids) assert.match(found, UUID);
  assert.deepEqual((await kv.get(["users", user])).value, { id: user, nil: nil.value, other });
  assert.deepEqual((await kv.get(["log"])).value, [[nil.value, user], entry]);
  assert.equal((await kv.get(["whole", entry])).value, whole);
  const received = await kv.queue("mail").receive();
  assert.deepEqual(received.value, [message, user]);
  await received.ack();
  for (const mutation of [
    { type: "sum", key: ["n"], value: uuid() },
    { type: "set", key: ["a"], value: { type: "uuidv7", value: 5 } },
    { type: "delete", key: ["a", uuid("user")] },
  ]) {
    const refused = await atomic({ mutations: [mutation] });
    assert.equal(refused.status, 400, JSON.stringify(mutation));
  }
  // In plain JSON it is an object like any other.
  const plain = { mutations: [{ type: "set", key: ["plain"], value: uuid() }] };
  assert.equal((await call("POST", "/atomic", { body: plain })).status, 200);
  assert.deepEqual((await kv.get(["plain"])).value, uuid());
});

test("only atomic operations take UUIDs that a commit fills in", async () => {
  const { call } = await serveDocuments();
  const value = '{"type":"uuidv7"}';
  const line = `{"key":[{"type":"string","value":"a"}],"value":${value}}\n`;
  for (const [method, path, body, type] of [
    ["PUT", "/keys/a", value, TYPED],
    ["POST", "/queue/enqueue", `{"value":${value}}`, TYPED],
    ["POST", "/import", line, "application/x-ndjson"],
  ]) {
    const { status, body: problem } = await call(method, path, { body, type });
    assert.equal(status, 400, path);
    assert.match(problem.detail, /uuidv7 is for values of atomic operations/);
  }
});
