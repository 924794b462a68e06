// Duty: lists, counts and reads of expiries within the bounds of a read on the JavaScript thread are answered before the
// event loop turns; larger ones are not, and both find what a scan finds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onEach, spendTurn } from "./databases.mjs";

const USERS = { prefix: ["u"] };
const COUNT = 400;
/** Entries that a brief list may read, those of the index among them: BRIEF_SCAN_ENTRIES_MAX. */
const ENTRIES_MAX = 128;
/** Bytes of the filter of a brief list: BRIEF_SCAN_FILTER_BYTES_MAX. */
const FILTER_BYTES_MAX = 1024;
/** Those of `{ email: "…" }` as CBOR beside the text. */
const EMAIL_FILTER_BYTES = 1 + 6 + 3;
/** More microtasks than a call of a method takes. No event of the addon arrives in a microtask. */
const MICROTASKS = 100;
/** A thread that is interrupted may leave a brief list to another one. */
const TRIES = 50;

const upTo = (n) => Array.from({ length: n }, (_, i) => i);
const turn = () => new Promise((resolve) => setImmediate(resolve));
const idsOf = (entries) => entries.map(({ key }) => key[1]);

async function filled(fresh) {
  const kv = await fresh();
  const all = kv.atomic();
  for (let i = 0; i < COUNT; i++) {
    all.set(["u", i], { email: `u${i}@example.com`, group: i % 4, half: i % 2, nth: i });
  }
  await all.commit();
  const unique = { on: "email", unique: true };
  for (const index of [unique, { on: "group" }, { on: "half" }, { on: "nth" }]) {
    await (await kv.createIndex({ type: "value", ...USERS, ...index })).ready();
  }
  return kv;
}

/** Whether a read is answered in its turn of the event loop, once at least in many turns; what it answers. */
async function answered(read) {
  let isBrief = false;
  let result;
  for (let n = 0; n < TRIES && !isBrief; n++) {
    await turn();
    let isDone = false;
    const reading = read().finally(() => {
      isDone = true;
    });
    for (let hop = 0; hop < MICROTASKS && !isDone; hop++) await null;
    isBrief = isDone;
    result = await reading;
  }
  return { isBrief, result };
}

