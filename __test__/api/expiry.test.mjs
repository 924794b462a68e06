// Duty: ttl, touch and persist: when entries end, as data.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BEHIND_MS_MAX, all, onEveryKind } from "./databases.mjs";

const HOUR_MS = 3_600_000;

/** The versionstamp of what is stored under a key. */
const stampOf = async (kv, key) => (await kv.get(key)).versionstamp;

onEveryKind("ends", (fresh, { onPostgres = false } = {}) => {
  const behindMs = onPostgres ? BEHIND_MS_MAX : 0;

  test("ttl tells the end, and null without one", async () => {
    const kv = await fresh();
    const before = Date.now() - behindMs;
    await kv.set(["ends"], "v", { expireIn: HOUR_MS });
    await kv.set(["stays"], "v");
    await kv.set(["gone"], "v", { expireIn: 0 });
    const { expireAt } = await kv.ttl(["ends"]);
    assert.ok(expireAt instanceof Date);
    assert.ok(expireAt.getTime() >= before + HOUR_MS && expireAt.getTime() <= Date.now() + HOUR_MS);
    assert.equal(await kv.ttl(["stays"]), null);
    assert.equal(await kv.ttl(["gone"]), null);
    assert.equal(await kv.ttl(["never"]), null);
  });

  test("touch and persist move the end and nothing else", async () => {
    const kv = await fresh();
    const large = "x".repeat(5000);
    const { versionstamp } = await kv.set(["a"], large);
    const touched = await kv.touch(["a"], { expireIn: HOUR_MS });
    assert.equal(touched.ok, true);
    assert.ok(touched.versionstamp > versionstamp);
    assert.notEqual(await kv.ttl(["a"]), null);
    assert.deepEqual(await kv.get(["a"]), { key: ["a"], value: large, versionstamp });
    assert.ok(
      (
        await kv
          .atomic()
          .check({ key: ["a"], versionstamp })
          .commit()
      ).ok,
    );
    assert.equal((await kv.persist(["a"])).ok, true);
    assert.equal(await kv.ttl(["a"]), null);
    assert.equal((await kv.get(["a"])).value, large);
  });

  test("without an entry they answer ok: false, and do nothing in an operation", async () => {
    const kv = await fresh();
    await kv.set(["gone"], 1, { expireIn: 0 });
    for (const key of [["never"], ["gone"]]) {
      assert.deepEqual(await kv.touch(key, { expireIn: 1000 }), { ok: false, failed: [] });
      assert.deepEqual(await kv.persist(key), { ok: false, failed: [] });
      const result = await kv
        .atomic()
        .touch(key, { expireIn: 5 })
        .persist(key)
        .set(["b"], 1)
        .commit();
      assert.ok(result.ok);
      assert.equal(await stampOf(kv, key), null);
      assert.equal(await stampOf(kv, ["b"]), result.versionstamp);
    }
  });

  test("an end that is moved to now is one", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1, { expireIn: HOUR_MS });
    assert.ok((await kv.touch(["a"], { expireIn: 0 })).ok);
    assert.equal(await stampOf(kv, ["a"]), null);
    assert.deepEqual(await kv.persist(["a"]), { ok: false, failed: [] });
  });

  test("in an operation they see what it has set", async () => {
    const kv = await fresh();
    const operation = kv.atomic();
    operation.set(["a"], 1).touch(["a"], { expireIn: HOUR_MS });
    operation.set(["b"], 1, { expireIn: HOUR_MS }).persist(["b"]);
    await operation.commit();
    assert.notEqual(await kv.ttl(["a"]), null);
    assert.equal(await kv.ttl(["b"]), null);
  });

  test("expireAt is the moment itself, wherever expireIn goes", async () => {
    const kv = await fresh();
    const at = Date.now() + HOUR_MS;
    await kv.set(["set"], 1, { expireAt: new Date(at) });
    await kv.set(["touch"], 1);
    await kv.touch(["touch"], { expireAt: at });
    const operation = kv.atomic().set(["atomic"], 1, { expireAt: at + 0.5 });
    operation.mutate({ type: "set", key: ["mutate"], value: 1, expireAt: new Date(at) });
    operation.sum(["sum"], 1n, { expireAt: at, max: 5n }).min(["min"], 1, { expireAt: at });
    operation.append(["append"], [1], { expireAt: at }).prepend(["prepend"], [1], { expireAt: at });
    operation.mutate({ type: "max", key: ["max"], value: 1.5, expireAt: at });
    operation.mutate({ type: "append", key: ["items"], value: [1], expireAt: new Date(at) });
    operation.set(["moved"], 1).touch(["moved"], { expireAt: at });
    await operation.commit();
    await kv.transaction((tx) => tx.set(["tx"], 1, { expireAt: at }) && undefined);
    const listed = await all(kv.list({ prefix: [] }, { withExpiry: true, keysOnly: true }));
    assert.equal(listed.length, 12);
    for (const { key, expireAt } of listed) assert.equal(expireAt.getTime(), at, key[0]);
    // What withExpiry answers can be handed on.
    await kv.set(["stays"], 1, { expireAt: null });
    assert.equal(await kv.ttl(["stays"]), null);
  });

  test("an expireAt that has passed leaves no entry", async () => {
    const kv = await fresh();
    for (const expireAt of [new Date(0), -5, Date.now() - 1, Date.now()]) {
      await kv.set(["a"], "before");
      await kv.set(["a"], "after", { expireAt });
      assert.equal(await stampOf(kv, ["a"]), null);
    }
  });

  test("an expireAt that is no moment, or beside expireIn, is a TypeError", async () => {
    const kv = await fresh();
    for (const expireAt of ["2030", NaN, Infinity, 9e15, new Date(NaN), 5n, true, {}]) {
      const refused = {
        name: "TypeError",
        message: /expireAt must be a Date or ms since the epoch/,
      };
      await assert.rejects(kv.set(["a"], 1, { expireAt }), refused);
      assert.throws(() => kv.atomic().set(["a"], 1, { expireAt }), refused);
      assert.throws(() => kv.atomic().sum(["a"], 1, { expireAt }), refused);
    }
    const both = { expireIn: 5, expireAt: Date.now() + 5 };
    const refused = { name: "TypeError", message: /either expireIn or expireAt, not both/ };
    await assert.rejects(kv.set(["a"], 1, both), refused);
    await assert.rejects(kv.touch(["a"], both), refused);
    const mutation = { type: "set", key: ["a"], value: 1, ...both };
    for (const call of [
      (op) => op.set(["a"], 1, both),
      (op) => op.append(["a"], [1], both),
      (op) => op.max(["a"], 1, both),
      (op) => op.mutate(mutation),
    ])
      assert.throws(() => call(kv.atomic()), refused);
    assert.equal(await stampOf(kv, ["a"]), null);
  });

  test("calculations and appends keep an end, or give another one", async () => {
    const kv = await fresh();
    const calls = {
      sum: (op, key, end) => op.sum(key, 1, end),
      bounded: (op, key, end) => op.sum(key, 1, { max: 9, clamp: true, ...end }),
      min: (op, key, end) => op.min(key, 1, end),
      max: (op, key, end) => op.max(key, 1, end),
      append: (op, key, end) => op.append(key, [1], end),
      prepend: (op, key, end) => op.prepend(key, [1], end),
    };
    const at = Date.now() + HOUR_MS;
    const endOf = async (key) => (await kv.ttl(key))?.expireAt.getTime() ?? null;
    for (const [name, call] of Object.entries(calls)) {
      const key = [name];
      // Without an entry it stays, unless it is given an end.
      await call(kv.atomic(), key).commit();
      assert.equal(await endOf(key), null, name);
      await call(kv.atomic(), key, { expireAt: at }).commit();
      assert.equal(await endOf(key), at, name);
      await call(kv.atomic(), key).commit();
      assert.equal(await endOf(key), at, `${name} keeps it`);
      const before = Date.now() - behindMs;
      const operation = call(kv.atomic(), key, { expireIn: 2 * HOUR_MS });
      await operation.commit();
      const end = await endOf(key);
      assert.ok(end >= before + 2 * HOUR_MS && end <= Date.now() + 2 * HOUR_MS, name);
      // Within one commit too, and from the commit on, however often.
      await call(
        kv.atomic().set(key, name.includes("pend") ? [] : 1, { expireAt: at }),
        key,
      ).commit();
      assert.equal(await endOf(key), at, `${name} in one commit`);
      await operation.commit();
      assert.ok((await endOf(key)) >= end, `${name} again`);
      // What has ended has left nothing to keep.
      await kv.touch(key, { expireIn: 0 });
      await call(kv.atomic(), key).commit();
      assert.equal(await endOf(key), null, `${name} after an end`);
      await call(kv.atomic(), key, { expireIn: 0 }).commit();
      assert.equal(await stampOf(kv, key), null, `${name} for nothing`);
    }
  });

  test("a transaction sees the end of what it has calculated", async () => {
    const kv = await fresh();
    const at = Date.now() + HOUR_MS;
    await kv.set(["n"], 1, { expireAt: at });
    await kv.transaction(async (tx) => {
      tx.sum(["n"], 1).append(["l"], [1], { expireAt: at });
      for await (const { value, expireAt } of tx.list({ prefix: [] }, { withExpiry: true })) {
        assert.equal(expireAt.getTime(), at, String(value));
      }
    });
    assert.equal((await kv.ttl(["l"])).expireAt.getTime(), at);
  });

  test("a watch says nothing of a moved end", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    const states = kv.watch([["a"]])[Symbol.asyncIterator]();
    await states.next();
    await kv.touch(["a"], { expireIn: HOUR_MS });
    await kv.set(["a"], 2);
    const { value } = await states.next();
    assert.equal(value[0].value, 2);
    await states.return();
  });

  test("an operation prints them", async () => {
    const kv = await fresh();
    const text = kv.atomic().touch(["a"], { expireIn: 5 }).persist(["b"]);
    const inspect = text[Symbol.for("nodejs.util.inspect.custom")].bind(text);
    assert.match(
      inspect(2, {}, undefined),
      /touch\(\[ 'a' \], \{ expireIn: 5 \}\)\n  persist\(\[ 'b' \]\)/,
    );
    text
      .set(["c"], 1, { expireAt: 7 })
      .sum(["d"], 1, { max: 2, expireIn: 5 })
      .touch(["e"], { expireAt: 8 });
    text.append(["f"], [], { expireAt: 9 }).prepend(["g"], []);
    assert.deepEqual(inspect(2, {}, undefined).split("\n").slice(3), [
      "  set([ 'c' ], 1, { expireAt: 7 })",
      "  sum([ 'd' ], 1, { max: 2, expireIn: 5 })",
      "  touch([ 'e' ], { expireAt: 8 })",
      "  append([ 'f' ], [], { expireAt: 9 })",
      "  prepend([ 'g' ], [])",
    ]);
  });

  test("wrong arguments are refused by name", async () => {
    const kv = await fresh();
    await assert.rejects(kv.ttl("a"), /key must be an array/);
    await assert.rejects(kv.ttl([]), /key cannot be empty/);
    await assert.rejects(kv.ttl(["k".repeat(3000)]), /Key too large for read \(max 2048 bytes\)/);
    await assert.rejects(kv.touch(["a"]), /kv\.touch: expireIn .* is missing/);
    await assert.rejects(kv.touch(["a"], 5), /options must be an object/);
    await assert.rejects(kv.touch(["a"], { expiresIn: 5 }), /unknown option 'expiresIn'/);
    for (const expireIn of [-1, 1.5, NaN, "5", null]) {
      await assert.rejects(kv.touch(["a"], { expireIn }), /expireIn must be a non-negative/);
    }
    await assert.rejects(kv.touch([{}], { expireIn: 5 }), TypeError);
    await assert.rejects(kv.persist([]), /key cannot be empty/);
    await assert.rejects(kv.persist(["k".repeat(3000)]), /Key too large for write/);
    assert.throws(() => kv.atomic().touch(["a"], {}), /atomic\(\)\.touch: expireIn/);
    await assert.rejects(kv.atomic().persist(["a", {}]).commit(), TypeError);
    await kv.close();
    const closed = { name: "BadResource", code: "CLOSED" };
    await assert.rejects(kv.ttl(["a"]), closed);
    await assert.rejects(kv.touch(["a"], { expireIn: 5 }), closed);
    await assert.rejects(kv.persist(["a"]), closed);
  });
});
