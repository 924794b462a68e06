// Duty: lists of a transaction in the order of values: own writes in their places, and which changes are conflicts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptsOf } from "./attempts.mjs";
import { all, onEach, onEveryKind } from "./databases.mjs";

const USERS = { prefix: ["u"] };
const ids = (entries) => entries.map(({ key }) => key[1]);

async function createIndex(kv, on, more) {
  const index = { type: "value", prefix: ["u"], on, name: "on", ...more };
  await (await kv.createIndex(index)).ready();
}

/** Users 0 to 7 of the ages 20, 23, 26, 21, 24, 27, 22 and 25, in Rome and Oslo in turn; by age 0 3 6 1 4 7 2 5. */
async function withUsers(kv, on = "age") {
  if (on !== null) await createIndex(kv, on);
  const atomic = kv.atomic();
  for (let n = 0; n < 8; n++) {
    atomic.set(["u", n], { age: 20 + ((n * 3) % 8), city: n % 2 === 0 ? "Rome" : "Oslo" });
  }
  await atomic.commit();
  return kv;
}

const put = (id, age, city = "Rome") => [
  `user ${id} of ${age}`,
  (kv) => kv.set(["u", id], { age, city }),
];
const gone = (id) => [`without user ${id}`, (kv) => kv.delete(["u", id])];

const FIRST = { orderBy: "age", limit: 3 };
const LAST = { orderBy: { age: "desc" }, limit: 3 };
const ROME = { orderBy: "age", where: { city: "Rome" }, limit: 2 };
const SORTED = { orderBy: "city", sort: true, limit: 1 };

/** A list, what happens meanwhile, and whether that is a conflict. */
const CASES = [
  [FIRST, put(9, 19), true],
  [FIRST, put(9, 20.5), true],
  [FIRST, put(9, 22.5), false],
  [FIRST, put(5, 21), true],
  [FIRST, put(3, 30), true],
  [FIRST, put(6, 22), true],
  [FIRST, put(5, 99), false],
  [FIRST, gone(0), true],
  [FIRST, gone(6), true],
  [FIRST, gone(1), false],
  [{ ...LAST, orderBy: "age", reverse: true }, put(9, 28), true],
  [LAST, put(9, 25.5), true],
  [LAST, put(9, 24.5), false],
  [LAST, gone(2), true],
  [LAST, gone(0), false],
  [{ orderBy: "age" }, put(9, 99), true],
  [{ orderBy: "age" }, ["the index, dropped", (kv) => kv.dropIndex("on")], null],
  // Rome: 0 (20), 6 (22), 4 (24), 2 (26). User 3 of Oslo is between the first two.
  [ROME, put(9, 21), true],
  [ROME, put(3, 21), true],
  [ROME, put(3, 21, "Bari"), true],
  [ROME, gone(3), true],
  [ROME, put(4, 25), false],
  [ROME, gone(1), false],
  [{ orderBy: "age", where: { age: { $gte: 24 } } }, put(1, 22), false],
  [{ orderBy: "age", where: { age: { $gte: 24 } } }, put(1, 24.5), true],
  [SORTED, gone(0), true],
  [SORTED, put(9, 1), true],
  [{ ...SORTED, where: { age: { $gte: 24 } } }, put(0, 21), false],
  [{ ...SORTED, where: { age: { $gte: 24 } } }, put(2, 90), true],
];

