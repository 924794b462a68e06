// Duty: append and prepend against push and unshift on copies of the values, with shared objects,
// cycles, holes and Blobs; and against everything that is no array.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { seeded } from "./random.mjs";

const ROUNDS = 60;

function anyItems(random) {
  const shared = { shared: random.int(0, 9) };
  const items = Array.from({ length: random.int(0, 30) }, () =>
    random.pick([
      () => random.int(-1000, 1000),
      () => "text \u{1f600}",
      () => shared,
      () => [shared, shared],
      () => new Map([[shared, new Date(5)]]),
      () => Buffer.from([0xd8, 0x1c, 0xd8, 0x1d]),
      () => undefined,
      () => 5n,
      () => new Error("e", { cause: shared }),
    ])(),
  );
  if (random.chance(0.2)) items.push(items);
  if (random.chance(0.2)) items.length += random.int(1, 3);
  if (random.chance(0.1)) items.name = "beside";
  return items;
}

/** The model: what push and unshift would do to the stored array, which is itself in the items. */
function joined(stored, items, front) {
  const length = stored.length + items.length;
  const result = [];
  result.length = length;
  const place = (from, at) => {
    for (let i = 0; i < from.length; i++) if (i in from) result[at + i] = from[i];
  };
  place(stored, front ? items.length : 0);
  place(items, front ? 0 : stored.length);
  if ("name" in stored) result.name = stored.name;
  return result;
}

/** Puts `to` wherever `from` stands: the stored array keeps its identity. */
function replaced(array, from, to) {
  for (const key of Object.keys(array)) if (array[key] === from) array[key] = to;
  return array;
}

/** The objects that are met again, as paths: deepEqual does not compare identity. */
function identities(value) {
  const seen = new Map();
  const again = [];
  const visit = (object, path) => {
    if (typeof object !== "object" || object === null) return;
    if (seen.has(object)) return void again.push(`${path} = ${seen.get(object)}`);
    seen.set(object, path);
    const inside = object instanceof Map ? [...object].flat() : object;
    for (const key of Object.keys(inside)) visit(inside[key], `${path}.${key}`);
    if (object.cause) visit(object.cause, `${path}.cause`);
  };
  visit(value, "");
  return again;
}

test("arrays grow as push and unshift have it", () =>
  seeded("append", async (random) => {
    const kv = await openKv(":memory:", { limits: "wide" });
    for (let round = 0; round < ROUNDS; round++) {
      const key = ["list", round];
      let model = null;
      for (let step = random.int(1, 5); step > 0; step--) {
        const items = anyItems(random);
        const front = random.chance(0.5);
        await kv.atomic()[front ? "prepend" : "append"](key, items).commit();
        if (model === null) {
          model = structuredClone(items);
        } else {
          const copy = structuredClone(items);
          const next = joined(model, copy, front);
          model = replaced(next, model, next);
        }
        const { value } = await kv.get(key);
        assert.deepStrictEqual(value, model);
        assert.deepEqual(identities(value), identities(model));
        assert.equal("name" in value, "name" in model);
      }
    }
    await kv.close();
  }));

test("mutate appends and prepends as the methods do", async () => {
  const kv = await openKv(":memory:");
  const key = ["v"];
  const commit = kv
    .atomic()
    .mutate({ type: "append", key, value: [2, new Map([[1, 2n]])] })
    .mutate({ type: "prepend", key, value: [1] })
    .mutate({ type: "min", key: ["n"], value: -2.5 }, { type: "max", key: ["n"], value: 4 })
    .commit({ values: true });
  assert.deepEqual((await commit).values, [2, 3, -2.5, 4]);
  assert.deepEqual((await kv.get(key)).value, [1, 2, new Map([[1, 2n]])]);
  assert.equal((await kv.get(["n"])).value, 4);
  const refused = { name: "TypeError" };
  assert.throws(() => kv.atomic().mutate({ type: "append", key }), refused);
  assert.throws(() => kv.atomic().mutate({ type: "append", key, value: "ab" }), refused);
  assert.throws(() => kv.atomic().mutate({ type: "max", key, value: Number.NaN }), refused);
  await kv.close();
});

test("what is no array is refused, and stays", async () => {
  const kv = await openKv(":memory:");
  const others = ["text", 1, null, { length: 1, 0: 1 }, new Set([1]), new Map(), new Uint8Array(3)];
  for (const value of [...others, new KvU64(1n), new Date(0), new Float32Array(2)]) {
    await kv.set(["v"], value);
    const before = await kv.get(["v"]);
    for (const method of ["append", "prepend"]) {
      const commit = kv.atomic().set(["beside"], 1)[method](["v"], [1]).commit();
      const message = new RegExp(`'${method}' mutation on a value that is no array .*\\["v"\\]`);
      await assert.rejects(commit, { name: "TypeError", message });
    }
    assert.deepEqual(await kv.get(["v"]), before);
  }
  assert.equal((await kv.get(["beside"])).versionstamp, null);
  await kv.close();
});
