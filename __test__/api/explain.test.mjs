// Duty: kv.explain: which indexes a list reads, with which bounds, and how much it visits, leaves out and returns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/time.mjs";
import { freshPath, onEach, onEveryKind, onNearReplica, open } from "./databases.mjs";

const USERS = { prefix: ["u"] };
/** Entries that an explanation reads before it ends. */
const ENTRIES_MAX = 100_000;

/** Users 0 to 19: ages 20 to 39, in three cities. */
async function withUsers(fresh) {
  const kv = await fresh();
  const all = kv.atomic();
  const cities = ["Rome", "Oslo", "Kyoto"];
  for (let i = 0; i < 20; i++) {
    all.set(["u", i], { age: 20 + i, city: cities[i % 3], joined: new Date(i * 1000) });
  }
  await all.commit();
  return kv;
}

async function indexed(kv, on, more = {}) {
  await (await kv.createIndex({ type: "value", prefix: ["u"], on, ...more })).ready();
}

/** What is read of the index "age". */
const byAge = (...ranges) => [{ index: "age", bounds: [{ path: "age", ranges }] }];
const REST = "values without an order";

/** The same list, carried out: an explanation tells the number of its entries. */
async function checked(kv, selector, options = {}) {
  const explained = await kv.explain(selector, options);
  const listed = await kv.list(selector, options).toArray();
  assert.equal(explained.returned, listed.length);
  if (explained.method !== "sort") {
    assert.equal(explained.visited, explained.filtered + explained.returned);
  }
  assert.equal(explained.complete, true);
  return explained;
}

const NOTHING = { method: "scan", branches: [], reason: null, indexEntries: 0, complete: true };

onEveryKind("explanations", (fresh) => {
  test("without an index a list reads the entries by their keys", async () => {
    const kv = await withUsers(fresh);
    const numbers = { visited: 20, filtered: 0, returned: 20 };
    assert.deepEqual(await checked(kv, USERS), { ...NOTHING, ...numbers });
    const where = { age: { $gte: 35 } };
    assert.deepEqual(await checked(kv, USERS, { where }), {
      ...NOTHING,
      reason: "no value index has the keys of the list under its prefix",
      ...{ visited: 20, filtered: 15, returned: 5 },
    });
    const some = await checked(
      kv,
      { start: ["u", 5], end: ["u", 15] },
      { limit: 3, reverse: true },
    );
    assert.deepEqual(some, { ...NOTHING, visited: 3, filtered: 0, returned: 3 });
    await kv.set(["u", 3, "more"], 1);
    const deep = await checked(kv, USERS, { depth: 1, where });
    assert.equal(deep.reason, "no value index has the keys of the list under its prefix");
    const sorted = await checked(kv, USERS, { orderBy: "age", sort: true, where, limit: 2 });
    assert.deepEqual(sorted, {
      ...{ method: "sort", branches: [], reason: "no value index has the order", indexEntries: 0 },
      ...{ visited: 21, filtered: 16, returned: 2, complete: true },
    });
    await assert.rejects(kv.explain(USERS, { orderBy: "age" }), /no index has the order/);
  });

  test("it tells what a cursor leaves, and reads after the writes that were called before", async () => {
    const kv = await withUsers(fresh);
    const list = kv.list(USERS, { limit: 15 });
    await list.toArray();
    const rest = kv.list(USERS, { limit: 4 });
    for (let i = 0; i < 4; i++) await rest.next();
    assert.equal((await kv.explain(USERS, { cursor: rest.cursor })).returned, 16);
    void kv.set(["u", 20], { age: 40 });
    assert.equal((await kv.explain(USERS)).returned, 21);
  });
});

