// Duty: after random writes of every kind a list by an index finds what a scan finds, in the order in which a
// database without indexes sorts; and a unique index refuses exactly the commits that would break it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { kindsIn } from "./kinds.mjs";
import { seeded } from "./random.mjs";
import { randomSubject, randomWhere } from "./where.mjs";

const folder = newFolder("indexes");
const ROUNDS = 80;
const IDS = 25;
const PATHS = ["a", "b", "a.0", "a.b", "0", "id"];
const RANGE = { prefix: ["t"] };

const ids = async (list) => (await list.toArray()).map(({ key }) => key[1]);

/** One commit of random changes, on both databases and on the model. */
async function change(databases, model, random) {
  const free = { key: ["never"], versionstamp: null };
  const commits = databases.map((kv) => kv.atomic().check(free));
  const after = new Map(model);
  const touched = new Set();
  for (let i = random.int(1, 6); i > 0; i--) {
    const id = random.int(0, IDS - 1);
    const value = { id, a: randomSubject(random), b: randomSubject(random), 0: [id % 3] };
    if (random.chance(0.4)) value.u = random.int(0, 40);
    const kind = random.pick(["set", "set", "set", "delete", "expire", "array"]);
    for (const commit of commits) {
      if (kind === "delete") commit.delete(["t", id]);
      else if (kind === "expire") commit.set(["t", id], value, { expireIn: 0 });
      else if (kind === "array") commit.delete(["t", id]).append(["t", id], [{ id, a: value.a }]);
      else commit.set(["t", id], value);
    }
    touched.add(id);
    if (kind === "delete" || kind === "expire") after.delete(id);
    else after.set(id, kind === "array" ? undefined : value.u);
  }
  const taken = [...touched].some((id) => {
    const u = after.get(id);
    return u !== undefined && [...after].some(([other, of]) => other !== id && of === u);
  });
  const { ok, violations } = await commits[0].commit();
  assert.equal(ok, !taken, JSON.stringify(violations));
  if (!ok) return assert.ok(violations.length > 0);
  assert.equal((await commits[1].commit()).ok, true);
  model.clear();
  for (const [id, u] of after) model.set(id, u);
}

function randomIndex(random, name) {
  const on = random
    .shuffled(PATHS)
    .slice(0, random.int(1, 3))
    .map((path) => ({ path, order: random.pick(["asc", "desc"]) }));
  const [multi, sparse] = [random.chance(0.3), random.chance(0.3)];
  return { type: "value", prefix: ["t"], on, multi, sparse, name, replace: true };
}

async function agrees([kv, plain], indexes, random) {
  for (let i = 0; i < 8; i++) {
    const where = randomWhere(random);
    const expected = await ids(plain.list(RANGE, { where }));
    const batchSize = random.int(1, 10);
    assert.deepEqual(await ids(kv.list(RANGE, { where, batchSize })), expected);
    assert.deepEqual(await ids(kv.list(RANGE, { where, depth: 1, batchSize })), expected);
    const reverse = await ids(kv.list(RANGE, { where, reverse: true, batchSize }));
    assert.deepEqual(reverse, expected.toReversed());
    assert.equal(await kv.count(RANGE, { where }), expected.length);
    const index = random.pick(indexes);
    const orderBy = Object.fromEntries(index.on.map(({ path, order }) => [path, order]));
    orderBy.id ??= "asc";
    const options = { orderBy, where, reverse: random.chance(0.5), sort: true };
    const sorted = await ids(plain.list(RANGE, options));
    assert.deepEqual(await ids(kv.list(RANGE, { ...options, batchSize })), sorted);
  }
}

/** Deletes what meets a random filter, on both databases. */
async function deleteSome(databases, model, random) {
  const where = randomWhere(random);
  const options = { where, limit: random.int(1, 9), atomic: random.chance(0.5) };
  const [kv, plain] = databases;
  const gone = await ids(plain.list(RANGE, { where, limit: options.limit }));
  for (const one of [kv, plain]) {
    assert.equal((await one.deleteMany(RANGE, options)).count, gone.length);
  }
  for (const id of gone) model.delete(id);
}

for (const [name, [part, opened]] of Object.entries(kindsIn(folder))) {
  test(`lists by indexes agree with scans, ${name}`, () =>
    seeded(`indexes ${name}`, async (random) => {
      const rounds = ROUNDS * part;
      const databases = [await opened(), await openKv(":memory:")];
      const [kv] = databases;
      const unique = { type: "value", prefix: ["t"], on: "u", unique: true, name: "u" };
      await (await kv.createIndex(unique)).ready();
      const indexes = [];
      const model = new Map();
      for (let round = 0; round < rounds; round++) {
        if (round % 10 === 0) {
          const index = randomIndex(random, `i${random.int(0, 5)}`);
          // With the number of the entry at the end an order has no ties.
          if (!index.on.some(({ path }) => path === "id"))
            index.on.push({ path: "id", order: "asc" });
          await (await kv.createIndex(index)).ready();
          const others = indexes.filter((other) => other.name !== index.name);
          indexes.splice(0, indexes.length, ...others, index);
        }
        await change(databases, model, random);
        if (random.chance(0.1)) await deleteSome(databases, model, random);
        if (round % 4 === 0) await agrees(databases, indexes, random);
      }
      await Promise.all(databases.map((one) => one.close()));
    }));
}
