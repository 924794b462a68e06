// Duty: values and keys between the command and other programs: words, raw bytes, plain JSON, ends.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { contents, folderOfTests, openkv, shell, withoutShell } from "./running.mjs";

const require = createRequire(import.meta.url);
const { plainKey, plainValue } = require("../../build/cli/plain-json.js");
const { KvU64 } = require("../../build/codec/u64.js");
const path = folderOfTests();

test("words are strings, literals stay what they are", async () => {
  const db = path("words.db");
  const on = (...args) => openkv("-d", db, ...args);
  for (const args of [
    ["users", "alice", "hello"],
    ["users", "5", "5"],
    ["mail", "ada@example.com"],
    ["flag", "true"],
    ["quoted", '"5"'],
    ['["one", "array"]', "user-1"],
  ]) {
    const { code, err } = await on("set", ...args);
    assert.equal(code, 0, err);
  }
  assert.deepEqual(await contents(db), [
    [["flag"], true],
    [["mail"], "ada@example.com"],
    [["one", "array"], "user-1"],
    [["quoted"], "5"],
    [["users", "alice"], "hello"],
    [["users", 5], 5],
  ]);
  assert.equal((await on("get", "users", "alice")).out, '"hello"\n');
  assert.equal((await on("list", "users", "-k")).out.split("\n").length, 3);
  assert.equal((await on("count", "users")).out, "2\n");
  const wrong = [
    ["set", "k", '["a"'],
    ["set", "k", "{a:1"],
    ["set", "k", '"open'],
    ["set", "k", "date(soon)"],
    ["set", "k", ""],
    ["get", "a", '["b"]'],
    ["set", "k"],
  ];
  for (const args of wrong) assert.equal((await on(...args)).code, 2, args.join(" "));
  assert.match((await on("set", "k", '["a"')).err, /single quotes keep a literal together/);
});

// A postcode lost its zeros, the number of a telephone its plus, and the id of an order its last digits.
test("digits that a number would not keep stay a string, in keys too", async () => {
  const db = path("digits.db");
  const on = (...args) => openkv("-d", db, ...args);
  const kept = [
    "00501",
    "-007",
    "+491701234567",
    "12345678901234567890",
    "9007199254740993",
    "1e400",
  ];
  const lines = kept.map((word) => `set ${word} x\nset w ${word}\nget w`);
  const { code, out, err } = await openkv("-d", db, "shell", { input: `${lines.join("\n")}\n` });
  assert.deepEqual([code, err], [0, ""]);
  assert.equal(out, kept.map((word) => `"${word}"\n`).join(""));
  const keys = (await contents(db)).map(([key]) => key).filter(([part]) => part !== "w");
  assert.deepEqual(keys.flat().sort(), [...kept].sort());
  // Numbers are printed as they are read.
  for (const word of ["0.5", "-0", "1e21", "9007199254740992", "123456789012345680000", "0x10"]) {
    assert.equal((await on("set", "n", "--", word)).code, 0);
    const { out: printed } = await on("get", "n");
    assert.equal(Object.is(Number(printed), Number(word)), true, printed);
  }
  for (const literal of ["[007]", "{ id: 12345678901234567890 }", "[1e400]"]) {
    const refused = await on("set", "n", literal);
    assert.equal(refused.code, 2);
    assert.match(refused.err, /begins with 0|cannot hold these digits: a bigint ends with n/);
  }
  const empty = await on("set", "n", "");
  assert.equal(empty.code, 2);
  assert.match(empty.err, /the text is empty \(""/);
});

// A UUID, a date, a path, a version and a text with a space were syntax errors: they start with a digit
// or have characters that names do not have.
test("what is no literal is a string, as a value and as a part of a key", async () => {
  const db = path("strings.db");
  const words = ["01a21a03-1faa-7", "2026-01-01", "hello world", "/tmp/x", "1.2.3", "5, 6", "f(x)"];
  const lines = words.map((word) => `set ${JSON.stringify(word)} x\nset w '${word}'\nget w`);
  const { code, out, err } = await openkv("-d", db, "shell", { input: `${lines.join("\n")}\n` });
  assert.deepEqual([code, err], [0, ""]);
  assert.equal(out, words.map((word) => `${JSON.stringify(word)}\n`).join(""));
  const typed = ["42", "true", "null", "42n"];
  await Promise.all(typed.map((word) => openkv("-d", db, "set", "s", word, word, "--string")));
  await openkv("-d", db, "append", "list", "1", "{a", "--string");
  const kv = await openKv(db);
  assert.deepEqual(
    (
      await Promise.all([["s", 42], ["s", true], ["s", 42n], ["list"]].map((key) => kv.get(key)))
    ).map(({ value }) => value),
    ["42", "true", "42n", ["1", "{a"]],
  );
  await kv.close();
  const key = await openkv("-d", db, "get", "2026-01-01");
  assert.equal(key.out, '"x"\n');
});

test("a duration has units, and a number alone is milliseconds", async () => {
  const db = path("durations.db");
  const run = await openkv("-d", db, "set", "k", "v", "--expire-in", "1h30m");
  assert.equal(run.code, 0, run.err);
  const { ttl } = JSON.parse((await openkv("-d", db, "ttl", "k", "--json")).out);
  assert.ok(ttl > 5_000_000 && ttl <= 5_400_000, `${ttl}`);
  const wrong = await openkv("-d", db, "set", "k", "v", "--expire-in", "soon");
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /30s, 1h30m or 2d/);
});

