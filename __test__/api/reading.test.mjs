// Duty: what reads offer beyond Deno's: where, keysOnly, depth, withExpiry, count, paginate and
// deleteMany, with their argument matrix. (Against a naive model: __test__/property.)

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { all, onEveryKind, onNearReplica, onReplica, open } from "./databases.mjs";

const PREFIX = { prefix: ["a"] };
const CLOSED = { name: "BadResource", code: "CLOSED" };
/** Trials until a write comes between two commits. */
const TRIALS_MAX = 20;

const rejecting = [
  ["count: no selector", (kv) => kv.count(), /kv.count: expected a selector: received undefined/],
  ["ttl: nothing", (kv) => kv.ttl(), /kv.ttl: key must be an array: received undefined/],
  [
    "touch: nothing",
    (kv) => kv.touch(undefined, { expireIn: 5 }),
    /kv.touch: key must be an array/,
  ],
  [
    "persist: text",
    (kv) => kv.persist("a"),
    /kv.persist: key must be an array: received the string "a"/,
  ],
  ["count: half a selector", (kv) => kv.count({ start: ["a"] }), /Selector must specify either/],
  ["count: a key of the wrong type", (kv) => kv.count({ prefix: [{}] }), /expected string, number/],
  [
    "count: a key over the limit",
    (kv) => kv.count({ prefix: ["k".repeat(2048)] }),
    /Key too large/,
  ],
  ["count: options", (kv) => kv.count(PREFIX, 5), /kv.count: options must be an object/],
  [
    "count: misspelt",
    (kv) => kv.count(PREFIX, { were: {} }),
    /unknown option 'were': known are where/,
  ],
  [
    "count: where",
    (kv) => kv.count(PREFIX, { where: [] }),
    /where must be an object.*received the array \[\]/,
  ],
  [
    "count: where, a function",
    (kv) => kv.count(PREFIX, { where: { a: () => 1 } }),
    /could not be cloned/,
  ],
  [
    "count: an operator",
    (kv) => kv.count(PREFIX, { where: { a: { $gte: null } } }),
    /^TypeError: where\.a\.\$gte: takes/,
  ],
  [
    "count: nested",
    (kv) => kv.count(PREFIX, { where: nested(33) }),
    /nested too deeply \(max 32 levels\)/,
  ],
  [
    "count: wide",
    (kv) => kv.count(PREFIX, { where: { a: { $in: Array(1000).fill(1) } } }),
    /max 1000 in one/,
  ],
  [
    "list: where",
    (kv) => kv.list(PREFIX, { where: { $or: [{ x: {} }] } }).next(),
    /where\.\$or\[0\]\.x/,
  ],
  ["paginate: nothing", (kv) => kv.paginate(), /kv.paginate: a selector with a prefix/],
  ["paginate: no selector", (kv) => kv.paginate({}), /Selector must specify either/],
  ["paginate: misspelt", (kv) => kv.paginate({ ...PREFIX, limt: 5 }), /unknown option 'limt'/],
  ...[0, 1001, 1.5, "5", null].map((limit) => [
    `paginate: limit ${limit}`,
    (kv) => kv.paginate({ ...PREFIX, limit }),
    /limit must be an integer from 1 to 1000: received/,
  ]),
  ["paginate: cursor", (kv) => kv.paginate({ ...PREFIX, cursor: 5 }), /cursor must be a string/],
  ["paginate: a bad cursor", (kv) => kv.paginate({ ...PREFIX, cursor: "%" }), /invalid cursor/],
  [
    "paginate: reverse",
    (kv) => kv.paginate({ ...PREFIX, reverse: 1 }),
    /reverse must be a boolean/,
  ],
  ["paginate: where", (kv) => kv.paginate({ ...PREFIX, where: 1 }), /where must be an object/],
  [
    "deleteMany: nothing",
    (kv) => kv.deleteMany(),
    /kv.deleteMany: expected keys or a selector: received undefined/,
  ],
  ["deleteMany: no key", (kv) => kv.deleteMany(["a"]), /keys\[0\] must be a key/],
  ["deleteMany: an empty key", (kv) => kv.deleteMany([["a"], []]), /keys\[1\] cannot be empty/],
  [
    "deleteMany: a long key",
    (kv) => kv.deleteMany([["k".repeat(2048)]]),
    /Key too large for write/,
  ],
  [
    "deleteMany: misspelt",
    (kv) => kv.deleteMany(PREFIX, { atomc: true }),
    /unknown option 'atomc'/,
  ],
  ["deleteMany: limit", (kv) => kv.deleteMany(PREFIX, { limit: 0 }), /limit must be a positive/],
  [
    "deleteMany: descendants",
    (kv) => kv.deleteMany(["a"], { descendants: 1 }),
    /descendants must be a boolean: received 1/,
  ],
  [
    "deleteMany: descendants of a selector",
    (kv) => kv.deleteMany(PREFIX, { descendants: true }),
    /with descendants, expected a key \(an array\): received/,
  ],
  [
    "deleteMany: descendants of the empty key",
    (kv) => kv.deleteMany([], { descendants: true }),
    /the key cannot be empty: deleteMany\({ prefix: \[\] }\)/,
  ],
  [
    "deleteMany: descendants of keys",
    (kv) => kv.deleteMany([["a"]], { descendants: true }),
    /expected string, number/,
  ],
  ["deleteMany: atomic", (kv) => kv.deleteMany(PREFIX, { atomic: 1 }), /atomic must be a boolean/],
  ["deleteMany: where", (kv) => kv.deleteMany(PREFIX, { where: { $x: 1 } }), /where\.\$x: unknown/],
  ["get: withExpiry", (kv) => kv.get(["a"], { withExpiry: 1 }), /withExpiry must be a boolean/],
  ["get: misspelt", (kv) => kv.get(["a"], { withExpiri: true }), /did you mean 'withExpiry'/],
  ["getMany: withExpiry", (kv) => kv.getMany([["a"], null], { withExpiry: true }), /Invalid range/],
  [
    "getMany: withExpiry, too many",
    (kv) => kv.getMany(Array(11).fill(["a"]), { withExpiry: true }),
    /Too many ranges \(max 10\)/,
  ],
];

