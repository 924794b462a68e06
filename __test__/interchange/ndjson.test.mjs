// Duty: NDJSON in both directions: what @deno/kv-utils writes and reads, what its form cannot say,
// and lines that are no entry.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { assertSame } from "../codec/graph.mjs";
import { evaluate, vectors } from "../codec/codec.mjs";
import { Random } from "../property/random.mjs";
import { randomValue } from "../property/values.mjs";

const require = createRequire(import.meta.url);
const { encodeLine } = require("../../build/interchange/encode.js");
const { decodeLine } = require("../../build/interchange/decode.js");
const { KvU64 } = require("../../build/codec/u64.js");

const STAMP = "0000000000000f460000";
const line = (key, value, more = {}) => encodeLine({ key, value, versionstamp: STAMP, ...more });
const there = (value) => decodeLine(line(["k"], value)).value;

const error = (type, message) => {
  const made = new type(message);
  made.stack = "S";
  return made;
};

/** The form of @deno/kv-utils: value and JSON. */
const COMMON = [
  ["a string", "a\n\u2028", '{"type":"string","value":"a\\n\u2028"}'],
  ["a number", 1.5, '{"type":"number","value":1.5}'],
  ["NaN", Number.NaN, '{"type":"number","value":"NaN"}'],
  ["infinity", -Infinity, '{"type":"number","value":"-Infinity"}'],
  ["a bigint", -(10n ** 30n), `{"type":"bigint","value":"-1${"0".repeat(30)}"}`],
  ["a boolean", true, '{"type":"boolean","value":true}'],
  ["undefined", undefined, '{"type":"undefined"}'],
  ["null", null, '{"type":"null","value":null}'],
  ["a KvU64", new KvU64(2n ** 64n - 1n), '{"type":"KvU64","value":"18446744073709551615"}'],
  ["bytes", new Uint8Array([0, 255, 62]), '{"type":"Uint8Array","value":"AP8-","byteLength":3}'],
  ["floats", new Float32Array([1]), '{"type":"Float32Array","value":"AACAPw","byteLength":4}'],
  ["a buffer", new Uint8Array([1]).buffer, '{"type":"ArrayBuffer","value":"AQ","byteLength":1}'],
  ["a Date", new Date(0), '{"type":"Date","value":"1970-01-01T00:00:00.000Z"}'],
  ["no Date", new Date(Number.NaN), '{"type":"Date","value":null}'],
  ["a RegExp", /a\/b/gi, '{"type":"RegExp","value":"/a\\\\/b/gi"}'],
  [
    "an array",
    [1, "a"],
    '{"type":"Array","value":[{"type":"number","value":1},{"type":"string","value":"a"}]}',
  ],
  ["a Set", new Set([1]), '{"type":"Set","value":[{"type":"number","value":1}]}'],
  [
    "a Map",
    new Map([[1, null]]),
    '{"type":"Map","value":[[{"type":"number","value":1},{"type":"null","value":null}]]}',
  ],
  ["an object", { a: 1n }, '{"type":"object","value":{"a":{"type":"bigint","value":"1"}}}'],
  ["an error", error(TypeError, "m"), '{"type":"TypeError","value":{"message":"m","stack":"S"}}'],
];

test("what the common form can say is in the common form", () => {
  for (const [name, value, json] of COMMON) {
    const expected = `{"key":[{"type":"string","value":"k"}],"value":${json},"versionstamp":"${STAMP}"}`;
    assert.equal(line(["k"], value), expected, name);
    assertSame(decodeLine(expected).value, value, name);
  }
});

test("what it cannot say survives all the same", () => {
  const shared = { x: 1 };
  const cycle = {};
  cycle.self = cycle;
  const beside = Object.assign([1], { name: "x" });
  const buffer = new ArrayBuffer(4);
  const values = [
    -0,
    { n: -0 },
    [shared, shared],
    cycle,
    [1, , 3],
    beside,
    Object("boxed"),
    [new Uint8Array(buffer), new Uint16Array(buffer)],
    new DOMException("m", "AbortError"),
    "\ud800",
  ];
  for (const value of values) assertSame(there(value), value, String(Object.keys(Object(value))));
});

