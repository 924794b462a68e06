// Duty: full-text indexes and searches over the HTTP API, against those of the JavaScript API.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../serving.mjs";
import { TYPED, serveApi } from "./calling.mjs";

/** A server with an index and entries, and the handle that made them. */
async function filled() {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const index = await kv.createIndex({ prefix: ["p"], fields: ["name", "tags"] });
  await index.ready();
  for (let n = 0; n < 25; n++) {
    const name = `Red bike ${"word ".repeat(n)}`;
    await kv.set(["p", n], { name, even: n % 2 === 0, tags: ["red", "n"] });
  }
  return { server, call, kv };
}

test("a search has the pages, scores, cursors and snippets of the JavaScript API", async () => {
  const { call, kv } = await filled();
  const same = async (body, page) => {
    assert.deepEqual(body.cursor, page.cursor);
    assert.deepEqual([body.hasMore, body.complete], [page.hasMore, page.complete]);
    const plain = ({ key, value, versionstamp, score, highlights }) => ({
      ...{ key, value, versionstamp, score },
      ...(highlights && { highlights }),
    });
    assert.deepEqual(body.entries, page.entries.map(plain));
  };
  let cursor = null;
  let seen = 0;
  do {
    const next = cursor === null ? "" : `&cursor=${cursor}`;
    const { body } = await call("GET", `/search?prefix=p&query=red&limit=10&highlight${next}`);
    const page = await kv.search(["p"], "red", { limit: 10, highlight: true, cursor });
    await same(body, page);
    seen += body.entries.length;
    ({ cursor } = body);
  } while (cursor !== null);
  assert.equal(seen, 25);
  const options = {
    where: { even: true },
    limit: 5,
    offset: 2,
    highlight: { before: "[", after: "]", ellipsis: "~", terms: 3 },
  };
  const asked = { prefix: ["p"], query: '"red bike"', mode: "query", ...options };
  const { body } = await call("POST", "/search", { body: asked });
  await same(body, await kv.search(["p"], '"red bike"', options));
  assert.match(body.entries[0].highlights.name, /^\[Red bike\]/);
  const plain = await call("POST", "/search", { body: { prefix: ["p"], query: "bike" } });
  assert.equal(plain.body.entries.length, 20);
  assert.equal("highlights" in plain.body.entries[0], false);
});

test("values of a search are typed if the client asks for it, or it says what is lost", async () => {
  const { call, kv } = await filled();
  await kv.set(["p", 42n], { name: "unique", n: 5n });
  const body = { prefix: ["p"], query: "unique" };
  const typed = await call("POST", "/search", { body, headers: { accept: TYPED } });
  const [found] = typed.body.entries;
  assert.deepEqual(found.key[1], { type: "bigint", value: "42" });
  assert.deepEqual(found.value.value.n, { type: "bigint", value: "5" });
  const plain = await call("POST", "/search", { body });
  assert.equal(plain.headers.get("openkv-lossy"), "true");
  assert.equal(typed.headers.get("openkv-lossy"), null);
  const cbor = { accept: "application/cbor" };
  const inCbor = await call("POST", "/search", { body, headers: cbor });
  assert.equal(inCbor.headers.get("content-type"), "application/cbor");
  const bytes = { accept: "application/octet-stream" };
  assert.equal((await call("POST", "/search", { body, headers: bytes })).status, 406);
});

