// Duty: over random commits a search finds what a naive look at all entries finds.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openKv } from "../../index.mjs";

const folder = mkdtempSync(join(tmpdir(), "openkv-search-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel"];
const ROUNDS = 60;

function dice(seed) {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

for (const [name, path] of [["memory", ":memory:"], ["file", join(folder, "kv.sqlite3")]]) {
  test(`searches agree with a naive model, ${name}`, async () => {
    const roll = dice(7);
    const kv = await openKv(path);
    const model = new Map();
    const text = () => Array.from({ length: roll(4) }, () => WORDS[roll(WORDS.length)]).join(" ");
    for (let round = 0; round < ROUNDS; round++) {
      // The index comes over entries that are there, goes, and comes again.
      if (round % 20 === 5) await kv.createIndex({ prefix: ["t"], fields: ["a", "b"] });
      if (round % 20 === 19) await kv.dropIndex(["t"]);
      const commit = kv.atomic();
      for (let i = roll(8); i >= 0; i--) {
        const id = roll(30);
        const value = { a: text(), b: [text(), text()] };
        const kind = roll(5);
        if (kind === 0) {
          commit.delete(["t", id]);
          model.delete(id);
        } else if (kind === 1) {
          commit.set(["t", id], value, { expireIn: 0 });
          model.delete(id);
        } else {
          commit.set(["t", id], value);
          model.set(id, value);
        }
      }
      await commit.commit();
      if (round % 20 < 5 || round % 20 === 19) continue;
      if (round % 20 === 5) await (await kv.createIndex({ prefix: ["t"], fields: ["a", "b"] })).ready();
      for (const word of WORDS) {
        const { entries } = await kv.search(["t"], word, { limit: 1000 });
        const has = ({ a, b }) => [a, ...b].join(" ").split(" ").includes(word);
        const expected = [...model].filter(([, value]) => has(value)).map(([id]) => id);
        const found = entries.map(({ key }) => key[1]);
        assert.deepEqual(found.sort((x, y) => x - y), expected.sort((x, y) => x - y), `${round} ${word}`);
      }
    }
    kv.close();
  });
}