onEach("brief lists", (fresh) => {
  const cases = [
    ["a value of a unique index", { email: "u7@example.com" }, {}, true, [7]],
    ["no such value", { email: "nobody@example.com" }, {}, true, []],
    ["a value, backwards", { email: "u7@example.com" }, { reverse: true }, true, [7]],
    ["a value and another condition", { email: "u7@example.com", half: 0 }, {}, true, []],
    ["several values", { email: { $in: ["u9@example.com", "u3@example.com"] } }, {}, true, [3, 9]],
    ["the first of many", { group: 2 }, { limit: 3 }, true, [2, 6, 10]],
    ["the last of many", { group: 2 }, { limit: 2, reverse: true }, true, [398, 394]],
    ["some behind others", { group: 2, nth: { $gt: 8 } }, { limit: 2 }, true, [10, 14]],
    ["a small range", { nth: { $between: [5, 7] } }, {}, true, [5, 6, 7]],
    ["a depth", { email: "u7@example.com" }, { depth: 1 }, true, [7]],
    ["a large range", { nth: { $gte: 10 } }, { limit: 1 }, false, [10]],
    ["none of several values", { nth: { $in: [0.5, -1] } }, {}, true, []],
    ["nothing of many", { half: 1, no: 1 }, {}, false, []],
    ["no index", { other: { $null: false } }, {}, false, []],
  ];
  for (const [name, where, options, isBrief, ids] of cases) {
    test(`${name}: ${isBrief ? "in its turn" : "by another thread"}`, async () => {
      const kv = await filled(fresh);
      const read = () => kv.list(USERS, { where, ...options }).toArray();
      const found = await answered(read);
      assert.deepEqual(idsOf(found.result), ids);
      assert.equal(found.isBrief, isBrief);
    });
  }

  const END = new Date(Date.now() + 3_600_000);
  const row = (n, parts) => (entries) => {
    assert.deepEqual(Object.keys(entries[n]).sort(), [...parts, "key", "versionstamp"].sort());
    return idsOf(entries);
  };
  const list = (options) => (kv) => kv.list(USERS, options).toArray();
  const ordered = (options) => async (kv) => idsOf(await list(options)(kv));
  const reads = [
    ["keys", async (kv) => row(1, [])(await list({ keysOnly: true, limit: 2 })(kv)), true, [0, 1]],
    [
      "expiries, backwards",
      async (kv) => {
        const options = { withExpiry: true, limit: 2, reverse: true };
        return row(1, ["value", "expireAt"])(await list(options)(kv));
      },
      true,
      [399, 398],
    ],
    ["a depth", async (kv) => idsOf(await list({ depth: 1, limit: 2 })(kv)), true, [0, 1]],
    ["all keys", async (kv) => (await list({ keysOnly: true })(kv)).length, false, COUNT],
    ["an order", ordered({ orderBy: { nth: "desc" }, limit: 3 }), true, [399, 398, 397]],
    [
      "an order of what a filter selects",
      ordered({ where: { nth: { $gte: 10 }, half: 0 }, orderBy: "nth", limit: 3 }),
      true,
      [10, 12, 14],
    ],
    ["the largest page in an order", ordered({ orderBy: "nth", limit: 32 }), true, upTo(32)],
    ["several pages in an order", ordered({ orderBy: "nth", limit: 100 }), false, upTo(100)],
    [
      "few in an order",
      ordered({ where: { nth: { $gte: 10 }, half: 2 }, orderBy: "nth" }),
      false,
      [],
    ],
    ["an order that an index has", ordered({ orderBy: "nth", sort: true, limit: 2 }), true, [0, 1]],
    ["sorted in memory", ordered({ orderBy: "no", sort: true, limit: 2 }), false, [0, 1]],
    ["an expiry", async (kv) => (await kv.ttl(["e"])).expireAt, true, END],
    ["no expiry", (kv) => kv.ttl(["u", 1]), true, null],
    ["no entry", (kv) => kv.ttl(["u", -1]), true, null],
    ["an entry", async (kv) => (await kv.get(["e"], { withExpiry: true })).expireAt, true, END],
    [
      "an entry that is not there",
      async (kv) => Object.values(await kv.get(["no"], { withExpiry: true })),
      true,
      [["no"], null, null, null],
    ],
    ["few are counted", (kv) => kv.count({ end: ["u", 128], start: ["u", 0] }), true, 128],
    ["more are counted", (kv) => kv.count({ end: ["u", 129], start: ["u", 0] }), false, 129],
    ["what a filter selects", (kv) => kv.count(USERS, { where: { nth: { $lt: 9 } } }), true, 9],
    ["what no index has", (kv) => kv.count(USERS, { where: { no: 1 } }), false, 0],
  ];
  for (const [name, read, isBrief, expected] of reads) {
    test(`${name}: ${isBrief ? "in its turn" : "by another thread"}`, async () => {
      const kv = await filled(fresh);
      await kv.set(["e"], 1, { expireAt: END });
      const found = await answered(() => read(kv));
      assert.deepEqual(found.result, expected);
      assert.equal(found.isBrief, isBrief);
      await spendTurn(kv);
      assert.deepEqual(await read(kv), expected);
    });
  }

  test("a page within the bound is brief, one above it is not, and a list goes over both", async () => {
    const kv = await filled(fresh);
    const list = (limit) => () =>
      kv.list(USERS, { where: { half: 1 }, limit, batchSize: limit }).toArray();
    const first = (limit) => Array.from({ length: limit }, (_, n) => 2 * n + 1);
    // Each entry is read in the index and itself, and one in the index tells that there are more.
    for (const [limit, isBrief] of [
      [ENTRIES_MAX / 2 - 1, true],
      [ENTRIES_MAX / 2, false],
    ]) {
      const found = await answered(list(limit));
      assert.deepEqual(idsOf(found.result), first(limit));
      assert.equal(found.isBrief, isBrief, `${limit} entries`);
    }
    const all = await kv.list(USERS, { where: { half: 1 } }).toArray();
    assert.deepEqual(idsOf(all), first(COUNT / 2));
    const { entries, cursor } = await kv.paginate(USERS, { where: { half: 1 }, limit: 5 });
    const rest = await kv.list(USERS, { where: { half: 1 }, cursor }).toArray();
    assert.deepEqual(idsOf([...entries, ...rest]), first(COUNT / 2));
  });

  test("values within the bound of bytes are brief, more are not", async () => {
    const kv = await fresh();
    await (await kv.createIndex({ type: "value", ...USERS, on: "group" })).ready();
    const filling = "x".repeat(60 * 1024);
    for (let i = 0; i < 9; i++) await kv.set(["u", i], { group: i < 3 ? "few" : "many", filling });
    for (const [group, ids] of [
      ["few", [0, 1, 2]],
      ["many", [3, 4, 5, 6, 7, 8]],
    ]) {
      const list = () => kv.list(USERS, { where: { group, filling: { $startsWith: "x" } } });
      const found = await answered(() => list().toArray());
      assert.deepEqual(idsOf(found.result), ids);
      assert.equal(found.isBrief, group === "few");
    }
  });

  test("a list of expiries goes on behind the bound of bytes", async () => {
    const kv = await fresh();
    for (let i = 0; i < 9; i++) await kv.set(["u", i], "x".repeat(60 * 1024));
    for (const [reverse, ids] of [
      [false, upTo(9)],
      [true, upTo(9).reverse()],
    ]) {
      const list = () => kv.list(USERS, { withExpiry: true, reverse }).toArray();
      const { result, isBrief } = await answered(list);
      assert.deepEqual([idsOf(result), isBrief], [ids, true]);
    }
  });

  test("each read is counted once, as what it is", async () => {
    const kv = await filled(fresh);
    const counted = async () => {
      const { operations } = await kv.metrics();
      const names = ["get", "getWithExpiry", "list", "count", "ttl"];
      return names.map((name) => operations[name]?.count ?? 0);
    };
    const before = await counted();
    await kv.count({ start: ["u", 0], end: ["u", 9] });
    await kv.count(USERS);
    await kv.ttl(["u", 1]);
    await kv.get(["u", 1], { withExpiry: true });
    await kv.list(USERS, { keysOnly: true, limit: 2 }).toArray();
    await kv.list(USERS, { orderBy: "nth", limit: 2 }).toArray();
    const after = await counted();
    assert.deepEqual(
      after.map((count, at) => count - before[at]),
      [0, 1, 2, 2, 1],
    );
  });

  test("a list of a depth skips more than a brief step visits", async () => {
    const kv = await fresh();
    const all = kv.atomic().set(["u", ENTRIES_MAX + 1], 1);
    for (let i = 0; i <= ENTRIES_MAX; i++) all.set(["u", i, "below"], i);
    await all.commit();
    const found = await answered(() => kv.list(USERS, { depth: 1, limit: 1 }).toArray());
    assert.deepEqual([idsOf(found.result), found.isBrief], [[ENTRIES_MAX + 1], false]);
  });

  test("a filter within the bound of bytes is brief, a larger one is not", async () => {
    const kv = await filled(fresh);
    const alternatives = (count) => Array.from({ length: count }, (_, n) => ({ nth: n % 8 }));
    for (const [bytes, isBrief] of [
      [FILTER_BYTES_MAX, true],
      [FILTER_BYTES_MAX + 1, false],
    ]) {
      const where = { email: "x".repeat(bytes - EMAIL_FILTER_BYTES) };
      const found = await answered(() => kv.list(USERS, { where }).toArray());
      assert.deepEqual([found.result, found.isBrief], [[], isBrief], `${bytes} bytes`);
    }
    for (const [count, isBrief] of [
      [8, true],
      [200, false],
    ]) {
      const where = { $or: alternatives(count) };
      const found = await answered(() => kv.list(USERS, { where }).toArray());
      assert.deepEqual(idsOf(found.result), [0, 1, 2, 3, 4, 5, 6, 7]);
      assert.equal(found.isBrief, isBrief, `${count} alternatives`);
    }
  });

  test("a large value is compared by another thread", async () => {
    const kv = await fresh({ limits: "wide" });
    await (await kv.createIndex({ type: "value", ...USERS, on: "email" })).ready();
    const items = Array.from({ length: 50_000 }, (_, n) => n % 20);
    await kv.set(["u", 1], { email: "large", items });
    const where = { email: "large", "items.x": { $null: true } };
    const found = await answered(() => kv.list(USERS, { where, keysOnly: true }).toArray());
    assert.deepEqual(idsOf(found.result), [1]);
    assert.equal(found.isBrief, false);
  });

  test("a brief list follows the writes that were called before, and expiries", async () => {
    const kv = await filled(fresh);
    const find = (email) => kv.list(USERS, { where: { email } }).toArray();
    kv.set(["u", 7], { email: "new@example.com" });
    const [old, now] = await Promise.all([find("u7@example.com"), find("new@example.com")]);
    assert.deepEqual([idsOf(old), idsOf(now)], [[], [7]]);
    await kv.delete(["u", 7]);
    assert.deepEqual(await find("new@example.com"), []);
    const where = { email: "u8@example.com" };
    const [entry] = await kv.list(USERS, { where, withExpiry: true }).toArray();
    assert.deepEqual([entry.value.nth, entry.expireAt], [8, null]);
    const [{ value }] = await kv.list(USERS, { where, keysOnly: true }).toArray();
    assert.equal(value, undefined);
  });

  test("a brief list rejects as a longer one does", async () => {
    const kv = await filled(fresh);
    const wrong = kv.list(USERS, { where: { email: { $no: 1 } } });
    await assert.rejects(wrong.next(), /where/);
    const signal = AbortSignal.abort(new Error("stopped"));
    const list = () => kv.list(USERS, { where: { email: "u7@example.com" }, signal }).toArray();
    await assert.rejects(async () => await list(), /stopped/);
    kv.close();
    const closed = async () => await kv.list(USERS, { where: { email: "x" } }).toArray();
    await assert.rejects(closed, { code: "CLOSED" });
  });
});
