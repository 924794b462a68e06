// Duty: lists of a transaction that value indexes find: what they are, and which changes are conflicts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptsOf } from "./attempts.mjs";
import { all, onEach, onEveryKind } from "./databases.mjs";

const USERS = { prefix: ["u"] };
const ids = (entries) => entries.map(({ key }) => key[1]);

/** Users from 0 on: cities Rome and Oslo in turn, age 20 on. */
async function withUsers(kv, on, count = 8) {
  if (on !== undefined) await createIndex(kv, on);
  const atomic = kv.atomic();
  for (let n = 0; n < count; n++) {
    atomic.set(["u", n], { city: n % 2 === 0 ? "Rome" : "Oslo", age: 20 + n });
  }
  await atomic.commit();
  return kv;
}

async function createIndex(kv, on) {
  await (await kv.createIndex({ type: "value", prefix: ["u"], on, name: "on" })).ready();
}

const ROME = { where: { city: "Rome" } };

/** A read, what happens meanwhile, and whether that is a conflict. */
const CASES = [
  ["an entry that comes", ROME, (kv) => kv.set(["u", 8], { city: "Rome" }), true],
  ["an entry that comes to match", ROME, (kv) => kv.set(["u", 1], { city: "Rome" }), true],
  ["an entry that no longer matches", ROME, (kv) => kv.set(["u", 2], { city: "Oslo" }), true],
  ["a deleted entry", ROME, (kv) => kv.delete(["u", 2]), true],
  ["a matching entry", ROME, (kv) => kv.set(["u", 2], { city: "Rome", age: 1 }), true],
  ["an entry with several values", ROME, (kv) => kv.set(["u", 1], { city: ["Rome"] }), true],
  ["an entry that does not match", ROME, (kv) => kv.set(["u", 1], { city: "Bari" }), false],
  ["an expiry", ROME, (kv) => kv.touch(["u", 2], { expireIn: 60_000 }), false],
  [
    "a found entry that where leaves out",
    { where: { city: "Rome", age: 20 } },
    (kv) => kv.set(["u", 2], { city: "Rome", age: 20 }),
    true,
  ],
  [
    "an entry of a range of values",
    { where: { city: { $gte: "P" } } },
    (kv) => kv.set(["u", 1], { city: "Q" }),
    true,
  ],
  [
    "an entry outside a range of values",
    { where: { city: { $gte: "P" } } },
    (kv) => kv.set(["u", 1], { city: "O" }),
    false,
  ],
  [
    "an entry behind the limit",
    { ...ROME, limit: 2 },
    (kv) => kv.set(["u", 4], { city: "Oslo" }),
    false,
  ],
  [
    "an entry before the limit",
    { ...ROME, limit: 2 },
    (kv) => kv.set(["u", 1], { city: "Rome" }),
    true,
  ],
  [
    "an entry behind the limit, in reverse",
    { ...ROME, limit: 2, reverse: true },
    (kv) => kv.set(["u", 2], { city: "Oslo" }),
    false,
  ],
  [
    "an entry before the limit, in reverse",
    { ...ROME, limit: 2, reverse: true },
    (kv) => kv.set(["u", 5], { city: "Rome" }),
    true,
  ],
  ["the index, dropped", ROME, (kv) => kv.dropIndex("on"), true],
];

