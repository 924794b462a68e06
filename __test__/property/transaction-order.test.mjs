// Duty: what a transaction lists in the order of values, own writes included, is what a list finds right after its
// commit, whatever other writers do between its reads and its commit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { kindsIn } from "./kinds.mjs";
import { seeded } from "./random.mjs";
import { randomSubject, randomWhere } from "./where.mjs";

const folder = newFolder("transaction-order");
const ROUNDS = 60;
const IDS = 16;
const PATHS = ["a", "b", "n", "a.b"];
const RANGE = { prefix: ["t"] };

const shown = (entries) => entries.map(({ key, value }) => ({ id: key[1], n: value?.n }));

function randomValue(random) {
  return { a: randomSubject(random), b: randomSubject(random), n: random.int(0, 9) };
}

/** Random writes, as functions of an operation or a transaction. */
function randomWrites(random, most) {
  return Array.from({ length: random.int(0, most) }, () => {
    const key = ["t", random.int(0, IDS - 1)];
    const value = randomValue(random);
    return random.pick([
      (to) => to.set(key, value),
      (to) => to.set(key, value),
      (to) => to.delete(key),
      (to) => to.set(key, [value]).append(key, [random.int(0, 9)]),
    ]);
  });
}

async function randomIndex(kv, random) {
  const on = random
    .shuffled(PATHS)
    .slice(0, random.int(1, 3))
    .map((path) => ({ path, order: random.pick(["asc", "desc"]) }));
  const sparse = random.chance(0.2);
  const index = { type: "value", prefix: ["t"], on, sparse, name: "i", replace: true };
  await (await kv.createIndex(index)).ready();
  return on;
}

function randomOptions(random, on) {
  const from = random.int(0, on.length - 1);
  const paths = random.chance(0.8) ? on.slice(from) : [{ path: random.pick(PATHS), order: "asc" }];
  return {
    orderBy: Object.fromEntries(paths.map(({ path, order }) => [path, order])),
    sort: true,
    reverse: random.chance(0.5),
    batchSize: random.int(1, 8),
    ...(random.chance(0.5)
      ? { where: random.chance(0.5) ? { n: random.int(0, 9) } : randomWhere(random) }
      : {}),
    ...(random.chance(0.6) ? { limit: random.int(1, 6) } : {}),
  };
}

/** One transaction, and another writer between its reads and its commit. */
async function round(kv, random, on) {
  const options = randomOptions(random, on);
  const own = randomWrites(random, 4);
  const others = randomWrites(random, 2);
  let attempts = 0;
  const { value } = await kv.transaction(
    async (tx) => {
      for (const write of own) write(tx);
      const listed = await tx.list(RANGE, options).toArray();
      if (++attempts === 1 && others.length > 0) {
        const commit = kv.atomic();
        for (const write of others) write(commit);
        assert.equal((await commit.commit()).ok, true);
      }
      return shown(listed);
    },
    { maxRetries: 1 },
  );
  const after = shown(await kv.list(RANGE, options).toArray());
  assert.deepEqual(value, after, inspect({ options, attempts }, { depth: 9 }));
  return attempts - 1;
}

for (const [name, [part, opened]] of Object.entries(kindsIn(folder))) {
  test(`ordered lists of transactions are those after their commits, ${name}`, () =>
    seeded(`transaction-order ${name}`, async (random) => {
      const rounds = ROUNDS * part;
      const kv = await opened();
      let conflicts = 0;
      for (let n = 0; n < rounds; n++) {
        const on = await randomIndex(kv, random);
        for (let i = 0; i < 6; i++) conflicts += await round(kv, random, on);
      }
      assert.ok(conflicts > 0 && conflicts < rounds * 6);
      kv.close();
    }));
}