test("an own __proto__ is data", () => {
  const value = there(JSON.parse('{"__proto__": {"polluted": true}}'));
  assert.equal(value.polluted, undefined);
  assert.deepEqual(Object.keys(value), ["__proto__"]);
});

test("every part of a key comes back", () => {
  const key = [
    "a",
    "",
    1,
    -0,
    Number.NaN,
    Infinity,
    5n,
    -(2n ** 70n),
    true,
    false,
    new Uint8Array([0]),
  ];
  assertSame(decodeLine(line(key, 1)).key, key);
});

test("the end of an entry stands beside it", () => {
  const at = new Date(1_800_000_000_000);
  assert.equal(decodeLine(line(["k"], 1, { expireAt: at })).expireAt, at.getTime());
  assert.equal(decodeLine(line(["k"], 1, { expireAt: null })).expireAt, undefined);
});

test("golden values and random ones come back", () => {
  for (const { name, js, note } of vectors("values").values) {
    // A golden Blob has no expression: the next test has them.
    if (["plain", "bytes", "blob", "float16"].includes(note)) continue;
    if (name === "view of a part stands alone") continue;
    assertSame(there(evaluate(js)), evaluate(js), name);
  }
  for (let seed = 0; seed < 500; seed++) {
    const value = randomValue(new Random(seed));
    assertSame(there(value), value, `seed ${seed}`);
  }
});

/** What it holds and is called: none of it is an own property. */
const contentsOf = async (blob) => [await blob.text(), blob.type, blob.name, blob.lastModified];

// The encoder leaves room for the contents of a Blob. A line was made of the room: what the
// process's memory happened to hold went into exports, and out of `--json`.
test("a Blob in a line holds its contents, however deep it lies", async () => {
  const blob = new Blob(["x".repeat(5000)], { type: "text/plain" });
  const file = new File(["inside"], "a.txt", { lastModified: 5 });
  const text = await line(["k"], { deep: [blob, new Map([[1, file]])], beside: 1 });
  const { deep, beside } = decodeLine(text).value;
  assert.deepEqual(await contentsOf(deep[0]), await contentsOf(blob));
  assert.deepEqual(await contentsOf(deep[1].get(1)), await contentsOf(file));
  assert.equal(beside, 1);
});

test("an export tells what a Blob holds", async () => {
  const { exportChunks } = require("../../build/interchange/export.js");
  const { openKv } = require("../../index.js");
  const kv = await openKv(":memory:");
  await kv.set(["blob"], new Blob(["contents"]));
  let text = "";
  for await (const { bytes } of exportChunks(kv)) text += bytes;
  assert.equal(await decodeLine(text).value.text(), "contents");
  await kv.close();
});

