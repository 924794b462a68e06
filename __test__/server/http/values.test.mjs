// Duty: every type of value through each media type of the HTTP API, both ways, compared with the
// JavaScript API: what one side writes the other reads. `openkv-lossy` exactly where the plain form,
// written again, gives another value. The values are the golden ones and random ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../../index.mjs";
import { evaluate, vectors } from "../../codec/codec.mjs";
import { assertSame } from "../../codec/graph.mjs";
import { seeded } from "../../property/random.mjs";
import { randomValue } from "../../property/values.mjs";
import { connect } from "../serving.mjs";
import { serveApi, TYPED } from "./calling.mjs";

const JSON_TYPE = "application/json";
const CBOR_TYPE = "application/cbor";
const BYTES_TYPE = "application/octet-stream";

/** Mutations of one atomic operation, and requests at a time, whose commits share a sync. */
const CHUNK = 50;
const RANDOM_VALUES = 80;

const PROBLEM = "application/problem+json";
/** The tag of embedded CBOR. */
const EMBEDDED = 0xd818;

async function values() {
  const golden = vectors("values")
    .values.filter(({ js, note }) => js !== undefined && note !== "float16")
    .map(({ name, js }) => [name, evaluate(js)]);
  assert.ok(golden.length > 120, `only ${golden.length} values`);
  const packed = vectors("values").packed.map(({ name, js }) => [`packed: ${name}`, evaluate(js)]);
  const random = await seeded("values over HTTP", (choices) =>
    Array.from({ length: RANDOM_VALUES }, (_, at) => [`random ${at}`, randomValue(choices)]),
  );
  const others = [
    ["KvU64", new KvU64(2n ** 64n - 1n)],
    ["no KvU64", new KvU64(0n)],
    ["bytes", new Uint8Array([0, 255, 7])],
    ["no bytes", new Uint8Array()],
  ];
  return [...golden, ...packed, ...others, ...random];
}

function isSame(a, b) {
  try {
    assertSame(a, b);
    return true;
  } catch {
    return false;
  }
}

/** Calls a function with each item, so many at a time. */
async function each(items, what) {
  for (let from = 0; from < items.length; from += CHUNK) {
    await Promise.all(items.slice(from, from + CHUNK).map(what));
  }
}

/** A server with the values under `["from", n]`, as JavaScript wrote them. */
async function serveValues() {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const all = await Promise.all(
    (await values()).map(async ([name, value], at) => {
      const key = ["from", at];
      await kv.set(key, value);
      return { name, key, at, query: `?key=["from",${at}]`, value: (await kv.get(key)).value };
    }),
  );
  const get = async (query, accept) => {
    const got = await call("GET", `/keys${query}`, { headers: { accept } });
    assert.equal(got.headers.get("content-type"), got.status === 200 ? accept : PROBLEM, query);
    return { ...got, lossy: got.headers.get("openkv-lossy") };
  };
  return { kv, call, all, get };
}

test("one entry: JavaScript reads what is written in each form", async () => {
  const { kv, call, all, get } = await serveValues();
  const again = async ({ at }, body, type) => {
    const put = await call("PUT", `/keys?key=["to",${at}]`, { body, type });
    assert.equal(put.status, 200, JSON.stringify(put.body));
    return (await kv.get(["to", at])).value;
  };
  const simplified = new Set();
  await each(all, async (one) => {
    const { name, query, value } = one;
    const typed = await get(query, TYPED);
    assert.equal(typed.lossy, null, name);
    const text = JSON.stringify(JSON.parse(typed.bytes).value);
    assertSame(await again(one, text, TYPED), value, `${name}, typed`);

    const cbor = await get(query, CBOR_TYPE);
    assert.equal(cbor.lossy, value instanceof KvU64 ? "true" : null, name);
    const stored = value instanceof KvU64 ? value.value : value;
    assertSame(await again(one, cbor.bytes, CBOR_TYPE), stored, `${name}, CBOR`);

    const plain = await get(query, JSON_TYPE);
    // The text of the value as it was sent: a number such as -0 would not survive `JSON.parse`.
    const [, sent] = /^\{"key":\[.*?\],"value":(.*),"versionstamp":"[0-9a-f]{20}"\}$/s.exec(
      plain.bytes.toString(),
    );
    const read = await again(one, sent, JSON_TYPE);
    assert.equal(plain.lossy, isSame(read, value) ? null : "true", `${name}: ${sent}`);
    if (plain.lossy) simplified.add(name);

    const raw = await get(query, BYTES_TYPE);
    const isBytes = value instanceof Uint8Array && value.constructor === Uint8Array;
    assert.equal(raw.status, isBytes ? 200 : 406, name);
    if (isBytes) {
      assert.deepEqual([...raw.bytes], [...value], name);
      assertSame(await again(one, raw.bytes, BYTES_TYPE), value, `${name}, bytes`);
    }
  });
  assert.ok(simplified.size > 20 && simplified.size < all.length - 20, `${simplified.size}`);
});