test("mistakes of a search are named", async () => {
  const { call } = await filled();
  const asked = (body) =>
    call("POST", "/search", { body: { prefix: ["p"], query: "red", ...body } });
  for (const [body, fault] of [
    [
      { query: '"', mode: "query" },
      /malformed query at position 0: .*AND, OR, NOT and parentheses; with mode=words/,
    ],
    [{ mode: "text" }, /mode must be words or query/],
    [{ limit: 0 }, /limit/],
    [{ limit: 1001 }, /limit/],
    [{ cursor: "x" }, /cursor/],
    [{ cursor: "AAAAAAAAAAAAAAAAAAAAAA", offset: 1 }, /exclude/],
    [{ highlight: { terms: 0 } }, /terms/],
    [{ where: { $no: 1 } }, /\$no/],
    [{ other: 1 }, /other/],
  ]) {
    const { status, body: problem } = await asked(body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(problem.detail, fault);
  }
  const many = await asked({ query: "w ".repeat(129) });
  assert.deepEqual([many.status, many.body.code], [413, "TOO_LARGE"]);
  assert.match(many.body.detail, /too many words \(max 128\): 129 given/);
  assert.equal((await call("GET", "/search?prefix=p")).status, 400);
  const none = await call("GET", "/search?prefix=none&query=red");
  assert.equal(none.status, 400, "there is no index");
});

// An address of mail, C++ and don't were errors of syntax.
test("by default a query is any text, of which every word is found", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  await kv.createIndex({ prefix: ["t"], fields: ["text"] });
  await kv.set(["t", 1], { text: "Learn C++ and don't panic" });
  await kv.set(["t", 2], { text: "write to ada@x.org AND wait" });
  const found = async (query, more = "") => {
    const { body } = await call(
      "GET",
      `/search?prefix=t&query=${encodeURIComponent(query)}${more}`,
    );
    return body.entries.map(({ key }) => key[1]);
  };
  for (const [query, keys] of [
    ["C++", [1]],
    ["don't", [1]],
    ["ada@x.org", [2]],
    ["AND", [1, 2]],
    ["panic AND", [1]],
    ["panic OR wait", []],
    ['"', []],
    ["", []],
    ["(+*:^", []],
    ["\0", []],
  ]) {
    assert.deepEqual((await found(query)).sort(), keys, query);
    assert.deepEqual((await found(query, "&mode=words")).sort(), keys, query);
  }
  assert.deepEqual((await found("panic OR wait", "&mode=query")).sort(), [1, 2]);
});

test("indexes are created, replaced, listed and dropped", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const create = async (body) => (await call("POST", "/indexes", { body })).body;
  const key = [{ type: "Uint8Array", value: "AP8" }, 1.5, { type: "number", value: "-0" }];
  const first = await create({ prefix: ["a", ...key], fields: ["x"], prefixLengths: [2] });
  const same = await kv.createIndex({
    prefix: ["a", new Uint8Array([0, 255]), 1.5, -0],
    fields: ["x"],
    prefixLengths: [2],
  });
  assert.equal(first.name, same.name);
  const listed = async () => (await call("GET", "/indexes")).body.indexes;
  const described = ({ name, fields, tokenize, prefixLengths, state, indexed, documents }) => ({
    ...{ name, fields, tokenize, prefixLengths, state, indexed, documents },
  });
  await same.ready();
  assert.deepEqual((await listed()).map(described), (await kv.listIndexes()).map(described));
  await create({ prefix: ["b"], fields: ["x"] });
  const other = await create({ prefix: ["b"], fields: ["y"], tokenize: "porter", name: "second" });
  assert.deepEqual([other.name, other.fields, other.tokenize], ["second", ["y"], "porter"]);
  const kept = { prefix: ["b"], fields: ["z"], replace: false };
  assert.equal((await call("POST", "/indexes", { body: kept })).status, 400);
  assert.deepEqual((await listed()).map(({ name }) => name).sort(), [first.name, "second"].sort());
  const drop = async (query) => (await call("DELETE", `/indexes?${query}`)).body;
  assert.deepEqual(await drop("name=second"), { ok: true });
  assert.deepEqual(await drop("prefix=b"), { ok: false });
  assert.deepEqual(await drop(`name=${encodeURIComponent(first.name)}`), { ok: true });
  assert.deepEqual(await listed(), []);
  assert.equal((await call("DELETE", "/indexes")).status, 400);
  assert.equal(
    (await call("POST", "/indexes", { body: { prefix: ["a"], fields: [] } })).status,
    400,
  );
  const tokenize = { prefix: ["a"], fields: ["x"], tokenize: "none" };
  assert.equal((await call("POST", "/indexes", { body: tokenize })).status, 400);
});
