// Duty: after random writes of every kind a search finds what a naive look at all entries finds, and
// an index that followed them is the one that is made anew.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { seeded } from "./random.mjs";

const folder = newFolder("search");
const WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel"];
const ROUNDS = 60;
const IDS = 30;
const INDEX = { prefix: ["t"], fields: ["a", "b"] };

/** Ways to change an entry within a commit; each leaves in the model what it leaves in the database. */
const CHANGES = {
  set(commit, id, model, random) {
    const value = valueOf(random);
    commit.set(["t", id], value);
    model.set(id, value);
  },
  setEnding(commit, id, model, random) {
    commit.set(["t", id], valueOf(random), { expireIn: 0 });
    model.delete(id);
  },
  delete(commit, id, model) {
    commit.delete(["t", id]);
    model.delete(id);
  },
  append(commit, id, model, random) {
    const items = [record(random), record(random)];
    if (growable(model.get(id))) model.set(id, [...(model.get(id) ?? []), ...items]);
    else return CHANGES.set(commit, id, model, random);
    commit.append(["t", id], items);
  },
  prepend(commit, id, model, random) {
    const items = [record(random)];
    if (growable(model.get(id))) model.set(id, [...items, ...(model.get(id) ?? [])]);
    else return CHANGES.delete(commit, id, model);
    commit.prepend(["t", id], items);
  },
  /** A number in place of what had text. */
  sum(commit, id, model) {
    commit.delete(["t", id]).sum(["t", id], 1).max(["t", id], 5).min(["t", id], 3);
    model.set(id, 3);
  },
  touchToTheEnd(commit, id, model) {
    commit.touch(["t", id], { expireIn: 0 });
    model.delete(id);
  },
  touch: (commit, id) => commit.touch(["t", id], { expireIn: 3_600_000 }),
  persist: (commit, id) => commit.persist(["t", id]),
};

const text = (random) => random.list(random.int(0, 3), () => random.pick(WORDS)).join(" ");
const record = (random) => ({ a: text(random), b: [text(random), text(random)] });
const valueOf = (random) => (random.chance(0.6) ? record(random) : [record(random)]);
const growable = (value) => value === undefined || Array.isArray(value);
const textOf = (value) =>
  typeof value === "number"
    ? ""
    : [value]
        .flat()
        .flatMap(({ a, b }) => [a, ...b])
        .join(" ");

/** Some entries go by deleteMany: named, or by what they hold. */
async function deleteSome(kv, model, random) {
  if (random.chance(0.5)) {
    const ids = random.list(4, () => random.int(0, IDS - 1));
    await kv.deleteMany(ids.map((id) => ["t", id]));
    for (const id of ids) model.delete(id);
    return;
  }
  const word = random.pick(WORDS);
  await kv.deleteMany({ prefix: ["t"] }, { where: { a: { $startsWith: word } } });
  for (const [id, value] of model) {
    if ([value].flat().some(({ a }) => a?.startsWith(word))) model.delete(id);
  }
}

/** A message dies, and its value is what entries are from then on. */
async function die(kv, model, random) {
  const ids = [random.int(0, IDS - 1), random.int(0, IDS - 1)];
  const value = valueOf(random);
  const keysIfUndelivered = ids.map((id) => ["t", id]);
  await kv.queue("q").enqueue(value, { keysIfUndelivered, backoffSchedule: [] });
  assert.equal(await (await kv.queue("q").receive()).nack(), true);
  for (const id of ids) model.set(id, value);
}

async function found(kv, word) {
  const { entries } = await kv.search(["t"], word, { limit: 1000 });
  return entries.map(({ key }) => key[1]).sort((x, y) => x - y);
}

async function agrees(kv, model, round) {
  for (const word of WORDS) {
    const has = ([, value]) => textOf(value).split(" ").includes(word);
    const expected = [...model]
      .filter(has)
      .map(([id]) => id)
      .sort((x, y) => x - y);
    assert.deepEqual(await found(kv, word), expected, `${round} ${word}`);
  }
}

for (const [name, path] of [
  ["memory", ":memory:"],
  ["file", join(folder, "kv.sqlite3")],
]) {
  test(`searches agree with a naive model, ${name}`, () =>
    seeded(`search ${name}`, async (random) => {
      const kv = await openKv(path);
      const model = new Map();
      for (let round = 0; round < ROUNDS; round++) {
        // The index comes over entries that are there, goes, and comes again.
        const at = round % 20;
        if (at === 5) await kv.createIndex(INDEX);
        if (at === 19) await kv.dropIndex(["t"]);
        const commit = kv.atomic();
        for (let i = random.int(1, 8); i > 0; i--) {
          const change = CHANGES[random.pick(Object.keys(CHANGES))];
          change(commit, random.int(0, IDS - 1), model, random);
        }
        await commit.commit();
        if (random.chance(0.3)) await deleteSome(kv, model, random);
        if (random.chance(0.3)) await die(kv, model, random);
        if (at < 5 || at === 19) continue;
        if (at === 5) await (await kv.createIndex(INDEX)).ready();
        await agrees(kv, model, round);
        if (at !== 18) continue;
        const [{ documents }] = await kv.listIndexes();
        await kv.dropIndex(["t"]);
        await (await kv.createIndex(INDEX)).ready();
        await agrees(kv, model, `${round}, made anew`);
        // What has ended may still wait for its sweep in the one that followed.
        assert.ok((await kv.listIndexes())[0].documents <= documents);
      }
      assert.deepEqual(await kv.check(), { ok: true, findings: [] });
      await kv.close();
    }));
}
