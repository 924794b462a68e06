// Duty: the codes of refusals: each input that a request can hold, in each place and over HTTP, and mistakes of
// the code, which have none.
//
// A handler of HTTP had to guess which TypeError was its user's fault, by its message: a malformed query, a bad
// cursor, too large a value and a wrong key had no code. What a server found gave a TypeError where a file
// gave a RangeError's code over HTTP, and 400 where it gave 413 for a body.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { KvU64 } from "../../index.mjs";
import { startServer } from "../kit/server.mjs";
import { freshPath, onEachAndServed, onEveryKind, onReplica } from "./databases.mjs";

const AFTER_EVERY_DATE = 8.64e15 + 1;
const long = (bytes) => "k".repeat(bytes);
const many = (count) => Array.from({ length: count }, (_, i) => ["key", i]);
const absent = (key) => ({ key, versionstamp: null });
const deep = () => Array.from({ length: 1001 }).reduce((inner) => [inner], 1);
const next = (kv, selector, options) => kv.list(selector, options).next();

/** What a request can hold: the class and the code. */
const INPUTS = {
  "a key of a wrong type": [(kv) => kv.get("user"), TypeError, "INVALID"],
  "no key": [(kv) => kv.get(undefined), TypeError, "INVALID"],
  "a part of a wrong type": [(kv) => kv.set([{ id: 1 }], 1), TypeError, "INVALID"],
  "an empty key": [(kv) => kv.set([], 1), TypeError, "INVALID"],
  "a key over the limit, read": [(kv) => kv.get([long(2100)]), TypeError, "TOO_LARGE"],
  "a key over the limit, written": [(kv) => kv.set([long(2100)], 1), TypeError, "TOO_LARGE"],
  "a bigint in a key": [(kv) => kv.set([1n << 2040n], 1), TypeError, "TOO_LARGE"],
  "too many keys": [(kv) => kv.getMany(many(11)), TypeError, "TOO_LARGE"],
  "no array of keys": [(kv) => kv.getMany("ab"), TypeError, "INVALID"],
  "a value over the limit": [(kv) => kv.set(["a"], long(70_000)), TypeError, "TOO_LARGE"],
  "bytes over the limit": [(kv) => kv.set(["a"], new Uint8Array(70_000)), TypeError, "TOO_LARGE"],
  "a value that is too deep": [(kv) => kv.set(["a"], deep()), RangeError, "RANGE"],
  "an expiry of a wrong type": [(kv) => kv.set(["a"], 1, { expireIn: "5" }), TypeError, "INVALID"],
  "an expiry that is no date": [
    (kv) => kv.set(["a"], 1, { expireAt: new Date("x") }),
    TypeError,
    "INVALID",
  ],
  "an expiry after every date": [
    (kv) => kv.set(["a"], 1, { expireAt: AFTER_EVERY_DATE }),
    TypeError,
    "INVALID",
  ],
  "a consistency of another name": [
    (kv) => kv.get(["a"], { consistency: "weak" }),
    TypeError,
    "INVALID",
  ],
  "a limit of a list": [(kv) => next(kv, { prefix: [] }, { limit: -1 }), Error, "INVALID"],
  "a batch size": [(kv) => next(kv, { prefix: [] }, { batchSize: 0.5 }), Error, "INVALID"],
  "a limit of a page": [(kv) => kv.paginate({ prefix: [] }, { limit: 5000 }), TypeError, "INVALID"],
  "a limit that is no number": [
    (kv) => kv.paginate({ prefix: [] }, { limit: Number.NaN }),
    TypeError,
    "INVALID",
  ],
  "a cursor": [(kv) => next(kv, { prefix: [] }, { cursor: "?" }), TypeError, "INVALID"],
  "a cursor of a page": [
    (kv) => kv.paginate({ prefix: [] }, { cursor: "?" }),
    TypeError,
    "INVALID",
  ],
  "a prefix of a wrong type": [(kv) => next(kv, { prefix: "user" }), TypeError, "INVALID"],
  "half a range": [(kv) => next(kv, { start: ["a"] }), TypeError, "INVALID"],
  "a range that ends before it starts": [
    (kv) => next(kv, { start: ["b"], end: ["a"] }),
    TypeError,
    "INVALID",
  ],
  "an operator of a filter": [
    (kv) => next(kv, { prefix: [] }, { where: { age: { $near: 5 } } }),
    TypeError,
    "INVALID",
  ],
  "a filter that is none": [
    (kv) => next(kv, { prefix: [] }, { where: "age > 5" }),
    TypeError,
    "INVALID",
  ],
  "a filter over the limit": [
    (kv) => next(kv, { prefix: [] }, { where: { name: long(300_000) } }),
    TypeError,
    "TOO_LARGE",
  ],
  "a filter of a count": [
    (kv) => kv.count({ prefix: [] }, { where: { $or: 5 } }),
    TypeError,
    "INVALID",
  ],
  "a versionstamp of a check": [
    (kv) =>
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: "0" })
        .set(["a"], 1)
        .commit(),
    TypeError,
    "INVALID",
  ],
  "a check without a key": [
    (kv) => kv.atomic().check({ versionstamp: null }).commit(),
    TypeError,
    "INVALID",
  ],
  "too many checks": [
    (kv) =>
      kv
        .atomic()
        .check(...many(101).map(absent))
        .commit(),
    TypeError,
    "TOO_LARGE",
  ],
  "too many mutations": [
    (kv) =>
      kv
        .atomic()
        .mutate(...many(1001).map((key) => ({ type: "delete", key })))
        .commit(),
    TypeError,
    "TOO_LARGE",
  ],
  "too large a commit": [
    (kv) =>
      many(13)
        .reduce((op, key) => op.set(key, new Uint8Array(65_000)), kv.atomic())
        .commit(),
    TypeError,
    "TOO_LARGE",
  ],
  "a type of a mutation": [
    async (kv) => kv.atomic().mutate({ type: "add", key: ["a"] }),
    TypeError,
    "INVALID",
  ],
  "a sum of a text": [async (kv) => kv.atomic().sum(["a"], "1"), TypeError, "INVALID"],
  "a sum on a text": [
    async (kv) => {
      await kv.set(["text"], "no number");
      await kv.atomic().sum(["text"], 1n).commit();
    },
    TypeError,
    "INVALID",
  ],
  "a sum beyond its bounds": [
    async (kv) => {
      await kv.set(["n"], 5);
      await kv.atomic().sum(["n"], 10, { max: 6 }).commit();
    },
    RangeError,
    "RANGE",
  ],
  "an append to a text": [
    async (kv) => {
      await kv.set(["text"], "no array");
      await kv.atomic().append(["text"], [1]).commit();
    },
    TypeError,
    "INVALID",
  ],
  "an append that makes a value too large": [
    async (kv) => {
      await kv.set(["items"], [long(40_000)]);
      await kv
        .atomic()
        .append(["items"], [long(40_000)])
        .commit();
    },
    TypeError,
    "TOO_LARGE",
  ],
  "an expiry of a touch": [(kv) => kv.touch(["a"], { expireIn: -1 }), TypeError, "INVALID"],
  "a deletion without bounds": [(kv) => kv.deleteMany({ prefix: undefined }), TypeError, "INVALID"],
  "a limit of a deletion": [
    (kv) => kv.deleteMany({ prefix: ["a"] }, { limit: 0 }),
    TypeError,
    "INVALID",
  ],
  "a message over the limit": [(kv) => kv.enqueue(long(70_000)), TypeError, "TOO_LARGE"],
  "a delay of a wrong type": [(kv) => kv.enqueue(1, { delay: "5" }), TypeError, "INVALID"],
  "a delay beyond a month": [(kv) => kv.enqueue(1, { delay: 1e12 }), TypeError, "INVALID"],
  "too many retries": [
    (kv) => kv.enqueue(1, { backoffSchedule: [1, 1, 1, 1, 1, 1] }),
    TypeError,
    "TOO_LARGE",
  ],
  "a name of a queue": [async (kv) => kv.queue(long(300)), TypeError, "TOO_LARGE"],
  "an empty name of a queue": [async (kv) => kv.queue(""), TypeError, "INVALID"],
  "a priority": [(kv) => kv.queue("q").enqueue(1, { priority: 1000 }), TypeError, "INVALID"],
  "a deduplication key": [
    (kv) => kv.queue("q").enqueue(1, { deduplicationKey: long(3000) }),
    TypeError,
    "TOO_LARGE",
  ],
  "the id of a message": [(kv) => kv.queue("q").dead.get("x"), TypeError, "INVALID"],
  "a cursor of dead letters": [
    (kv) => kv.queue("q").dead.list({ cursor: "?" }),
    TypeError,
    "INVALID",
  ],
  "a moment of a watch": [
    async (kv) => kv.watch({ prefix: [] }, { since: "yesterday" }),
    TypeError,
    "INVALID",
  ],
  "too many keys of a watch": [async (kv) => kv.watch(many(11)), TypeError, "TOO_LARGE"],
  "the start of a history": [
    async (kv) => kv.history(["a"], { before: "yesterday" }),
    TypeError,
    "INVALID",
  ],
  "a query of a wrong type": [(kv) => kv.search(["d"], 5), TypeError, "INVALID"],
  "a cursor of a search": [(kv) => kv.search(["d"], "word", { cursor: "?" }), TypeError, "INVALID"],
  "a number of 64 bits, below": [async () => new KvU64(-1n), RangeError, "RANGE"],
  "a number of 64 bits, above": [async () => new KvU64(1n << 64n), RangeError, "RANGE"],
  "a number of 64 bits of a text": [async () => new KvU64("5"), TypeError, "INVALID"],
};

