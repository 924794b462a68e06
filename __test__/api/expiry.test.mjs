// Duty: ttl, touch and persist: when entries end, as data.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onEveryKind } from "./databases.mjs";

const HOUR_MS = 3_600_000;

/** The versionstamp of what is stored under a key. */
const stampOf = async (kv, key) => (await kv.get(key)).versionstamp;

onEveryKind("ends", (fresh) => {
  test("ttl tells the end, and null without one", async () => {
    const kv = await fresh();
    const before = Date.now();
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
    assert.ok((await kv.atomic().check({ key: ["a"], versionstamp }).commit()).ok);
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
      const result = await kv.atomic().touch(key, { expireIn: 5 }).persist(key).set(["b"], 1).commit();
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
    assert.match(inspect(2, {}, undefined), /touch\(\[ 'a' \], \{ expireIn: 5 \}\)\n  persist\(\[ 'b' \]\)/);
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
    kv.close();
    const closed = { name: "BadResource", code: "CLOSED" };
    await assert.rejects(kv.ttl(["a"]), closed);
    await assert.rejects(kv.touch(["a"], { expireIn: 5 }), closed);
    await assert.rejects(kv.persist(["a"]), closed);
  });
});
