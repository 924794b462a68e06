// Duty: lists, counts and pages of a transaction show what a naive model shows with the transaction's
// own writes in it, whatever their options; and its commit is lost exactly to changes in what they
// have walked.

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

const ENTRIES = 60;
const ROUNDS = 60;

const PARTS = ["a", "b", 1, 2n, true];
const randomKey = (random) => random.list(random.int(1, 4), () => random.pick(PARTS));

for (const kind of ["memory", "file"]) {
  test(`${ROUNDS} random transactions over ${ENTRIES} entries, ${kind}`, () =>
    seeded(`transaction ${kind}`, async (random) => {
      const folder = newFolder("property");
      const kv = await openKv(kind === "memory" ? ":memory:" : join(folder, "kv.sqlite3"));
      const model = new Model();
      for (let i = 0; i < ENTRIES; i++) await put(kv, model, randomKey(random), random);
      for (let round = 0; round < ROUNDS; round++) {
        await showsItsOwn(kv, model, random);
        await isLostToChanges(kv, model, random);
      }
      await kv.close();
      rmSync(folder, { recursive: true });
    }));
}

async function put(kv, model, key, random) {
  const value = random.chance(0.2) ? [randomSubject(random)] : randomSubject(random);
  const { versionstamp } = await kv.set(key, value);
  model.apply([{ type: "set", key, value }], versionstamp);
}

/** Writes within the transaction, and what they leave in the model, where they have no stamp. */
function write(tx, own, random) {
  const key =
    random.chance(0.5) && own.entries.length > 0 ? random.pick(own.entries).key : randomKey(random);
  const value = randomSubject(random);
  const before = own.get(key);
  const leave = (value) => own.apply([{ type: "set", key, value }], null);
  const kind = random.int(0, 5);
  if (kind === 0) {
    tx.delete(key);
    own.apply([{ type: "delete", key }], null);
  } else if (kind === 1) {
    tx.set(key, value, { expireIn: 0 });
    own.apply([{ type: "delete", key }], null);
  } else if (kind === 2 && (before === undefined || Array.isArray(before.value))) {
    tx.append(key, [value]);
    // Not by spreading: holes stay holes, and names that are no indexes stay.
    const list = before?.value ?? [];
    const grown = Object.assign(new Array(list.length), list);
    grown.push(value);
    leave(grown);
  } else if (kind === 3) {
    tx.delete(key).sum(key, 5).max(key, 7);
    leave(7);
  } else {
    tx.set(key, value, random.chance(0.5) ? { expireIn: 3_600_000 } : {});
    leave(value);
  }
}

function randomSelector(random) {
  const key = (most) => random.list(random.int(0, most), () => random.pick(PARTS));
  if (random.chance(0.7)) return { prefix: key(2) };
  const [start, end] = [key(3), key(3)].sort(compareKeys);
  return { start, end };
}

function randomOptions(selector, random) {
  const options = {};
  if (random.chance(0.3)) options.reverse = true;
  if (random.chance(0.6)) options.where = randomWhere(random);
  if (random.chance(0.4)) options.keysOnly = true;
  if (selector.prefix && random.chance(0.4)) options.depth = random.int(1, 3);
  if (random.chance(0.3)) options.withExpiry = true;
  if (random.chance(0.4)) options.limit = random.int(1, 10);
  if (random.chance(0.3)) options.batchSize = random.int(1, 7);
  return options;
}

/** What a list with these options yields, limit aside. */
function chosenBy(model, selector, { reverse = false, where = {}, depth = Infinity }) {
  const deepest = (selector.prefix?.length ?? 0) + depth;
  return model
    .list(selector, reverse)
    .filter(({ key, value }) => key.length <= deepest && meets(value, where));
}

/** Values as text: an invalid date equals no other one. */
const shown = (entries, keysOnly) =>
  entries.map(({ key, value, versionstamp }) => ({
    key,
    versionstamp,
    ...(keysOnly ? {} : { value: inspect(value, { depth: 20 }) }),
  }));

async function showsItsOwn(kv, model, random) {
  const undo = new Error("nothing is written");
  const transaction = kv.transaction(async (tx) => {
    const own = new Model();
    own.entries = model.entries;
    for (let step = 0; step < 4; step++) {
      for (let i = random.int(0, 4); i > 0; i--) write(tx, own, random);
      const selector = randomSelector(random);
      const options = randomOptions(selector, random);
      const { reverse, where, limit, keysOnly, withExpiry } = options;
      const told = inspect({ selector, options }, { depth: 20 });
      const expected = chosenBy(own, selector, options);

      const list = tx.list(selector, options);
      const found = [];
      for await (const entry of list) found.push(entry);
      assert.deepEqual(shown(found, keysOnly), shown(expected.slice(0, limit), keysOnly), told);
      for (const entry of found) {
        assert.equal("value" in entry, !keysOnly, told);
        assert.equal("expireAt" in entry, withExpiry === true, told);
      }
      if (found.length > 0) {
        // Exhausted is "", which begins anew.
        const rest = tx.list(selector, { ...options, cursor: list.cursor, limit: 1000 });
        const after = list.cursor === "" ? 0 : found.length;
        const others = [];
        for await (const entry of rest) others.push(entry);
        assert.deepEqual(shown(others, keysOnly), shown(expected.slice(after), keysOnly), told);
      }

      const all = chosenBy(own, selector, { reverse, where });
      assert.equal(
        await tx.count(selector, where === undefined ? {} : { where }),
        all.length,
        told,
      );
      const size = random.int(5, 30);
      const pages = [];
      for (let cursor = null, more = true; more; ) {
        const page = await tx.paginate({ ...selector, ...pick(options), limit: size, cursor });
        assert.ok(page.entries.length === size || !page.hasMore, told);
        pages.push(...page.entries);
        cursor = page.cursor;
        more = page.hasMore;
      }
      assert.deepEqual(shown(pages), shown(all), told);
    }
    throw undo;
  });
  await assert.rejects(transaction, (error) => {
    if (error !== undo) throw error;
    return true;
  });
}

const pick = ({ reverse, where }) => ({
  ...(reverse === undefined ? {} : { reverse }),
  ...(where === undefined ? {} : { where }),
});

/** Somebody else writes between a list and the commit. */
async function isLostToChanges(kv, model, random) {
  const selector = randomSelector(random);
  const options = randomOptions(selector, random);
  const { reverse = false, limit = Infinity } = options;
  const key = random.chance(0.6) ? random.pick(model.entries).key : randomKey(random);
  const deletes = random.chance(0.3);
  const own = randomKey(random);

  let attempts = 0;
  const expected = chosenBy(model, selector, options).slice(0, limit);
  await kv.transaction(async (tx) => {
    for await (const _ of tx.list(selector, options));
    tx.set([...own, "result"], 1);
    if (++attempts > 1) return;
    if (deletes) await kv.delete(key);
    else await kv.set(key, "changed");
  });
  const probe = new Model();
  probe.entries = [{ key }];
  const left = expected.length === limit ? expected.at(-1).key : null;
  const walked =
    left === null || (reverse ? compareKeys(key, left) >= 0 : compareKeys(key, left) <= 0);
  const changed = !deletes || model.get(key) !== undefined;
  const lost = probe.list(selector, false).length > 0 && walked && changed;
  const told = inspect({ selector, options, key, deletes }, { depth: 20 });
  assert.equal(attempts, lost ? 2 : 1, told);

  await kv.delete([...own, "result"]);
  model.entries = model.entries.filter((entry) => entry !== model.get(key));
  await put(kv, model, key, random);
}