/** What only code can do wrong. */
const MISTAKES = {
  "a misspelt option": (kv) => kv.set(["a"], 1, { expiresIn: 5 }),
  "an unknown option": (kv) => kv.paginate({ prefix: [] }, { page: 5 }),
  "an unknown bound": (kv) => next(kv, { perfix: [] }),
  "a missing value": (kv) => kv.set(["a"]),
  "a missing selector": (kv) => next(kv),
  "options that are no object": (kv) => kv.paginate({ prefix: [] }, 5),
  "a handler that is no function": (kv) => kv.listenQueue("handler"),
  "a transaction that is no function": (kv) => kv.transaction("run"),
  "a signal that is none": (kv) => kv.paginate({ prefix: [] }, { signal: "stop" }),
  "a function as a value": (kv) => kv.set(["a"], () => 1),
  "an operation that is awaited": async (kv) => await kv.atomic().set(["a"], 1),
  "a list that is used as an array": async (kv) => [...kv.list({ prefix: [] })],
  "a cursor before the first entry": async (kv) => kv.list({ prefix: [] }).cursor,
};

/** Under Deno with its KV this is Deno's own class, which has no codes. */
const ownU64 = !globalThis.Deno?.KvU64;

async function refusal(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was refused");
}

function suite(fresh) {
  test("what a request can hold has a code", async () => {
    const kv = await fresh();
    for (const [name, [call, type, code]] of Object.entries(INPUTS)) {
      if (name.startsWith("a number of 64 bits") && !ownU64) continue;
      const error = await refusal(() => call(kv));
      assert.deepEqual([error.constructor, error.code], [type, code], `${name}: ${error.stack}`);
    }
  });

  test("what only code can do wrong has none", async () => {
    const kv = await fresh();
    for (const [name, call] of Object.entries(MISTAKES)) {
      const error = await refusal(() => call(kv));
      assert.equal("code" in error, false, `${name}: ${error.stack}`);
    }
  });
}