test("lines that are no entry are refused, and say where", () => {
  const value = '{"type":"null"}';
  const entry = (v) => `{"key":[{"type":"string","value":"k"}],"value":${v}}`;
  const cases = [
    ["", /not JSON/],
    ["[]", /must be an object/],
    ["{}", /key must be an array/],
    [`{"key":[],"value":${value}}`, /key must be an array of parts/],
    ['{"key":[{"type":"string","value":"k"}]}', /value is missing/],
    [`{"key":[{"type":"Map","value":[]}],"value":${value}}`, /key\[0\]: unknown type/],
    [entry('{"type":"Function"}'), /value: unknown type Function/],
    [
      entry('{"type":"object","value":{"a":{"type":"number","value":"1"}}}'),
      /value\.a: value must be a number/,
    ],
    [entry('{"type":"Array","value":[1]}'), /value\[0\]: must be an object/],
    [entry('{"type":"Map","value":[[1]]}'), /value\[0\]: must be a pair/],
    [entry('{"type":"bigint","value":"1.5"}'), /decimal digits/],
    [entry('{"type":"KvU64","value":"-1"}'), /value: /],
    [entry('{"type":"Uint8Array","value":"%"}'), /base64url/],
    [entry('{"type":"Float64Array","value":"AQ"}'), /no whole Float64Array/],
    [entry('{"type":"Date","value":"soon"}'), /not a time/],
    [entry('{"type":"Date","value":"2026-02-30T00:00:00.000Z"}'), /not a time/],
    [entry('{"type":"RegExp","value":"/(/"}'), /not a regular expression/],
    [entry('{"type":"CBOR","value":"/w"}'), /not a value in CBOR/],
    [`{"key":[{"type":"string","value":"k"}],"value":${value},"expireAt":"x"}`, /expireAt/],
  ];
  for (const [text, message] of cases) {
    assert.throws(() => decodeLine(text), { name: "NdjsonError", message }, text);
  }
});

test("an import is the same however its bytes come in pieces", async () => {
  const { importLines } = require("../../build/interchange/import.js");
  const { openKv } = require("../../index.js");
  const values = ["plain", "ähnlich", "日本語 😀", "x".repeat(100_000), "last"];
  const text = `\ufeff${values.map((value, n) => line(["v", n], value)).join("\n\n")}`;
  const whole = Buffer.from(text);
  for (const size of [1, 2, 3, 7, 1000, 65_536, whole.length]) {
    async function* pieces() {
      // One memory for all pieces, as some streams have it.
      const memory = Buffer.alloc(size);
      for (let at = 0; at < whole.length; at += size) {
        yield memory.subarray(0, whole.copy(memory, 0, at, at + size));
      }
    }
    const kv = await openKv(":memory:", { limits: "wide" });
    let done = 0;
    const counts = await importLines(kv, pieces(), { progress: (bytes) => (done = bytes) });
    assert.deepEqual(counts, { imported: values.length, skipped: 0, failed: 0 }, `${size}`);
    assert.equal(done, whole.length + 1, "the last line counts an end that it lacks");
    for (const [n, value] of values.entries()) assert.equal((await kv.get(["v", n])).value, value);
    await kv.close();
  }
  const kv = await openKv(":memory:");
  await assert.rejects(importLines(kv, [Buffer.from([0x7b, 0xff, 0x7d, 0x0a])]), /UTF-8/);
  await kv.close();
});

/** Lines as a stream; what is behind the first waits for a turn of the event loop. */
async function* stream(lines, pause = async () => {}) {
  for (const one of lines) {
    yield Buffer.from(`${one}\n`);
    await pause();
  }
}

// The commits began with the line, and were looked at only with the batch.
test("an import that leaves what is there tells why it cannot store", async () => {
  const { importLines } = require("../../build/interchange/import.js");
  const { openKv } = require("../../index.js");
  const kv = await openKv(":memory:");
  await kv.close();
  const later = () => new Promise((resolve) => setTimeout(resolve, 20));
  const lines = stream([line(["a"], 1), line(["b"], 2)], later);
  await assert.rejects(importLines(kv, lines, { overwrite: false }), { name: "BadResource" });
});

// Characters were counted in their place: a commit of three times as many bytes was refused.
test("commits of an import keep to the bytes of keys and values that every server takes", async () => {
  const { importLines } = require("../../build/interchange/import.js");
  const { openKv } = require("../../index.js");
  const kv = await openKv(":memory:");
  const keys = Array.from({ length: 120 }, (_, n) => line([n, "鍵".repeat(600)], 1));
  const values = Array.from({ length: 40 }, (_, n) => line(["v", n], "値".repeat(20_000)));
  const counts = await importLines(kv, stream([...keys, ...values]));
  assert.deepEqual(counts, { imported: 160, skipped: 0, failed: 0 });
  await kv.close();
});
