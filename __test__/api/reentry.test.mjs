// Duty: getters that call back into the handle while their key or value is being encoded. The
// scratch and the batch are shared by all calls of a thread: nothing of one may get into another.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { openKv } from "../../index.mjs";
import { all, onEveryKind } from "./databases.mjs";

/** A key whose second part is computed when it is read. */
function keyWith(first, compute) {
  const key = [first];
  Object.defineProperty(key, 1, { get: compute, enumerable: true, configurable: true });
  return key;
}

onEveryKind("re-entry", (fresh) => {
  test("a key's getter that reads: both reads get their own entry", async () => {
    const kv = await fresh();
    await kv.set(["a", 1], "outer");
    await kv.set(["inner", "with a longer key"], "inner");
    let inner;
    const key = keyWith("a", () => {
      inner = kv.get(["inner", "with a longer key"]);
      return 1;
    });
    const outer = await kv.get(key);
    assert.deepEqual([outer.key, outer.value], [["a", 1], "outer"]);
    assert.equal((await inner).value, "inner");
  });

  test("a key's getter in getMany that reads", async () => {
    const kv = await fresh();
    await kv.set(["a", 1], "outer");
    await kv.set(["b"], "b");
    let inner;
    const key = keyWith("a", () => {
      inner = kv.getMany([["b"], ["c"], ["b"]]);
      return 1;
    });
    const entries = await kv.getMany([["b"], key, ["c"]]);
    assert.deepEqual(
      entries.map(({ value }) => value),
      ["b", "outer", null],
    );
    assert.deepEqual(
      entries.map(({ key }) => key),
      [["b"], ["a", 1], ["c"]],
    );
    assert.deepEqual(
      (await inner).map(({ value }) => value),
      ["b", null, "b"],
    );
  });

  test("a bound's getter in list that lists", async () => {
    const kv = await fresh();
    for (const i of [1, 2, 3]) await kv.set(["a", i], i);
    let inner;
    const prefix = [];
    Object.defineProperty(prefix, 0, {
      get() {
        inner ??= all(kv.list({ prefix: [] }));
        return "a";
      },
      enumerable: true,
    });
    assert.equal((await all(kv.list({ prefix }))).length, 3);
    assert.equal((await inner).length, 3);
  });

  test("a value's getter that writes: every write arrives, in the order of the calls", async () => {
    const kv = await fresh();
    const results = [];
    const write = (key, value) => results.push(kv.set(key, value));
    write(["x"], "first");
    write(["outer"], {
      before: 1,
      get nested() {
        write(["x"], "nested");
        results.push(kv.delete(["x", "absent"]));
        write(["deep"], {
          get deeper() {
            write(["deepest"], 4);
            return 3;
          },
        });
        return 2;
      },
      after: 3,
    });
    write(["x"], "last");
    await Promise.all(results);
    assert.deepEqual((await kv.get(["outer"])).value, { before: 1, nested: 2, after: 3 });
    assert.equal((await kv.get(["x"])).value, "last");
    assert.deepEqual((await kv.get(["deep"])).value, { deeper: 3 });
    assert.equal((await kv.get(["deepest"])).value, 4);
  });

  test("a value's getter that writes, then throws: only its own write is left out", async () => {
    const kv = await fresh();
    let nested;
    const bad = kv.set(["bad"], {
      get a() {
        nested = kv.set(["nested"], 1);
        return "x".repeat(10_000);
      },
      get b() {
        throw new RangeError("mine");
      },
    });
    const next = kv.set(["next"], 2);
    await assert.rejects(bad, /mine/);
    await Promise.all([nested, next]);
    const entries = await all(kv.list({ prefix: [] }));
    const found = entries.map(({ key, value }) => [key[0], value]);
    assert.deepEqual(found, [
      ["nested", 1],
      ["next", 2],
    ]);
  });

  test("a value's getter that builds and commits an operation", async () => {
    const kv = await fresh();
    let nested;
    const operation = kv
      .atomic()
      .set(["outer"], {
        get value() {
          nested = kv.atomic().set(["inner"], "inner").sum(["n"], 2n).commit();
          return "outer";
        },
      })
      .sum(["n"], 1n);
    await nested;
    await operation.commit();
    assert.deepEqual((await kv.get(["outer"])).value, { value: "outer" });
    assert.equal((await kv.get(["inner"])).value, "inner");
    assert.equal((await kv.get(["n"])).value.value, 3n);
  });

  test("a value's getter that reads and lists", async () => {
    const kv = await fresh();
    await kv.set(["a"], "read");
    const reads = [];
    await kv.set(["b"], {
      get x() {
        reads.push(kv.get(["a"]), kv.list({ prefix: [] }).next());
        return 1;
      },
    });
    const [entry, { value }] = await Promise.all(reads);
    assert.equal(entry.value, "read");
    assert.deepEqual(value.key, ["a"]);
    assert.deepEqual((await kv.get(["b"])).value, { x: 1 });
  });
});

test("a value's getter that closes the handle: what was called before is written", async () => {
  const kv = await openKv(":memory:");
  const before = kv.set(["before"], 1);
  const during = kv.set(["during"], {
    get x() {
      kv.close();
      return 1;
    },
  });
  const outcomes = await Promise.allSettled([before, during, kv.set(["after"], 1)]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected"],
  );
  for (const { reason } of outcomes.slice(1)) assert.equal(reason.name, "BadResource");
});

test("a key's getter that closes the handle", async () => {
  const kv = await openKv(":memory:");
  await assert.rejects(kv.get(keyWith("a", () => (kv.close(), 1))), { name: "BadResource" });
});

test("inspecting a half-built operation from its own value's getter", async () => {
  const kv = await openKv(":memory:");
  const operation = kv.atomic().delete(["a"]);
  let seen;
  operation.set(["b"], {
    get x() {
      seen = inspect(operation);
      return 1;
    },
  });
  assert.match(seen, /delete\(\[ 'a' \]\)$/);
  assert.match(inspect(operation), /set\(\[ 'b' \], \{ x: 1 \}\)$/);
  await kv.close();
});
