// Duty: random keys have Deno's bytes, and list in the order of their meaning.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { difference } from "../conformance/compare.mjs";
import { compareKeys, randomKey } from "./keys.mjs";
import { seeded } from "./random.mjs";

const KEYS = 1500;

/** The bytes of every key in the database, as its cursors tell them. */
async function bytesListed(kv) {
  const iterator = kv.list({ prefix: [] });
  const found = [];
  for await (const { key, value } of iterator) {
    found.push({ key, value, hex: Buffer.from(iterator.cursor, "base64url").toString("hex") });
  }
  return found;
}

async function fill(kv, keys) {
  await Promise.all(keys.map((key, i) => kv.set(key, i)));
}

test("300 random keys have the bytes that Deno gave them", async () => {
  const golden = JSON.parse(readFileSync(new URL("deno-keys.json", import.meta.url), "utf8"));
  assert.equal(golden.length, 300);
  const keys = golden.map(({ js }) => new Function(`return ${js}`)());
  const kv = await openKv(":memory:");
  await fill(kv, keys);
  const found = await bytesListed(kv);
  assert.deepEqual(
    found.map(({ hex }) => hex),
    [...new Set(golden.map(({ hex }) => hex))].sort(),
  );
  for (const { key, value, hex } of found) {
    assert.equal(hex, golden[value].hex);
    assert.equal(difference(key, keys[value]), null);
  }
  await kv.close();
});

test(`${KEYS} random keys list in the order of their meaning, both ways`, () =>
  seeded("order", async (random) => {
    const keys = random.list(KEYS, () => randomKey(random));
    const kv = await openKv(":memory:");
    await fill(kv, keys);
    const sorted = keys.toSorted(compareKeys);
    const unique = sorted.filter((key, i) => i === 0 || compareKeys(key, sorted[i - 1]) !== 0);
    const found = await bytesListed(kv);
    assert.equal(found.length, unique.length);
    for (const [i, { key }] of found.entries()) {
      assert.equal(difference(key, unique[i]), null, `entry ${i}`);
    }
    const backwards = [];
    for await (const { key } of kv.list({ prefix: [] }, { reverse: true })) backwards.push(key);
    assert.equal(difference(backwards.reverse(), unique), null);
    await kv.close();
  }));

test("the order of two keys is the order of their bytes", () =>
  seeded("pairs", async (random) => {
    const kv = await openKv(":memory:");
    for (let i = 0; i < 400; i++) {
      // Keys that share most of their parts, where the order is decided late.
      const a = randomKey(random);
      const b = [...a];
      b[random.int(0, a.length)] = randomKey(random, 1)[0];
      const order = compareKeys(a, b);
      await kv.atomic().set(a, "a").set(b, "b").commit();
      const values = [];
      for await (const { value } of kv.list({ prefix: [] })) values.push(value);
      assert.deepEqual(values, order === 0 ? ["b"] : order < 0 ? ["a", "b"] : ["b", "a"]);
      await kv.atomic().delete(a).delete(b).commit();
    }
    await kv.close();
  }));