const throwing = [
  [
    "list: where",
    (kv) => kv.list(PREFIX, { where: new Date() }),
    /where must be an object.*received a Date/,
  ],
  ["watch: since", (kv) => kv.watch([["a"]], { since: "0".repeat(20) }), /since is for a selector/],
  ["list: keysOnly", (kv) => kv.list(PREFIX, { keysOnly: 1 }), /keysOnly must be a boolean/],
  [
    "list: withExpiry",
    (kv) => kv.list(PREFIX, { withExpiry: "yes" }),
    /withExpiry must be a boolean/,
  ],
  ...[0, -1, 1.5, "1", null].map((depth) => [
    `list: depth ${depth}`,
    (kv) => kv.list(PREFIX, { depth }),
    /depth must be a positive integer/,
  ]),
  ["list: no prefix", (kv) => kv.list({ start: ["a"], end: ["b"] }, { depth: 1 }), /give a prefix/],
  ["list: misspelt", (kv) => kv.list(PREFIX, { keyOnly: true }), /did you mean 'keysOnly'/],
];

const nested = (levels) => (levels === 0 ? { a: 1 } : { $not: nested(levels - 1) });

test("what is refused is refused with its reason, and nothing is deleted", async () => {
  const kv = await open(":memory:");
  await kv.set(["a", 1], 1);
  for (const [name, run, words] of rejecting) {
    await assert.rejects(run(kv), (error) => {
      assert.ok(error instanceof TypeError, `${name}: ${error}`);
      assert.match(String(error), words, name);
      return true;
    });
  }
  for (const [name, run, words] of throwing) assert.throws(() => run(kv), words, name);
  assert.equal(await kv.count({ prefix: [] }), 1);
});

test("a closed handle", async () => {
  const kv = await openKv(":memory:");
  await kv.close();
  await assert.rejects(kv.count(PREFIX), CLOSED);
  await assert.rejects(kv.paginate(PREFIX), CLOSED);
  await assert.rejects(kv.deleteMany(PREFIX), CLOSED);
  await assert.rejects(kv.get(["a"], { withExpiry: true }), CLOSED);
  await assert.rejects(kv.getMany([["a"]], { withExpiry: true }), CLOSED);
  await assert.rejects(kv.list(PREFIX, { keysOnly: true }).next(), CLOSED);
});