const FORMS = [JSON_TYPE, TYPED, CBOR_TYPE];

/**
 * Asserts that an answer has the value of each entry as the entry alone is answered in this form, and
 * says that it is lossy if one of them is. `found`: the items of the answer, in JSON, in the order of
 * the entries.
 */
function assertHas(answer, accept, single, found, what) {
  assert.equal(answer.status, 200, what);
  assert.equal(answer.headers.get("content-type"), accept, what);
  const isLossy = single.some(({ lossy }) => lossy) ? "true" : null;
  assert.equal(answer.headers.get("openkv-lossy"), isLossy, what);
  if (accept === CBOR_TYPE) {
    for (const { name, bytes } of single) {
      assert.ok(answer.bytes.includes(embedded(bytes)), `${what}: ${name}`);
    }
    return;
  }
  const items = found(JSON.parse(answer.bytes));
  assert.equal(items.length, single.length, what);
  for (const [at, { name, bytes }] of single.entries()) {
    assert.deepEqual(items[at].value, JSON.parse(bytes).value, `${what}: ${name}`);
  }
}

/** The entries as they are answered alone. */
async function alone(entries, get, accept) {
  const single = [];
  for (const { name, query } of entries) single.push({ name, ...(await get(query, accept)) });
  return single;
}

test("lists, batches and polls have the values of single entries, in each form", async () => {
  const { kv, call, all, get } = await serveValues();
  const keys = all.map(({ key }) => key);
  const list = { prefix: ["from"], limit: 1000 };
  const since = (await call("GET", `/watch/prefix/poll?prefix=["from"]`)).body.versionstamp;
  await Promise.all(all.map(({ key, value }) => kv.set(key, value)));
  const entries = ({ entries }) => entries;
  const inOrder = ({ entries }) =>
    keys.map((key) => entries.find((entry) => plainKey(entry.key) === plainKey(key)));
  for (const accept of FORMS) {
    const single = await alone(all, get, accept);
    const headers = { accept };
    const polled = `/watch/poll?keys=${JSON.stringify(keys)}`;
    const changed = `/watch/prefix/poll?prefix=["from"]&limit=1000&since=${since}`;
    for (const [what, answer, found] of [
      ["GET", await call("GET", `/keys?prefix=["from"]&limit=1000`, { headers }), entries],
      ["list", await call("POST", "/keys/list", { body: list, headers }), entries],
      ["batch", await call("POST", "/keys/batch", { body: { keys }, headers }), entries],
      ["poll", await call("GET", polled, { headers }), entries],
      ["poll of a prefix", await call("GET", changed, { headers }), inOrder],
    ]) {
      assertHas(answer, accept, single, found, `${accept}, ${what}`);
    }
  }
});

/** The text of a key in plain or in typed JSON. */
function plainKey(key) {
  return JSON.stringify(key.map((part) => part.value ?? part));
}

test("searches have the values of single entries, in each form", async () => {
  const { kv, call, all, get } = await serveValues();
  await kv.createIndex({ prefix: ["found"], fields: ["text"] });
  const found = all.map(({ name, at, value }) => {
    const query = `?key=["found",${at}]`;
    return { name, at, query, value: { text: `word${at}`, value } };
  });
  await each(found, ({ at, value }) => kv.set(["found", at], value).catch(() => {}));
  for (const accept of FORMS) {
    await each(found, async (one) => {
      const { name, at, query } = one;
      const single = await get(query, accept);
      // A KvU64 is no part of another value.
      if (single.status === 404) return assert.ok(/KvU64/.test(name), name);
      const asked = { headers: { accept } };
      const answer = await call("GET", `/search?prefix=["found"]&query=word${at}`, asked);
      const entries = ({ entries }) => entries;
      assertHas(answer, accept, [{ name, ...single }], entries, `${accept}, search`);
    });
  }
});