onEveryKind("explanations", (fresh) => {
  test("a list with where reads ranges of an index", async () => {
    const kv = await withUsers(fresh);
    await indexed(kv, "age", { name: "age" });
    const of = (where, options) => checked(kv, USERS, { where, ...options });
    assert.deepEqual(await of({ age: 25 }), {
      ...{ method: "index", branches: byAge("25", REST), reason: null },
      ...{ indexEntries: 1, visited: 1, filtered: 0, returned: 1, complete: true },
    });
    const branchesOf = async (where) => (await of(where)).branches;
    assert.deepEqual(await branchesOf({ age: { $gt: 35 } }), byAge("from 35", REST));
    assert.deepEqual(await branchesOf({ age: { $lte: 22.5 } }), byAge("to 22.5", REST));
    assert.deepEqual(
      await branchesOf({ age: { $gte: 22, $lt: 25 } }),
      byAge("from 22 to 25", REST),
    );
    // A range of one value was shown as a beginning, without a value.
    assert.deepEqual(await branchesOf({ age: { $between: [25, 25] } }), byAge("25", REST));
    assert.deepEqual(await branchesOf({ age: { $gte: "x", $lte: "x" } }), byAge('"x"', REST));
    assert.deepEqual(
      await branchesOf({ age: { $in: [30, 20, "x"] } }),
      byAge('"x"', "20", "30", REST),
    );
    assert.deepEqual(await branchesOf({ age: { $null: true } }), byAge("absent", "null", REST));
    const narrowed = await of({ age: { $gte: 22, $lt: 25 }, city: "Rome" });
    assert.deepEqual([narrowed.visited, narrowed.filtered], [4, 3]);
    // A step that ends early, on a busy machine, reads some of them again.
    assert.ok(narrowed.indexEntries >= 4);
    const other = await of({ city: "Rome" });
    assert.equal(other.reason, "no value index begins with a path that where compares");
    const flat = await of({ age: 25 }, { depth: 1 });
    assert.deepEqual([flat.method, flat.visited], ["index", 1]);
  });

  test("an $or has a branch for each alternative, and an order reads its index", async () => {
    const kv = await withUsers(fresh);
    await indexed(kv, "age", { name: "age" });
    await indexed(kv, ["city", { path: "joined", order: "desc" }], { name: "city" });
    const either = await checked(kv, USERS, { where: { $or: [{ age: 20 }, { city: "Oslo" }] } });
    assert.deepEqual(either.branches, [
      ...byAge("20", REST),
      { index: "city", bounds: [{ path: "city", ranges: ['"Oslo"', REST] }] },
    ]);
    assert.deepEqual([either.visited, either.filtered], [8, 0]);
    const where = { city: { $startsWith: "Ky" } };
    const [begins] = (await checked(kv, USERS, { where })).branches;
    assert.deepEqual(begins.bounds[0].ranges, ['begins with "Ky"…', REST]);

    const ordered = { where: { city: "Rome" }, orderBy: { joined: "desc" }, limit: 2 };
    const found = await checked(kv, USERS, ordered);
    assert.deepEqual(found.branches, [
      { index: "city", bounds: [{ path: "city", ranges: ['"Rome"', REST] }] },
    ]);
    assert.deepEqual([found.method, found.returned], ["index", 2]);
    const since = { city: "Rome", joined: { $gte: new Date(9000) } };
    const [{ bounds }] = (await checked(kv, USERS, { ...ordered, where: since })).branches;
    assert.deepEqual(bounds[1], {
      path: "joined",
      ranges: ["from 1970-01-01T00:00:09.000Z", REST],
    });
    const whole = await checked(kv, USERS, { orderBy: "age", reverse: true });
    assert.deepEqual(whole.branches, [{ index: "age", bounds: [] }]);
    // A step that its time ends leaves index entries to the next one, which reads them again.
    assert.ok(whole.indexEntries >= 20, `${whole.indexEntries}`);
    assert.equal(whole.visited, 20);
    const list = kv.list(USERS, { orderBy: "age" });
    for (let i = 0; i < 5; i++) await list.next();
    const rest = await kv.explain(USERS, { orderBy: "age", cursor: list.cursor });
    assert.equal(rest.returned, 15);
  });

  test("a sort reads an index for where, and says why none has the order", async () => {
    const kv = await withUsers(fresh);
    await indexed(kv, "age", { name: "age" });
    const options = { where: { age: { $gte: 35 }, city: "Rome" }, orderBy: "joined", sort: true };
    const { indexEntries, ...sorted } = await checked(kv, USERS, options);
    assert.deepEqual(sorted, {
      ...{ method: "sort", branches: byAge("from 35", REST) },
      ...{ reason: "no value index has the order", complete: true },
      ...{ visited: 5, filtered: 3, returned: 2 },
    });
    // A step that a busy machine ends reads them again.
    assert.equal(indexEntries % 5, 0);
    const other = await checked(kv, USERS, { ...options, where: { city: "Rome" } });
    assert.deepEqual([other.branches, other.indexEntries, other.visited], [[], 0, 20]);
  });

  test("the first entries in an order need about as many entries of an index", async () => {
    const kv = await withUsers(fresh);
    await indexed(kv, "age", { name: "age" });
    const first = async (options) => {
      const list = { orderBy: "age", ...options };
      const { indexEntries, visited } = await checked(kv, USERS, list);
      const found = await kv.list(USERS, list).toArray();
      return [indexEntries, visited, found.map(({ key }) => key[1])];
    };
    assert.deepEqual(await first({ limit: 1 }), [2, 1, [0]]);
    assert.deepEqual(await first({ limit: 1, reverse: true }), [2, 1, [19]]);
    // A step that ends early on a busy machine reads some entries of the index again.
    const [, ...some] = await first({ limit: 3, where: { city: "Rome" } });
    assert.deepEqual(some, [7, [0, 3, 6]]);
    const [, ...all] = await first({ limit: 8, where: { city: "Rome" } });
    assert.deepEqual(all, [20, [0, 3, 6, 9, 12, 15, 18]]);
  });

  test("the names of paths and values are shown whatever they are", async () => {
    const kv = await fresh();
    const path = 'ä".b\u0000'.padEnd(40, "x");
    await kv.createIndex({ type: "value", prefix: [], on: path, name: "'\u{1f4a9}" });
    const operands = [
      "x".repeat(5000),
      "",
      "\u0000",
      new Uint8Array(100),
      2n ** 3000n,
      -1e300,
      true,
    ];
    const where = { [path]: { $in: operands } };
    const { branches } = await kv.explain({ prefix: [] }, { where });
    assert.equal(branches[0].index, "'\u{1f4a9}");
    assert.equal(branches[0].bounds[0].path, path);
    assert.deepEqual(branches[0].bounds[0].ranges, [
      `0x${"00".repeat(32)}…`,
      '""',
      '"\\u0000"',
      `"${"x".repeat(64)}"…`,
      "-1e300",
      "a bigint of 376 bytes",
      "true",
      REST,
    ]);
  });
});

