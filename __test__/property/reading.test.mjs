// Duty: count, list, where, paginate, depth, keysOnly and deleteMany answer what naive ones in
// JavaScript do, over random entries, in memory and on a file.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { compareKeys } from "./keys.mjs";
import { Model } from "./model.mjs";
import { seeded } from "./random.mjs";
import { meets, randomSubject, randomWhere } from "./where.mjs";

const ENTRIES = 120;
const ROUNDS = 150;

const PARTS = ["a", "b", 1, 2n, true, "a\0b"];

/** Long enough to lie beside its row. */
const PADDING = "x".repeat(2000);

for (const kind of ["memory", "file"]) {
  test(`${ROUNDS} random reads of ${ENTRIES} entries, ${kind}`, () =>
    seeded(`reading ${kind}`, async (random) => {
      const folder = newFolder("property");
      const kv = await openKv(kind === "memory" ? ":memory:" : join(folder, "kv.sqlite3"));
      const model = new Model();
      for (let i = 0; i < ENTRIES; i++) {
        const key = random.list(random.int(1, 5), () => random.pick(PARTS));
        const subject = randomSubject(random);
        const value = random.chance(0.1) ? { a: subject, pad: PADDING } : subject;
        const { versionstamp } = await kv.set(key, value);
        model.apply([{ type: "set", key, value }], versionstamp);
      }
      for (let round = 0; round < ROUNDS; round++) await read(kv, model, random);
      for (let round = 0; round < 12; round++) await remove(kv, model, random);
      await kv.close();
      rmSync(folder, { recursive: true });
    }));
}

function randomSelector(random) {
  const key = (most) => random.list(random.int(0, most), () => random.pick(PARTS));
  if (random.chance(0.7)) return { prefix: key(2) };
  const [start, end] = [key(3), key(3)].sort(compareKeys);
  return { start, end };
}

async function read(kv, model, random) {
  const selector = randomSelector(random);
  const reverse = random.chance(0.3);
  const options = { reverse };
  if (random.chance(0.7)) options.where = randomWhere(random);
  if (random.chance(0.4)) options.keysOnly = true;
  if (selector.prefix && random.chance(0.4)) options.depth = random.int(1, 3);
  if (random.chance(0.3)) options.withExpiry = true;
  if (random.chance(0.3)) options.limit = random.int(1, 20);
  if (random.chance(0.3)) options.batchSize = random.int(1, 7);
  const told = inspect({ selector, options }, { depth: 20 });
  const { where = {}, keysOnly, depth, withExpiry, limit } = options;

  const chosen = model.list(selector, reverse).filter(({ value }) => meets(value, where));
  const shallow = chosen.filter(
    ({ key }) => !(key.length > (selector.prefix?.length ?? 0) + depth),
  );
  const found = [];
  for await (const entry of kv.list(selector, options)) found.push(entry);
  const keysOf = (entries) => entries.map(({ key, versionstamp }) => ({ key, versionstamp }));
  assert.deepEqual(keysOf(found), keysOf(shallow.slice(0, limit)), told);
  for (const entry of found) {
    assert.equal("value" in entry, !keysOnly, told);
    assert.equal("expireAt" in entry, withExpiry === true, told);
  }
  assert.equal(await kv.count(selector, { where }), chosen.length, told);

  const pages = [];
  const size = random.int(1, 30);
  for (let cursor = null, more = true; more; ) {
    const page = await kv.paginate({ ...selector, where, reverse, limit: size, cursor });
    assert.ok(page.entries.length === size || !page.hasMore, told);
    assert.equal(page.hasMore, page.cursor !== null);
    pages.push(...page.entries);
    cursor = page.cursor;
    more = page.hasMore;
  }
  assert.deepEqual(keysOf(pages), keysOf(chosen), told);
}

async function remove(kv, model, random) {
  const selector = randomSelector(random);
  const where = random.chance(0.8) ? randomWhere(random) : {};
  const limit = random.chance(0.5) ? random.int(1, 10) : undefined;
  const options = { where, ...(limit === undefined ? {} : { limit }), atomic: random.chance(0.5) };
  let chosen = model.list(selector, false);
  let which = selector;
  if (random.chance(0.3)) {
    chosen = random
      .list(6, () => random.pick(model.entries))
      .filter((entry) => entry !== undefined);
    which = [...chosen.map(({ key }) => key), ["none"]];
    chosen = [...new Set(chosen)];
  }
  const gone = chosen.filter(({ value }) => meets(value, where)).slice(0, limit);
  const { count, versionstamp } = await kv.deleteMany(which, options);
  assert.equal(count, gone.length, inspect({ which, options }, { depth: 20 }));
  assert.equal(versionstamp === null, count === 0);
  model.entries = model.entries.filter((entry) => !gone.includes(entry));
  assert.equal(await kv.count({ prefix: [] }), model.entries.length);
}