onEveryKind("transactions by index", (fresh) => {
  for (const [what, options, meanwhile, again] of CASES) {
    test(`${what} ${again ? "is" : "is not"} a conflict`, async () => {
      const kv = await withUsers(await fresh(), "city");
      const read = async (tx) => ids(await all(tx.list(USERS, options)));
      assert.equal(await attemptsOf(kv, read, meanwhile), again ? 2 : 1);
      assert.deepEqual((await kv.get(["done"])).value, ids(await all(kv.list(USERS, options))));
    });
  }

  test("a count and a page check what the index has found", async () => {
    const kv = await withUsers(await fresh(), "city");
    const reads = [
      (tx) => tx.count(USERS, ROME),
      async (tx) => (await tx.paginate(USERS, { ...ROME, limit: 9 })).entries.length,
      async (tx) => (await all(tx.list(USERS, { ...ROME, keysOnly: true }))).length,
    ];
    for (const [at, read] of reads.entries()) {
      const free = (db) => db.set(["u", 1], { city: `Bari ${at}` });
      assert.equal(await attemptsOf(kv, read, free), 1);
      const phantom = (db) => db.set(["u", 10 + at], { city: "Rome" });
      assert.equal(await attemptsOf(kv, read, phantom), 2);
      assert.equal((await kv.get(["done"])).value, 5 + at);
    }
  });

  test("own writes are in the lists, and are no conflict", async () => {
    const kv = await withUsers(await fresh(), "city");
    let attempts = 0;
    const { value } = await kv.transaction(async (tx) => {
      attempts++;
      tx.set(["u", 0], { city: "Oslo" }).set(["u", 1], { city: "Rome" });
      tx.delete(["u", 2]).set(["u", 9], { city: "Rome" }).set(["u", 3], { city: "Bari" });
      const forward = ids(await all(tx.list(USERS, ROME)));
      const back = ids(await all(tx.list(USERS, { ...ROME, reverse: true, limit: 3 })));
      return [forward, back, await tx.count(USERS, ROME)];
    });
    assert.deepEqual(value, [[1, 4, 6, 9], [9, 6, 4], 4]);
    assert.equal(attempts, 1);
    assert.deepEqual(ids(await all(kv.list(USERS, ROME))), [1, 4, 6, 9]);
  });

  test("of many that each find nobody, one takes the name", async () => {
    const kv = await fresh();
    await createIndex(kv, "name");
    const take = (n) =>
      kv.transaction(async (tx) => {
        if ((await tx.count(USERS, { where: { name: "ada" } })) > 0) return false;
        tx.set(["u", n], { name: "ada" });
        return true;
      });
    const taken = await Promise.all(Array.from({ length: 12 }, (_, n) => take(n)));
    assert.equal(taken.filter(({ value }) => value).length, 1);
    assert.equal(await kv.count(USERS, { where: { name: "ada" } }), 1);
  });

  test("random moves at once fill no room beyond its seats", async () => {
    const kv = await fresh();
    await createIndex(kv, "room");
    const atomic = kv.atomic();
    for (let n = 0; n < 9; n++) atomic.set(["u", n], { room: n % 3 });
    await atomic.commit();
    const seats = 4;
    const inRoom = (reader, room) => all(reader.list(USERS, { where: { room } }));
    const move = async (from, to) => {
      const { value } = await kv.transaction(async (tx) => {
        const [leaving] = await inRoom(tx, from);
        if (leaving === undefined || (await inRoom(tx, to)).length >= seats) return false;
        tx.set(leaving.key, { room: to });
        return true;
      });
      return value;
    };
    for (let round = 0; round < 4; round++) {
      const moves = Array.from({ length: 6 }, (_, n) =>
        move((n + round) % 3, (n + 1 + (n % 2)) % 3),
      );
      await Promise.all(moves);
      const rooms = await Promise.all([0, 1, 2].map((room) => inRoom(kv, room)));
      const counts = rooms.map(({ length }) => length);
      assert.ok(Math.max(...counts) <= seats, String(counts));
      assert.equal(counts[0] + counts[1] + counts[2], 9);
    }
  });

  test("alternatives of two indexes are checked in both", async () => {
    const kv = await withUsers(await fresh(), "city");
    const byAge = await kv.createIndex({ type: "value", prefix: ["u"], on: "age", name: "age" });
    await byAge.ready();
    const where = { $or: [{ city: "Rome" }, { age: 27 }] };
    const read = (tx) => tx.count(USERS, { where });
    for (const [change, again] of [
      [(db) => db.set(["u", 1], { city: "Bari", age: 50 }), false],
      [(db) => db.set(["u", 1], { city: "Bari", age: 27 }), true],
      [(db) => db.set(["u", 7], { city: "Bari", age: 28 }), true],
      [(db) => db.set(["u", 3], { city: "Rome", age: 28 }), true],
    ]) {
      assert.equal(await attemptsOf(kv, read, change), again ? 2 : 1);
    }
  });

  for (const reverse of [false, true]) {
    // So many that the index finds the last ones, even if steps end early on a busy machine.
    const count = 40;
    const [first, last] = reverse ? [count - 1, 1] : [1, count - 1];
    for (const [changed, again] of [
      [first, true],
      [last, false],
    ]) {
      const where = `user ${changed}${reverse ? ", in reverse" : ""}`;
      test(`a list that an index begins to find midway is checked in both ways: ${where}`, async () => {
        const kv = await withUsers(await fresh(), undefined, count);
        let isCreated = false;
        const read = async (tx) => {
          const found = [];
          for await (const { key } of tx.list(USERS, { ...ROME, reverse, batchSize: 2 })) {
            found.push(key[1]);
            if (found.length === 2 && !isCreated) {
              isCreated = true;
              await createIndex(kv, "city");
            }
          }
          return found;
        };
        // Of another city before and after: what is read by keys is checked, what an index finds is not.
        const change = () => kv.set(["u", changed], { city: "Bari" });
        assert.equal(await attemptsOf(kv, read, change), again ? 2 : 1);
        const even = Array.from({ length: count / 2 }, (_, n) => 2 * n);
        assert.deepEqual((await kv.get(["done"])).value, reverse ? even.reverse() : even);
      });
    }
  }

  test("an index that is dropped midway is a conflict", async () => {
    const kv = await withUsers(await fresh(), "city");
    let attempts = 0;
    const { value } = await kv.transaction(async (tx) => {
      attempts++;
      const found = [];
      for await (const { key } of tx.list(USERS, { ...ROME, batchSize: 1 })) {
        found.push(key[1]);
        if (attempts === 1 && found.length === 1) await kv.dropIndex("on");
      }
      tx.set(["done"], true);
      return found;
    });
    assert.deepEqual([attempts, value], [2, [0, 2, 4, 6]]);
  });

  test("the time of $now is that of the list", async () => {
    const kv = await fresh();
    await createIndex(kv, "due");
    await kv.set(["u", 1], { due: new Date(0) });
    await kv.set(["u", 2], { due: new Date(Date.now() + 3_600_000) });
    const read = (tx) => tx.count(USERS, { where: { due: { $lte: { $now: true } } } });
    const later = (db) => db.set(["u", 2], { due: new Date(Date.now() + 7_200_000) });
    assert.equal(await attemptsOf(kv, read, later), 1);
    assert.equal(await attemptsOf(kv, read, (db) => db.set(["u", 2], { due: new Date(1) })), 2);
    assert.equal((await kv.get(["done"])).value, 2);
  });
});

onEach("long transactions by index", (fresh) => {
  test("a list that leaves the index for the keys is checked in both ways", async () => {
    const kv = await fresh({ limits: "wide" });
    await createIndex(kv, "n");
    for (let from = 0; from < 11_000; from += 1000) {
      const atomic = kv.atomic();
      for (let n = from; n < from + 1000; n++) atomic.set(["u", n], { n: n % 2 });
      await atomic.commit();
    }
    // 5500 entries of the index: over the bound of a range together with those of the other value.
    const some = (tx) => tx.count(USERS, { where: { n: 1 } });
    assert.equal(await attemptsOf(kv, some, (db) => db.set(["u", 0], { n: 3 })), 1);
    assert.equal(await attemptsOf(kv, some, (db) => db.set(["u", 10_998], { n: 1 })), 2);
    assert.equal((await kv.get(["done"])).value, 5501);
    const most = (tx) => tx.count(USERS, { where: { n: { $gte: 0 } } });
    // By the keys all entries of the range are checked.
    assert.equal(await attemptsOf(kv, most, (db) => db.set(["u", 5], {})), 2);
    assert.equal((await kv.get(["done"])).value, 10_999);
  });
});