function reading(fresh) {
  test("values of every encoding are compared as wholes", async () => {
    const kv = await fresh();
    const values = [new KvU64(2n ** 60n), new Uint8Array([1, 2]), "text", 7, 7n, null];
    for (const [i, value] of values.entries()) await kv.set(["a", i], value);
    const found = async (where) => {
      const entries = await all(kv.list(PREFIX, { where }));
      return entries.map(({ key }) => key[1]);
    };
    assert.deepEqual(await found({ $gt: 7 }), [0]);
    assert.deepEqual(await found({ $eq: 2n ** 60n }), [0]);
    assert.deepEqual(await found({ $eq: 7 }), [3, 4]);
    assert.deepEqual(await found({ $startsWith: new Uint8Array([1]) }), [1]);
    assert.deepEqual(await found({ $eq: new Uint8Array([1, 2]) }), [1]);
    assert.deepEqual(await found({ $containsi: "EX" }), [2]);
    assert.deepEqual(await found({ $null: true }), [5]);
  });

  test("$now is the time of the call, for all of its steps", async () => {
    const kv = await fresh();
    const at = (ms) => new Date(Date.now() + ms);
    await kv.set(["a", 1], { at: at(-60_000) });
    await kv.set(["a", 2], { at: at(60_000) });
    const count = (where) => kv.count(PREFIX, { where });
    assert.equal(await count({ at: { $lt: { $now: true } } }), 1);
    assert.equal(await count({ at: { $lt: { $now: true, $offset: 120_000 } } }), 2);
    assert.equal(await count({ at: { $gt: { $now: { $offset: -120_000 } } } }), 2);
  });

  test("ends are told, and ended entries are not counted", async () => {
    const kv = await fresh();
    await kv.set(["a", 1], 1, { expireIn: 60_000 });
    await kv.set(["a", 2], 2);
    await kv.set(["a", 3], 3, { expireIn: 0 });
    const [first, second, third] = await kv.getMany(
      [
        ["a", 1],
        ["a", 2],
        ["a", 3],
      ],
      { withExpiry: true },
    );
    assert.ok(Math.abs(first.expireAt - Date.now() - 60_000) < 10_000);
    assert.equal(second.expireAt, null);
    assert.deepEqual(third, { key: ["a", 3], value: null, versionstamp: null, expireAt: null });
    assert.deepEqual(await kv.get(["a", 1], { withExpiry: true }), first);
    assert.deepEqual(await all(kv.list(PREFIX, { withExpiry: true })), [first, second]);
    assert.deepEqual(
      (await all(kv.list(PREFIX, { withExpiry: true, keysOnly: true }))).map((entry) =>
        Object.keys(entry),
      ),
      [
        ["key", "versionstamp", "expireAt"],
        ["key", "versionstamp", "expireAt"],
      ],
    );
    assert.equal(await kv.count(PREFIX), 2);
    assert.deepEqual(await kv.deleteMany([["a", 3]]), { count: 0, versionstamp: null });
  });

  test("deleteMany with descendants takes the key itself and all keys below it", async () => {
    const kv = await fresh();
    const keys = [["a"], ["a", 1], ["a", 1, "x"], ["a", 1n], ["a", "1"], ["a", 2], ["aa"]];
    const put = () => keys.reduce((op, key, n) => op.set(key, { n }), kv.atomic()).commit();
    const left = async () => (await all(kv.list({ prefix: [] }))).map(({ value }) => value.n);
    await put();
    const all7 = await left();
    assert.equal((await kv.deleteMany(["a", 1], { descendants: true })).count, 2);
    assert.deepEqual(
      await left(),
      all7.filter((n) => n !== 1 && n !== 2),
    );
    await put();
    const where = { n: { $gte: 2 } };
    assert.equal((await kv.deleteMany(["a", 1], { descendants: true, where })).count, 1);
    const one = await kv.deleteMany(["a"], { descendants: true, limit: 1, atomic: true });
    assert.equal(one.count, 1);
    assert.equal((await kv.get(["a"])).versionstamp, null, "the key itself is the first");
    await kv.deleteMany(["a"], { descendants: true });
    assert.deepEqual(await left(), [6]);
    assert.equal((await kv.deleteMany([["aa"]], { descendants: false })).count, 1);
  });

  test("a scan of many steps yields everything once, and stops when it is asked to", async () => {
    const kv = await fresh();
    await fill(kv, 20_000);
    const where = { n: { $lt: 30 } };
    assert.equal(await kv.count(PREFIX), 20_000);
    assert.equal(await kv.count(PREFIX, { where }), 30);
    for (const reverse of [false, true]) {
      const found = (await all(kv.list(PREFIX, { where, reverse }))).map(({ value }) => value.n);
      if (reverse) found.reverse();
      assert.deepEqual(
        found,
        Array.from({ length: 30 }, (_, n) => n),
      );
    }
    const list = kv.list(PREFIX, { where, limit: 5 });
    assert.equal((await all(list)).length, 5);
    assert.equal((await all(kv.list(PREFIX, { where, cursor: list.cursor }))).length, 25);
    const overlapping = kv.list(PREFIX, { where });
    const results = await Promise.all(Array.from({ length: 31 }, () => overlapping.next()));
    assert.deepEqual(
      results.map(({ done, value }) => (done ? "done" : value.value.n)),
      [...Array.from({ length: 30 }, (_, n) => n), "done"],
    );
  });

  test("a large deletion lets others write, and an atomic one is all or nothing", async () => {
    const kv = await fresh();
    await fill(kv, 9000);
    await assert.rejects(
      kv.deleteMany(PREFIX, { atomic: true }),
      /limits\.mutationsMax \(max 1000\)/,
    );
    assert.equal(await kv.count(PREFIX), 9000);
    const { count } = await kv.deleteMany(PREFIX, { where: { n: { $gte: 8500 } }, atomic: true });
    assert.equal(count, 500);
    // In memory a deletion can be over before a write of a busy machine arrives.
    let isBetween = false;
    for (let trial = 0; trial < TRIALS_MAX && !isBetween; trial++) {
      if (trial > 0) await fill(kv, 8500);
      const deletion = kv.deleteMany(PREFIX);
      const write = await kv.set(["b"], 1);
      const { count: rest, versionstamp } = await deletion;
      assert.equal(rest, 8500);
      assert.equal(await kv.count({ prefix: [] }), 1);
      isBetween = write.versionstamp < versionstamp;
    }
    assert.ok(isBetween, "a write between the commits of a deletion");
  });

  test("pages stay where they are while keys come and go", async () => {
    const kv = await fresh();
    for (let i = 0; i < 10; i += 2) await kv.set(["a", i], i);
    const first = await kv.paginate({ ...PREFIX, limit: 2 });
    assert.deepEqual(
      first.entries.map(({ value }) => value),
      [0, 2],
    );
    await kv.set(["a", 1], 1);
    await kv.delete(["a", 2]);
    const second = await kv.paginate({ ...PREFIX, limit: 2, cursor: first.cursor });
    assert.deepEqual(
      second.entries.map(({ value }) => value),
      [4, 6],
    );
    const last = await kv.paginate({ ...PREFIX, cursor: second.cursor });
    assert.deepEqual([last.entries.length, last.cursor, last.hasMore], [1, null, false]);
  });

  test("a thousand keys in one read under wide limits", async () => {
    const kv = await fresh({ limits: "wide" });
    await fill(kv, 1000);
    const keys = Array.from({ length: 1000 }, (_, n) => ["a", n]);
    for (const options of [undefined, { withExpiry: true }]) {
      const entries = await kv.getMany(keys, options);
      assert.deepEqual(
        entries.map(({ value }) => value.n),
        Array.from({ length: 1000 }, (_, n) => n),
      );
    }
  });
}