onEach("explanations", (fresh) => {
  test("an index with too many entries to sort is left", async () => {
    const kv = await fresh();
    await indexed(kv, "n", { name: "n" });
    for (let from = 0; from < 11_000; from += 1000) {
      const batch = kv.atomic();
      for (let i = from; i < from + 1000; i++) batch.set(["u", i], { n: i });
      await batch.commit();
    }
    const left = await checked(kv, USERS, { where: { n: { $gte: 0 } } });
    assert.equal(left.method, "scan");
    assert.deepEqual([left.branches, left.visited], [[], 11_000]);
    assert.match(left.reason, /^the ranges.*more than 10000 entries.*order the list by the value/);
    // Each step read the index again.
    assert.equal(left.indexEntries, 10_001);
    const sorting = { where: { n: { $gte: 0 } }, orderBy: "m", sort: true, limit: 2 };
    const sorted = await checked(kv, USERS, sorting);
    assert.deepEqual([sorted.method, sorted.branches, sorted.visited], ["sort", [], 11_000]);
    assert.match(sorted.reason, /^no value index has the order, and the ranges.*10000 entries/);
    assert.equal(sorted.indexEntries, 10_001);
    const ordered = await checked(kv, USERS, { where: { n: { $gte: 0 } }, orderBy: "n" });
    // A step that ends early reads some of them again.
    assert.equal(ordered.method, "index");
    assert.ok(ordered.indexEntries >= 11_000);
  });

  test("the past is read by scan", async () => {
    const kv = await fresh({ history: "1h" });
    await indexed(kv, "n");
    const { versionstamp } = await kv.set(["u", 1], { n: 2 });
    const past = await kv.at(versionstamp);
    const { method, returned } = await past.explain(USERS, { where: { n: 2 } });
    assert.deepEqual([method, returned], ["scan", 1]);
    await assert.rejects(past.list(USERS, { orderBy: "n" }).toArray(), /no index has the order/);
    const sorted = await past.list(USERS, { orderBy: "n", sort: true }).toArray();
    assert.deepEqual(
      sorted.map(({ value }) => value.n),
      [2],
    );
  });
});

onNearReplica("explanations", (fresh) => {
  test("a replica explains its own reads, by the indexes that it has got", async () => {
    const kv = await withUsers(fresh);
    await indexed(kv, "age", { name: "age" });
    const where = { age: 25 };
    const strong = await kv.explain(USERS, { where, consistency: "strong" });
    assert.deepEqual(strong.branches, byAge("25", REST));
    const near = () => kv.explain(USERS, { where });
    await until(async () => (await near()).method === "index", "the index at the replica");
    assert.deepEqual(await near(), strong);
    assert.equal((await kv.explain(USERS, { orderBy: "age" })).method, "index");
  });
});

test("an explanation ends behind its bound, and says so", async () => {
  const kv = await open(":memory:");
  const count = ENTRIES_MAX + 20_000;
  for (let from = 0; from < count; from += 1000) {
    const batch = kv.atomic();
    for (let i = from; i < from + 1000; i++) batch.set(["u", i], i);
    await batch.commit();
  }
  const { complete, visited, returned } = await kv.explain(USERS);
  assert.equal(complete, false);
  assert.ok(visited >= ENTRIES_MAX && visited < count && returned === visited);
  assert.equal((await kv.explain(USERS, { limit: 50_000 })).complete, true);
  // A page that was being sorted did not count.
  const sorted = await kv.explain(USERS, { orderBy: "n", sort: true, limit: 1 });
  assert.deepEqual([sorted.method, sorted.complete, sorted.returned], ["sort", false, 0]);
  assert.ok(sorted.visited >= ENTRIES_MAX && sorted.visited < count);
});

test("a limit over that of a frame is one", async () => {
  const kv = await open(":memory:");
  await kv.atomic().set(["u", 1], 1).set(["u", 2], 1).set(["u", 3], 1).commit();
  for (const limit of [2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_VALUE]) {
    assert.equal((await checked(kv, USERS, { limit })).returned, 3, String(limit));
  }
});

test("a failed index is named as the reason", async () => {
  const kv = await open(freshPath());
  await kv.atomic().set(["u", 1], { n: 1 }).set(["u", 2], { n: 1 }).commit();
  const index = await kv.createIndex({ type: "value", prefix: ["u"], on: "n", unique: true });
  await assert.rejects(index.ready());
  const { method, reason } = await kv.explain(USERS, { where: { n: 1 } });
  assert.equal(method, "scan");
  assert.match(reason, /'\["u"\] by n' could not be built/);
});