onEveryKind("codes", suite);
onReplica("codes", suite);

onEachAndServed("codes of searches", (fresh) => {
  test("a malformed query, one over the limit, and a wrong description of an index", async () => {
    const kv = await fresh();
    await kv.createIndex({ prefix: ["d"], fields: ["t"], name: "docs" });
    for (const [call, code] of [
      [() => kv.search(["d"], 'red AND "'), "INVALID"],
      [() => kv.search(["d"], long(100_000)), "TOO_LARGE"],
      [() => kv.search(["d"], "word", { highlight: { before: long(5000) } }), "TOO_LARGE"],
      [() => kv.search(["nothing"], "word"), "INVALID"],
      [() => kv.createIndex({ prefix: ["e"], fields: [] }), "INVALID"],
      [() => kv.createIndex({ prefix: ["e"], fields: ["a", "a"] }), "INVALID"],
      [() => kv.createIndex({ prefix: ["e"], fields: ["f"], tokenize: "x" }), "INVALID"],
    ]) {
      const error = await refusal(call);
      assert.deepEqual([error.constructor, error.code], [TypeError, code], error.stack);
    }
  });

  test("a deletion that is whole, of more entries than a commit has", async () => {
    const kv = await fresh({ limits: { mutationsMax: 5 } });
    for (const key of many(7)) await kv.set(key, 1);
    const error = await refusal(() => kv.deleteMany({ prefix: ["key"] }, { atomic: true }));
    assert.deepEqual([error.constructor, error.code], [TypeError, "TOO_LARGE"], error.stack);
  });
});