test("messages and dead letters have the values of single entries, in each form", async () => {
  const { kv, call, all, get } = await serveValues();
  const sent = all.filter(
    ({ value }) => !(value instanceof KvU64) && value?.constructor !== Uint8Array,
  );
  const [looked, dead] = [kv.queue("looked"), kv.queue("dead")];
  const enqueueAll = (queue, options) =>
    Promise.all(sent.map(({ value }) => queue.enqueue(value, options)));
  await enqueueAll(looked);
  await enqueueAll(dead, { backoffSchedule: [] });
  for (const _ of sent) await (await dead.receive()).nack();
  const { messages } = await dead.dead.list({ limit: 1000 });
  const items = ({ messages }) => messages;
  for (const accept of FORMS) {
    const single = await alone(sent, get, accept);
    const headers = { accept };
    for (const path of ["messages?queue=looked", "dlq?queue=dead"]) {
      const answer = await call("GET", `/queue/${path}&limit=1000`, { headers });
      assertHas(answer, accept, single, items, `${accept}, ${path}`);
    }
    for (const [at, { id }] of messages.entries()) {
      const answer = await call("GET", `/queue/dlq/${id}?queue=dead`, { headers });
      assertHas(answer, accept, [single[at]], (letter) => [letter], `${accept}, one letter`);
    }
    await enqueueAll(kv.queue(accept));
    const polled = `/queue/poll?queue=${encodeURIComponent(accept)}&lockDuration=600000`;
    for (const one of single) {
      const answer = await call("GET", polled, { headers });
      assertHas(answer, accept, [one], ({ message }) => [message], `${accept}, a poll`);
    }
    const none = await call("GET", polled, { headers });
    assert.equal(none.headers.get("content-type"), accept);
  }
});

/** A byte string of CBOR with the tag of embedded CBOR. */
function embedded(bytes) {
  const { length } = bytes;
  const sized = (first, size, write) => {
    const head = Buffer.alloc(1 + size, first);
    head[write](length, 1);
    return head;
  };
  const head =
    length < 24
      ? Buffer.from([0x40 + length])
      : length < 0x100
        ? sized(0x58, 1, "writeUInt8")
        : sized(0x59, 2, "writeUInt16BE");
  const tag = Buffer.alloc(2);
  tag.writeUInt16BE(EMBEDDED);
  return Buffer.concat([tag, head, bytes]);
}

test("atomic operations and messages take each value", async () => {
  const { kv, call, all, get } = await serveValues();
  const texts = [];
  for (const { query } of all) {
    texts.push(JSON.stringify(JSON.parse((await get(query, TYPED)).bytes).value));
  }
  for (let from = 0; from < all.length; from += CHUNK) {
    const mutations = all
      .slice(from, from + CHUNK)
      .map(({ at }) => `{"type":"set","key":["set",${at}],"value":${texts[at]}}`);
    const body = `{"mutations":[${mutations}]}`;
    assert.equal((await call("POST", "/atomic", { body, type: TYPED })).status, 200);
  }
  await each(all, async ({ name, at, value }) => {
    const queue = kv.queue(`values ${at}`);
    const path = (verb) => `/queue/${verb}?queue=values ${at}`;
    assertSame((await kv.get(["set", at])).value, value, `${name}, atomic`);
    const body = `{"value":${texts[at]}}`;
    const sent = await call("POST", path("enqueue"), { body, type: TYPED });
    if (value instanceof KvU64 || value?.constructor === Uint8Array) {
      assert.equal(sent.status, 400, name);
      return;
    }
    assert.equal(sent.status, 200, name);
    const message = await queue.receive();
    assertSame(message.value, value, `${name}, received`);
    await message.ack();
    await queue.enqueue(value);
    const polled = await call("GET", path("poll"), { headers: { accept: TYPED } });
    const { id, lock, value: typed } = JSON.parse(polled.bytes).message;
    assert.deepEqual(typed, JSON.parse(texts[at]), `${name}, polled`);
    assert.equal((await call("POST", "/queue/ack", { body: { id, lock } })).body.ok, true);
  });
});

test("blobs go through the typed form and CBOR", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.set(["blob"], [new Blob(["hi"], { type: "image/png" })]);
  for (const accept of [TYPED, CBOR_TYPE]) {
    const got = await call("GET", "/keys/blob", { headers: { accept } });
    const body = accept === TYPED ? JSON.stringify(got.body.value) : got.bytes;
    assert.equal((await call("PUT", "/keys/again", { body, type: accept })).status, 200);
    const [blob] = (await kv.get(["again"])).value;
    assert.deepEqual([await blob.text(), blob.type], ["hi", "image/png"]);
  }
});