onEveryKind("ordered lists of transactions", (fresh) => {
  for (const [options, [what, meanwhile], again] of CASES) {
    test(`${JSON.stringify(options)}: ${what} ${again === false ? "is not" : "is"} a conflict`, async () => {
      const kv = await withUsers(await fresh());
      const read = async (tx) => ids(await all(tx.list(USERS, options)));
      if (again === null)
        return assert.rejects(attemptsOf(kv, read, meanwhile), { code: "INVALID" });
      assert.equal(await attemptsOf(kv, read, meanwhile), again ? 2 : 1);
      assert.deepEqual((await kv.get(["done"])).value, ids(await all(kv.list(USERS, options))));
    });
  }

  test("pages are checked from their cursors on", async () => {
    const kv = await withUsers(await fresh());
    for (const [options, other] of [
      [{ orderBy: "age" }, 0],
      [{ orderBy: "age", reverse: true }, 5],
    ]) {
      const first = await kv.paginate(USERS, { ...options, limit: 3 });
      const read = async (tx) => {
        const page = { ...options, limit: 2, cursor: first.cursor };
        return ids((await tx.paginate(USERS, page)).entries);
      };
      const before = (db) => db.set(["u", other], { age: other === 0 ? 1 : 99 });
      assert.equal(await attemptsOf(kv, read, before), 1);
      const [next] = (await kv.get(["done"])).value;
      const value = { age: 23.5 };
      assert.equal(await attemptsOf(kv, read, (db) => db.set(["u", 9], value)), 2);
      assert.notEqual(next, undefined);
      await kv.delete(["u", 9]);
    }
  });

  test("pages that are sorted go on behind their cursors", async () => {
    const kv = await withUsers(await fresh(), null);
    const { value } = await kv.transaction(async (tx) => {
      tx.set(["u", 9], { age: 23.5 }).delete(["u", 3]);
      const found = [];
      for (let cursor = ""; cursor !== null; ) {
        const page = await tx.paginate(USERS, { orderBy: "age", sort: true, limit: 3, cursor });
        found.push(ids(page.entries));
        cursor = page.cursor;
      }
      return found;
    });
    assert.deepEqual(value, [
      [0, 6, 1],
      [9, 4, 7],
      [2, 5],
    ]);
    const page = await kv.paginate(USERS, { orderBy: "age", sort: true, limit: 3 });
    await createIndex(kv, "age");
    const other = { orderBy: "age", cursor: page.cursor };
    const list = kv.transaction((tx) => all(tx.list(USERS, other)));
    await assert.rejects(list, /of another order/);
  });

  for (const sort of [false, true]) {
    test(`own writes are in their places${sort ? ", sorted" : ""}`, async () => {
      const kv = await withUsers(await fresh(), sort ? null : "age");
      let attempts = 0;
      const { value } = await kv.transaction(async (tx) => {
        attempts++;
        tx.set(["u", 5], { age: 0, city: "Rome" }).delete(["u", 3]).sum(["n"], 1n);
        tx.set(["u", 9], { age: 23.5, city: "Rome" }).set(["u", 4], { age: 24, city: "Bari" });
        const list = async (options) =>
          ids(await all(tx.list(USERS, { orderBy: "age", sort, ...options })));
        return [
          await list({}),
          await list({ reverse: true, limit: 3 }),
          await list({ where: { city: "Rome" } }),
          await list({ limit: 1, keysOnly: true, withExpiry: true }),
          await list({ where: { age: { $gt: 23 } }, limit: 2, batchSize: 1 }),
        ];
      });
      const expected = [[5, 0, 6, 1, 9, 4, 7, 2], [2, 7, 4], [5, 0, 6, 9, 2], [5], [9, 4]];
      assert.deepEqual([attempts, value], [1, expected]);
    });
  }

  test("a list whose entries move ahead has each once", async () => {
    const kv = await withUsers(await fresh());
    const { value } = await kv.transaction(async (tx) => {
      const found = [];
      for await (const { key, value } of tx.list(USERS, { orderBy: "age", batchSize: 2 })) {
        found.push(key[1]);
        tx.set(key, { ...value, age: value.age + 2.5 });
        // Moves behind all others, before the list has come to it.
        if (key[1] === 3) tx.set(["u", 1], { age: 90 });
      }
      return found;
    });
    assert.deepEqual(value, [0, 3, 6, 4, 7, 2, 5, 1]);
  });

  test("of many that each take the first, each gets another one", async () => {
    const kv = await withUsers(await fresh());
    const take = () =>
      kv.transaction(
        async (tx) => {
          const [first] = await all(tx.list(USERS, { orderBy: "age", limit: 1 }));
          tx.delete(first.key);
          return first.key[1];
        },
        { maxRetries: Number.POSITIVE_INFINITY },
      );
    const taken = await Promise.all(Array.from({ length: 6 }, take));
    assert.deepEqual(taken.map(({ value }) => value).sort(), [0, 1, 3, 4, 6, 7]);
  });

  test("an index that is dropped midway is a conflict", async () => {
    const kv = await withUsers(await fresh());
    let attempts = 0;
    const { value } = await kv.transaction(async (tx) => {
      attempts++;
      const found = [];
      const options = { orderBy: "age", batchSize: 1, sort: attempts > 1 };
      for await (const { key } of tx.list(USERS, options)) {
        found.push(key[1]);
        if (found.length === 1 && attempts === 1) await kv.dropIndex("on");
      }
      return found;
    });
    assert.deepEqual([attempts, value], [2, [0, 3, 6, 1, 4, 7, 2, 5]]);
  });

  test("a collection in a transaction has its order", async () => {
    const kv = await fresh();
    const users = kv.collection(["u"], { schema: (user) => user, id: "id", indexes: { age: {} } });
    await users.insert({ id: "a", age: 3 });
    await users.insert({ id: "b", age: 1 });
    const { value } = await kv.transaction(async (tx) => {
      await users.in(tx).insert({ id: "c", age: 2 });
      const found = await users.in(tx).list().orderBy("age").toArray();
      return found.map(({ value }) => value.age);
    });
    assert.deepEqual(value, [1, 2, 3]);
  });
});

onEach("long ordered lists of transactions", (fresh) => {
  test("a check passes a bounded number of other entries of the index", async () => {
    const kv = await fresh({ limits: "wide" });
    await createIndex(kv, "n");
    for (let from = 0; from < 10_500; from += 1500) {
      const atomic = kv.atomic();
      for (let n = from; n < from + 1500; n++) atomic.set(["u", n % 2, n], { n });
      await atomic.commit();
    }
    const read = async (tx) => {
      const list = { prefix: ["u", 0] };
      return (await all(tx.list(list, { orderBy: "n" }))).length;
    };
    const free = (db) => db.set(["u", 1, 1], { n: -1 });
    assert.equal(await attemptsOf(kv, read, free), 1);
    assert.equal(await attemptsOf(kv, read, (db) => db.set(["u", 0, 7], { n: 3.5 })), 2);
    assert.equal((await kv.get(["done"])).value, 5251);
    const few = { prefix: ["u", 1, 9] };
    const refused = kv.transaction(async (tx) => {
      for (let n = 0; n < 2; n++) await all(tx.list(few, { orderBy: "n" }));
    });
    await assert.rejects(refused, { code: "TOO_LARGE" });
  });
});