describe("codes over HTTP", () => {
  const typed = { "content-type": "application/json" };
  /** More than a server takes in a body of JSON. */
  const BODY_BYTES = 20_000_000;
  const requests = {
    "a key": ["GET", "/keys?key=[", undefined, 400, "INVALID"],
    "a key over the limit": ["PUT", `/keys/${long(2100)}`, "1", 413, "TOO_LARGE"],
    "a prefix over the limit": [
      "GET",
      `/keys?prefix=["${long(2100)}"]`,
      undefined,
      413,
      "TOO_LARGE",
    ],
    "a body over the limit": ["PUT", "/keys/a", `"${long(BODY_BYTES)}"`, 413, "TOO_LARGE"],
    "a value": ["PUT", "/keys/a", "{", 400, "INVALID"],
    "an expiry": ["PUT", "/keys/a?expireIn=x", "1", 400, "INVALID"],
    "a limit": ["GET", "/keys?prefix=[]&limit=5000", undefined, 400, "INVALID"],
    "a cursor": ["GET", "/keys?prefix=[]&cursor=?", undefined, 400, "INVALID"],
    "a filter": ["POST", "/keys/list", { prefix: [], where: { a: { $near: 5 } } }, 400, "INVALID"],
    "too many keys": ["POST", "/keys/batch", { keys: many(2000) }, 413, "TOO_LARGE"],
    "a key of a batch": ["POST", "/keys/batch", { keys: [["a"], 5] }, 400, "INVALID"],
    "a versionstamp": [
      "POST",
      "/atomic",
      { checks: [{ key: ["a"], versionstamp: "0" }], mutations: [] },
      400,
      "INVALID",
    ],
    "too many checks": ["POST", "/atomic", { checks: many(2000).map(absent), mutations: [] }],
    "a sum on a text": [
      "POST",
      "/atomic",
      { mutations: [{ type: "sum", key: ["text"], value: 1 }] },
      400,
      "INVALID",
    ],
    "a name of a queue": ["GET", `/queue/stats?queue=${long(3000)}`, undefined, 413, "TOO_LARGE"],
  };

  test("the same codes, with the status of the table", async () => {
    const accessToken = "the-token-of-these-tests";
    const { url } = await startServer({ path: freshPath(), accessToken });
    const ask = async (method, path, body) => {
      const answer = await fetch(new URL(`/api${path}`, url), {
        method,
        headers: { authorization: `Bearer ${accessToken}`, ...(body === undefined ? {} : typed) },
        body: typeof body === "object" ? JSON.stringify(body) : body,
      });
      return [answer.status, (await answer.json()).code];
    };
    await ask("PUT", "/keys/text", '"no number"');
    for (const [name, [method, path, body, status = 413, code = "TOO_LARGE"]] of Object.entries(
      requests,
    )) {
      assert.deepEqual(await ask(method, path, body), [status, code], name);
    }
  });

  test("a refusal about one of many names it, in the words of requests", async () => {
    const accessToken = "the-token-of-these-tests";
    const { url } = await startServer({ path: freshPath(), accessToken });
    for (const [path, body, words] of [
      [
        "/atomic",
        { checks: [absent(["a"]), { key: ["b"], versionstamp: "0" }], mutations: [] },
        /Invalid check: checks\[1\]\.versionstamp \(key \["b"\]\) must be 20 .*received "0"/,
      ],
      ["/keys/batch", { keys: [["a"], ["b", null]] }, /^keys\[1\]: key\[1\]: /],
      ["/keys/batch", { keys: [["a"], []] }, /^keys\[1\] has no parts/],
      ["/search", { prefix: ["d"], query: "x" }, /no index covers this prefix; .* POST \/indexes/],
    ]) {
      const answer = await fetch(new URL(`/api${path}`, url), {
        method: "POST",
        headers: { authorization: `Bearer ${accessToken}`, ...typed },
        body: JSON.stringify(body),
      });
      const { detail, code } = await answer.json();
      assert.match(detail, words);
      assert.equal(code, "INVALID");
      assert.doesNotMatch(detail, /kv\.|openKv/);
    }
  });
});

test("each refusal of the library says whether a request can cause it", () => {
  const folder = new URL("../../js/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    // The entries beside the main one throw errors of their own: no server runs them for a request.
    const others = /^(?:cli|native|drivers|otel|testing)\W|model\WErrors\.ts$/i;
    return /\.ts$/.test(name) && !others.test(name);
  });
  assert.ok(files.length > 50);
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), "utf8");
    const bare = text.match(/(?<!coded\("[A-Z_]+", )new (?:TypeError|RangeError)\(.*/);
    assert.equal(bare?.[0], undefined, `${name}: use invalid, tooLarge, outOfRange or misuse`);
  }
});
