// Duty: value indexes: made, built, listed and dropped; lists by them and in their order; unique ones; what
// is refused, by name.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { KvUniqueError, openKv } from "../../index.mjs";
import { guard, HANG_MS } from "../kit/time.mjs";
import { freshPath, onBucket, onEach, onEveryKind, onPostgres, open } from "./databases.mjs";

const USERS = { prefix: ["u"] };
const EMAIL = { type: "value", prefix: ["u"], on: "email", unique: true, name: "email" };

async function ids(list) {
  const found = [];
  for await (const { key } of list) found.push(key.at(-1));
  return found;
}

async function withUsers(fresh) {
  const kv = await fresh();
  const all = kv.atomic();
  const cities = ["Rome", "Oslo", "Rome", undefined, "Kyoto", null];
  for (const [i, city] of cities.entries()) {
    all.set(["u", i], {
      n: 10 - i,
      ...(city === undefined ? {} : { city }),
      tags: [i, `t${i % 2}`],
    });
  }
  await all.commit();
  return kv;
}

onEveryKind("value indexes", (fresh) => {
  test("a list with where finds the same with an index and without", async () => {
    const kv = await withUsers(fresh);
    const filters = [
      { city: "Rome" },
      { city: { $in: ["Rome", "Oslo"] } },
      { city: { $gt: "Oslo" } },
      { city: { $startsWith: "K" } },
      { city: { $null: true } },
      { city: null },
      { $or: [{ city: "Oslo" }, { n: 5 }] },
      { n: { $between: [6, 8] } },
      { tags: { $contains: "t1" } },
      { tags: { $contains: 2 } },
    ];
    const before = await Promise.all(filters.map((where) => ids(kv.list(USERS, { where }))));
    for (const [on, more] of [
      ["city", {}],
      [["n", "city"], { sparse: true }],
      ["tags", { multi: true }],
    ]) {
      const index = await kv.createIndex({ type: "value", prefix: ["u"], on, ...more });
      await index.ready();
      assert.equal(index.state, "ready");
    }
    for (const [i, where] of filters.entries()) {
      assert.deepEqual(await ids(kv.list(USERS, { where })), before[i], JSON.stringify(where));
      const reversed = await ids(kv.list(USERS, { where, reverse: true, batchSize: 1 }));
      assert.deepEqual(reversed, before[i].toReversed(), JSON.stringify(where));
      assert.equal(await kv.count(USERS, { where }), before[i].length);
    }
    const first = await kv.paginate(USERS, { where: { city: "Rome" }, limit: 1 });
    const rest = await kv.paginate(USERS, { where: { city: "Rome" }, cursor: first.cursor });
    assert.deepEqual(
      [first, rest].map(({ entries }) => entries.map(({ key }) => key[1])),
      [[0], [2]],
    );
    const past = { start: ["u", 1], end: ["u", 5] };
    assert.deepEqual(await ids(kv.list(past, { where: { city: "Rome" } })), [2]);
    assert.equal((await kv.deleteMany(USERS, { where: { city: "Rome" } })).count, 2);
    assert.deepEqual(await ids(kv.list(USERS, { where: { city: "Rome" } })), []);
  });

  test("a list in the order of an index is sorted, and continues at a cursor", async () => {
    const kv = await withUsers(fresh);
    const index = await kv.createIndex({
      type: "value",
      prefix: ["u"],
      on: ["city", { path: "n", order: "desc" }],
    });
    await index.ready();
    const order = { city: "asc", n: "desc" };
    // Absent, null, then strings.
    const sorted = [3, 5, 4, 1, 0, 2];
    assert.deepEqual(await ids(kv.list(USERS, { orderBy: order })), sorted);
    assert.deepEqual(
      await ids(kv.list(USERS, { orderBy: order, reverse: true, batchSize: 1 })),
      sorted.toReversed(),
    );
    assert.deepEqual(await ids(kv.list(USERS, { orderBy: "city", limit: 3 })), [3, 5, 4]);
    const rome = { where: { city: "Rome" }, orderBy: { n: "asc" } };
    assert.deepEqual(await ids(kv.list(USERS, rome)), [2, 0]);
    assert.deepEqual(await ids(kv.list(USERS, { ...rome, limit: 1 })), [2]);
    const list = kv.list(USERS, { orderBy: order });
    await list.next();
    await list.next();
    assert.deepEqual(
      await ids(kv.list(USERS, { orderBy: order, cursor: list.cursor })),
      sorted.slice(2),
    );
    const pages = [];
    for (let cursor; cursor !== null; ) {
      const page = await kv.paginate(USERS, { orderBy: order, limit: 2, cursor });
      pages.push(page.entries.map(({ key }) => key[1]));
      cursor = page.cursor;
    }
    assert.deepEqual(pages, [
      [3, 5],
      [4, 1],
      [0, 2],
    ]);
    const keys = kv.list(USERS, { orderBy: order, keysOnly: true, withExpiry: true, limit: 1 });
    const { versionstamp, ...entry } = (await keys.next()).value;
    assert.deepEqual(entry, { key: ["u", 3], expireAt: null });
    assert.equal(versionstamp.length, 20);
  });

  test("without an index an order is refused, or sorted in memory", async () => {
    const kv = await withUsers(fresh);
    await assert.rejects(kv.list(USERS, { orderBy: { n: "desc" } }).toArray(), {
      name: "TypeError",
      code: "INVALID",
      message:
        /no index has the order of orderBy: create one with kv\.createIndex.*"n", order: "desc".*sort: true/,
    });
    const orderBy = { n: "asc" };
    assert.deepEqual(await ids(kv.list(USERS, { orderBy, sort: true })), [5, 4, 3, 2, 1, 0]);
    assert.deepEqual(await ids(kv.list(USERS, { orderBy, sort: true, limit: 2 })), [5, 4]);
    const where = { n: { $lt: 9 } };
    const page = await kv.paginate(USERS, { orderBy, sort: true, where, limit: 2, reverse: true });
    assert.deepEqual(
      page.entries.map(({ key }) => key[1]),
      [2, 3],
    );
    const next = { orderBy, sort: true, where, reverse: true, cursor: page.cursor };
    assert.deepEqual(
      (await kv.paginate(USERS, next)).entries.map(({ key }) => key[1]),
      [4, 5],
    );
    // A sorted list took the cursor of any other for its own, and gave another page.
    for (const other of [{ orderBy: "name" }, { orderBy: { n: "asc", name: "asc" } }]) {
      await assert.rejects(kv.paginate(USERS, { ...next, ...other }), /of another order/);
    }
    await kv.createIndex({ type: "value", prefix: ["u"], on: "n" }).then((index) => index.ready());
    await assert.rejects(
      kv.paginate(USERS, { orderBy, cursor: page.cursor }),
      /begin the list again/,
    );
    for (const options of [
      { orderBy: 1 },
      { orderBy: { n: "up" } },
      { orderBy: {} },
      { sort: true },
      { orderBy: "n", sort: 1 },
      { orderBy: "n", depth: 1 },
    ]) {
      const list = async () => kv.list(USERS, options).toArray();
      await assert.rejects(list, { name: "TypeError", code: "INVALID" }, JSON.stringify(options));
    }
    for (const options of [{ orderBy: "m" }, { orderBy: {} }, { orderBy: "n", depth: 1 }]) {
      const listed = kv.transaction((tx) => tx.list(USERS, options).toArray());
      await assert.rejects(listed, { name: "TypeError", code: "INVALID" });
    }
  });

  test("a unique index refuses the second entry with a value, and names both", async () => {
    const kv = await fresh();
    await kv.createIndex(EMAIL);
    await kv.set(["u", 1], { email: "ada@a.example" });
    const refused = await kv.set(["u", 2], { email: "ada@a.example" }).catch((error) => error);
    assert.ok(refused instanceof KvUniqueError, String(refused));
    const violations = [{ index: "email", key: ["u", 2], other: ["u", 1] }];
    assert.equal(refused.code, "UNIQUE");
    assert.deepEqual(refused.violations, violations);
    assert.match(refused.message, /'email'.*\["u", ?1\]|'email'.*u/);
    const twice = () => kv.atomic().set(["u", 2], { email: "ada@a.example" }).set(["x"], 1);
    await assert.rejects(twice().commit(), { name: "KvUniqueError", violations });
    const free = { key: ["x"], versionstamp: null };
    const atomic = await twice().check(free).commit();
    assert.deepEqual(atomic, { ok: false, failed: [], violations });
    assert.equal((await kv.get(["x"])).value, null);
    await assert.rejects(
      kv.transaction((tx) => void tx.set(["u", 2], { email: "ada@a.example" })),
      KvUniqueError,
    );
    // What is absent or null is no value.
    await kv.atomic().set(["u", 3], {}).set(["u", 4], {}).set(["u", 5], { email: null }).commit();
    assert.equal((await kv.atomic().set(["u", 6], { email: null }).commit()).ok, true);
    // Two keys exchange their values, the same entry is written again, and a value becomes free.
    await kv.set(["u", 2], { email: "bob@a.example" });
    const exchange = kv.atomic().set(["u", 1], { email: "bob@a.example" });
    assert.equal((await exchange.set(["u", 2], { email: "ada@a.example" }).commit()).ok, true);
    await kv.set(["u", 2], { email: "ada@a.example", again: true });
    const within = kv.atomic().set(["u", 7], { email: "c" }).set(["u", 8], { email: "c" });
    const both = await within.check({ key: ["x"], versionstamp: null }).commit();
    assert.equal(both.violations.length, 1);
    await kv.delete(["u", 1]);
    await kv.set(["u", 9], { email: "bob@a.example" });
    await kv.touch(["u", 9], { expireIn: 0 });
    await kv.set(["u", 10], { email: "bob@a.example" });
    assert.deepEqual(await ids(kv.list(USERS, { where: { email: "bob@a.example" } })), [10]);
    // Of writes at one time one wins.
    const at = Array.from({ length: 20 }, (_, i) => kv.set(["u", "at", i], { email: "same" }));
    const done = await Promise.allSettled(at);
    assert.equal(done.filter(({ status }) => status === "fulfilled").length, 1);
    assert.ok(done.every(({ reason }) => reason === undefined || reason.code === "UNIQUE"));
    await assert.rejects(kv.set(["u", 11], { email: ["a"] }), {
      code: "INVALID",
      message: /'email'/,
    });
    await assert.rejects(kv.set(["u", 11], { email: "x".repeat(1025) }), { code: "TOO_LARGE" });
    await assert.rejects(kv.set(["u", 11], { email: Number.NaN }), { code: "INVALID" });
    await kv.set(["other"], { email: "ada@a.example" });
  });

  test("a unique index is not built over two entries with one value", async () => {
    const kv = await fresh();
    await kv.atomic().set(["u", 1], { email: "a" }).set(["u", 2], { email: "a" }).commit();
    const index = await kv.createIndex(EMAIL);
    await assert.rejects(index.ready(), { name: "KvUniqueError", message: /'email'/ });
    assert.equal(index.state, "failed");
    const [listed] = await kv.listIndexes();
    assert.deepEqual(listed.failure, { key: ["u", 2], other: ["u", 1] });
    // A failed index refuses nothing, and is not read.
    await kv.set(["u", 3], { email: "a" });
    assert.deepEqual(await ids(kv.list(USERS, { where: { email: "a" } })), [1, 2, 3]);
    await assert.rejects(kv.list(USERS, { orderBy: "email" }).toArray(), /could not be built/);
    await kv.deleteMany([
      ["u", 2],
      ["u", 3],
    ]);
    assert.equal(await kv.dropIndex("email"), true);
    const again = await kv.createIndex(EMAIL);
    await again.ready();
    await assert.rejects(kv.set(["u", 2], { email: "a" }), KvUniqueError);
    await kv.set(["u", 2], { email: {} }).catch(() => {});
    await kv.dropIndex("email");
    await kv.set(["u", 2], { email: {} });
    const unfit = await kv.createIndex(EMAIL);
    await assert.rejects(unfit.ready(), { code: "UNIQUE", message: /cannot be unique/ });
  });

  test("an index over many entries is built between other writes", async () => {
    const kv = await fresh();
    for (let from = 0; from < 3000; from += 500) {
      const all = kv.atomic();
      for (let i = from; i < from + 500; i++) all.set(["u", i], { n: i % 100 });
      await all.commit();
    }
    const index = await kv.createIndex({
      type: "value",
      prefix: ["u"],
      on: { path: "n", order: "desc" },
    });
    await kv.atomic().set(["u", 0], { n: 99 }).delete(["u", 1]).set(["u", 3000], { n: 7 }).commit();
    let last;
    for await (const progress of index.progress) last = progress;
    assert.equal(last.done, true);
    const expected = Array.from({ length: 30 }, (_, i) => 7 + i * 100);
    assert.deepEqual(await ids(kv.list(USERS, { where: { n: 7 } })), [...expected, 3000]);
    assert.equal((await ids(kv.list(USERS, { orderBy: { n: "asc" } }))).length, 3000);
    const largest = kv.list(USERS, { orderBy: { n: "desc" }, limit: 31, keysOnly: true });
    assert.equal(
      (await largest.toArray()).some(({ key }) => key[1] === 0),
      true,
    );
  });

  test("mutations that Rust carries out, expiry and deletion change the index", async () => {
    const kv = await fresh();
    const tags = { type: "value", prefix: ["u"], on: "", multi: true };
    await assert.rejects(kv.createIndex(tags), { code: "INVALID", message: /a path is empty/ });
    await kv.createIndex({ type: "value", prefix: ["u"], on: "list.0" });
    await kv.set(["u", 1], { list: ["a"] });
    await kv.set(["u", 1], { list: ["b"] });
    const named = (value) => ids(kv.list(USERS, { where: { "list.0": value } }));
    assert.deepEqual([await named("a"), await named("b")], [[], [1]]);
    await kv.set(["u", 1], { list: ["b"] }, { expireIn: 0 });
    assert.deepEqual(await named("b"), []);
    await kv
      .atomic()
      .sum(["u", 2], 1)
      .append(["u", 3], [{ list: ["c"] }])
      .commit();
    assert.deepEqual(await ids(kv.list(USERS, { orderBy: "list.0" })), [2, 3]);
    await kv.delete(["u", 2]);
    assert.deepEqual(await ids(kv.list(USERS, { orderBy: "list.0" })), [3]);
  });

  test("indexes are listed, replaced and dropped by name", async () => {
    const kv = await fresh();
    const made = await kv.createIndex({
      type: "value",
      prefix: ["u"],
      on: ["a.b", { path: "c", order: "desc" }],
    });
    assert.equal(made.name, '["u"] by a.b, -c');
    const text = await kv.createIndex({ prefix: ["u"], fields: ["t"], name: "text" });
    assert.equal(text.type, "fulltext");
    await kv.createIndex(EMAIL);
    assert.equal((await kv.createIndex(EMAIL)).unique, true);
    assert.deepEqual(
      (await kv.listIndexes()).map(({ name, type }) => [name, type]),
      [
        ['["u"] by a.b, -c', "value"],
        ["email", "value"],
        ["text", "fulltext"],
      ],
    );
    const other = { ...EMAIL, unique: false };
    await assert.rejects(kv.createIndex(other), {
      code: "INVALID",
      message: /another index 'email'/,
    });
    const replaced = await kv.createIndex({ ...other, replace: true });
    assert.equal(replaced.unique, false);
    await assert.rejects(kv.createIndex({ ...EMAIL, name: "text" }), /full-text/);
    const taken = { prefix: ["v"], fields: ["t"], name: "email" };
    await assert.rejects(kv.createIndex(taken), { code: "INVALID", message: /value index/ });
    assert.equal(await kv.dropIndex("email"), true);
    assert.equal(await kv.dropIndex("email"), false);
    for (const given of [
      { on: [] },
      { on: Array.from({ length: 9 }, (_, i) => `p${i}`) },
      { on: ["a", "a"] },
      { on: 1 },
      { on: { path: "a", order: "up" } },
      { unique: 1 },
      { type: "other" },
      { name: "" },
      { prefix: "u" },
      { fields: ["a"] },
    ]) {
      const options = { type: "value", prefix: ["u"], on: "a", ...given };
      await assert.rejects(
        async () => kv.createIndex(options),
        { name: "TypeError" },
        JSON.stringify(given),
      );
    }
    await assert.rejects(kv.createIndex({ ...EMAIL, on: "p".repeat(257) }), { code: "TOO_LARGE" });
    for (let i = 0; i < 63; i++) await kv.createIndex({ ...EMAIL, name: `i${i}`, unique: false });
    await assert.rejects(kv.createIndex({ ...EMAIL, name: "i63" }), { message: /max 64/ });
  });
});