onEveryKind("reading", reading);
onReplica("reading", reading);
onNearReplica("reading", reading);

test("a read-only database deletes nothing", async () => {
  const { freshPath } = await import("./databases.mjs");
  const path = freshPath();
  const writer = await open(path);
  await writer.set(["a", 1], 1);
  const kv = await open(path, { readonly: true });
  assert.equal(await kv.count(PREFIX), 1);
  await assert.rejects(kv.deleteMany(PREFIX), { name: "KvError", code: "DENIED" });
});

/** Entries `["a", n]` with the value `{ n }`. */
async function fill(kv, count) {
  for (let n = 0; n < count; ) {
    let operation = kv.atomic();
    for (const end = Math.min(n + 500, count); n < end; n++)
      operation = operation.set(["a", n], { n });
    await operation.commit();
  }
}

test("paginate goes on behind the start of a range whose end extends it", async () => {
  const kv = await openKv(":memory:");
  const keys = [["a"], ["a", 1], ["a", "b"]];
  for (const key of keys) await kv.set(key, key.length);
  const range = { start: ["a"], end: ["a", true], limit: 1 };
  const pages = [];
  for (let cursor = null; cursor !== null || pages.length === 0; ) {
    const page = await kv.paginate({ ...range, cursor });
    pages.push(page.entries[0].key);
    assert.ok(pages.length <= keys.length, "it began again");
    cursor = page.cursor;
  }
  assert.deepEqual(pages, [["a"], ["a", "b"], ["a", 1]]);
  await kv.close();
});

onEveryKind("reading beside a watch", (fresh) => {
  test("a watch sees what deleteMany does", async () => {
    const kv = await fresh();
    await kv.set(["a", 1], 1);
    const reader = kv.watch([["a", 1]]).getReader();
    assert.equal((await reader.read()).value[0].value, 1);
    await kv.deleteMany(PREFIX);
    assert.equal((await reader.read()).value[0].value, null);
    await reader.cancel();
  });
});