const BYTES = Uint8Array.from({ length: 256 }, (_, n) => n);

test("bytes, text and JSON go from one command into the other", {
  skip: withoutShell,
}, async () => {
  const db = path("raw.db");
  const value = { text: "ü", list: [1, null, true] };
  const kv = await openKv(db);
  await kv.set(["bytes"], BYTES);
  await kv.set(["text"], "two\nlines\n");
  await kv.set(["json"], value);
  await kv.set(["any"], new Map([[1n, new Date(0)]]));
  await kv.close();
  const on = `$OPENKV -d ${db}`;
  for (const line of [
    `${on} get bytes --raw | ${on} set copy bytes --raw -`,
    `${on} get text --raw | ${on} set copy text --raw - --as text`,
    `${on} get json --raw | ${on} set copy json --raw - --as json`,
    `${on} get any --json | ${on} set copy any --raw - --as entry`,
    `${on} set copy literal --raw 5`,
  ]) {
    const { code, err } = await shell(line);
    assert.equal(code, 0, `${line}: ${err}`);
  }
  const copies = (await contents(db)).filter(([key]) => key[0] === "copy");
  assert.deepEqual(copies, [
    [["copy", "any"], new Map([[1n, new Date(0)]])],
    [["copy", "bytes"], BYTES],
    [["copy", "json"], value],
    [["copy", "literal"], "5"],
    [["copy", "text"], "two\nlines\n"],
  ]);
  const bad = await openkv("-d", db, "set", "k", "--raw", "-", "--as", "json", { input: "{" });
  assert.equal(bad.code, 2);
  assert.match(bad.err, /the input is not JSON/);
});

// Each byte of `café` in Latin-1 that is not ASCII was stored as U+FFFD, with exit code 0.
test("text that is not UTF-8 is refused, and stored only as bytes", async () => {
  const db = path("latin1.db");
  const file = path("latin1.txt");
  writeFileSync(file, Buffer.from('"café"', "latin1"));
  const input = Buffer.from('{ set: "k", value: "café" }', "latin1");
  for (const args of [
    ["set", "k", "--file", file, "--text"],
    ["set", "k", "--file", file, "--as", "json"],
    ["set", "k", "--file", file, "--as", "entry"],
    ["atomic", { input }],
  ]) {
    const { code, err } = await openkv("-d", db, ...args);
    assert.equal(code, 2, err);
    assert.match(err, /^openkv: the input is not UTF-8: .*--as bytes stores it as it is\n$/);
  }
  assert.equal((await openkv("-d", db, "set", "k", "--file", file)).code, 0);
  assert.deepEqual(await contents(db), [[["k"], new Uint8Array(readFileSync(file))]]);
});