function ofThePast(fresh) {
  test("the past has no indexes, and is read by scan", async () => {
    const kv = await fresh({ history: "1h" });
    await kv.createIndex({ type: "value", prefix: ["u"], on: "n" });
    const { versionstamp } = await kv.set(["u", 1], { n: 2 });
    await kv.set(["u", 1], { n: 3 });
    const past = await kv.at(versionstamp);
    assert.deepEqual(await ids(past.list(USERS, { where: { n: 2 } })), [1]);
    assert.deepEqual(await ids(kv.list(USERS, { where: { n: 2 } })), []);
    await assert.rejects(past.list(USERS, { orderBy: "n" }).toArray(), /no index/);
    assert.deepEqual(await ids(past.list(USERS, { orderBy: "n", sort: true })), [1]);
  });
}

onEach("value indexes", ofThePast);
onPostgres("value indexes", ofThePast);
onBucket("value indexes", ofThePast);

test("an index of a file is there for the next handle, and kept by it", async () => {
  const path = freshPath();
  const first = await openKv(path);
  await first.set(["u", 1], { email: "a" });
  await (await first.createIndex(EMAIL)).ready();
  first.close();
  const kv = await open(path);
  await assert.rejects(kv.set(["u", 2], { email: "a" }), KvUniqueError);
  await kv.set(["u", 1], { email: "b" });
  assert.deepEqual(await ids(kv.list(USERS, { orderBy: "email" })), [1]);
  assert.deepEqual(await ids(kv.list(USERS, { where: { email: "a" } })), []);
  const [{ name, state }] = await kv.listIndexes();
  assert.deepEqual([name, state], ["email", "ready"]);
});

test("a file for Deno has no value indexes", async () => {
  const kv = await open(freshPath(), { encoding: "v8" });
  await assert.rejects(kv.createIndex(EMAIL), { code: "UNSUPPORTED", message: /Deno/ });
});

// It asked every 25 ms from then on, and kept the process alive, until the building went on.
test("ready() looks no more at a building that stands still once its signal is aborted", async () => {
  const { Building } = createRequire(import.meta.url)("../../build/search/building.js");
  const info = { name: "city", prefix: ["u"], state: "building", indexed: 0 };
  const controller = new AbortController();
  let looks = 0;
  const look = async () => {
    if (++looks === 3) controller.abort();
    return [info];
  };
  const building = new Building(null, { state: "building" }, info, look);
  await guard(building.ready(controller.signal), HANG_MS, "the end of ready()");
  assert.equal(looks, 3);
});