test("plain JSON says of values what docs/cli.md says", async () => {
  const cases = [
    [1n, "1"],
    [-(2n ** 53n), '"-9007199254740992"'],
    [new KvU64(7n), "7"],
    [Number.NaN, "null"],
    [undefined, "null"],
    [{ a: undefined, b: [undefined] }, '{"b":[null]}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [new Date(Number.NaN), "null"],
    [new Uint8Array([1, 2, 255]), '"AQL/"'],
    [new Uint8Array([0, 1, 2]).subarray(1), '"AQI="'],
    [new Uint8Array([1]).buffer, '"AQ=="'],
    [new Float64Array([0.5, 1]), "[0.5,1]"],
    [new BigInt64Array([1n]), "[1]"],
    [new Map([["a", 1n]]), '{"a":1}'],
    [new Map([[1, 2]]), "[[1,2]]"],
    [new Set([1, new Set()]), "[1,[]]"],
    [/a/g, '"/a/g"'],
    [new TypeError("no"), '{"name":"TypeError","message":"no"}'],
    [new Blob(["x"]), '"eA=="'],
    [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  ];
  for (const [value, text] of cases) assert.equal(await plainValue(value), text);
  const round = { a: {} };
  round.a.b = round;
  assert.equal(await plainValue(round), '{"a":{"b":null}}');
  assert.equal(plainKey(["a", 1, 2n, true, new Uint8Array([255])]), '["a",1,2,true,"/w=="]');
});

test("--json=plain prints it everywhere", async () => {
  const db = path("plain.db");
  const on = (...args) => openkv("-d", db, "--json=plain", ...args);
  await on("set", "k", "{ n: 5n, at: date(0) }", "--expire-in", "3600000");
  const [line, listed, keys] = await Promise.all([on("get", "k"), on("list"), on("list", "-k")]);
  const { key, value, versionstamp, expireAt } = JSON.parse(line.out);
  assert.deepEqual([key, value], [["k"], { n: 5, at: "1970-01-01T00:00:00.000Z" }]);
  assert.match(versionstamp, /^\w{20}$/);
  assert.ok(Math.abs(Date.parse(expireAt) - Date.now() - 3_600_000) < 60_000);
  assert.equal(listed.out, line.out);
  assert.deepEqual(JSON.parse(keys.out), { key, versionstamp, expireAt });
  const wrong = await openkv("-d", db, "--json=xml", "get", "k");
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /the forms are --json, --json=lossless and --json=plain/);
});

test("what jq makes of it can be stored", {
  skip: withoutShell || (spawnSync("jq", ["--version"]).error !== undefined && "needs jq"),
}, async () => {
  const db = path("jq.db");
  const on = `$OPENKV -d ${db}`;
  const line = `${on} set k '{ n: 1 }' && ${on} get k --raw | jq -c '.n += 1' | ${on} set k --raw - --as json`;
  assert.equal((await shell(line)).code, 0);
  assert.deepEqual(await contents(db), [[["k"], { n: 2 }]]);
});

test("get and list tell when an entry ends", async () => {
  const db = path("ends.db");
  const on = (...args) => openkv("-d", db, ...args);
  await on("set", "k", "1", "--expire-in", "3600000");
  await on("set", "stays", "2");
  const [got, stays, listed, keys] = await Promise.all([
    on("get", "k"),
    on("get", "stays"),
    on("list"),
    on("list", "--keys-only"),
  ]);
  assert.equal(got.out, "1\n");
  assert.match(got.err, /^expires at \d{4}-\d\d-\d\dT\S+Z\n$/);
  assert.equal(stays.err, "");
  for (const { out } of [listed, keys]) {
    assert.match(out, /^\["k"\] @\w{20} until \d{4}-\S+Z\n/);
    assert.match(out, /^\["stays"\] @\w{20}$/m);
  }
});

test("a file becomes what --as says", async () => {
  const db = path("files.db");
  writeFileSync(path("value.json"), '{ "a": [1] }\n');
  const set = (...args) => openkv("-d", db, "set", ...args);
  await set("json", "--file", path("value.json"), "--as", "json");
  await set("text", "--file", path("value.json"), "--as", "text");
  await set("bytes", "--file", path("value.json"));
  const [[, bytes], [, json], [, text]] = await contents(db);
  assert.deepEqual(json, { a: [1] });
  assert.equal(text, '{ "a": [1] }\n');
  assert.deepEqual(bytes, new Uint8Array(Buffer.from(text)));
  assert.equal((await set("k", "1", "--as", "json")).code, 2);
});
