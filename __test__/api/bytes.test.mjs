// Duty: byte strings that are read belong to the caller: each is over a buffer of its own, of exactly its
// size, whatever read has returned it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, freshPath, onEachAndServed, open } from "./databases.mjs";

/** Around the size up to which the codec copies by a loop, and the largest value by default. */
const SIZES = [0, 1, 19, 20, 21, 22, 48, 49, 1000, 4096, 65_000];

const bytesOf = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 31 + size) & 255);

function assertOwned(value, size) {
  assert.deepEqual(value, bytesOf(size));
  assert.equal(value.byteOffset, 0);
  assert.equal(value.buffer.byteLength, size);
}

onEachAndServed("bytes", (fresh) => {
  test("each read returns an array over a buffer of exactly its size", async () => {
    const kv = await fresh();
    for (const size of SIZES) await kv.set(["bytes", size], bytesOf(size));
    const keys = SIZES.slice(0, 10).map((size) => ["bytes", size]);
    for (const size of SIZES) assertOwned((await kv.get(["bytes", size])).value, size);
    for (const { key, value } of await kv.getMany(keys)) assertOwned(value, key[1]);
    const listed = await all(kv.list({ prefix: ["bytes"] }));
    assert.equal(listed.length, SIZES.length);
    for (const { key, value } of listed) assertOwned(value, key[1]);
  });

  test("what the caller does with an array changes no other read", async () => {
    const kv = await fresh();
    await kv.set(["a"], { large: bytesOf(50_000), small: bytesOf(10) });
    const first = (await kv.get(["a"])).value;
    const second = (await kv.get(["a"])).value;
    first.large.fill(0);
    first.small.fill(0);
    assertOwned(second.large, 50_000);
    assertOwned(second.small, 10);
    const moved = structuredClone(second.large, { transfer: [second.large.buffer] });
    assertOwned(moved, 50_000);
    assert.equal(second.large.length, 0, "the buffer has gone to the clone");
    assertOwned((await kv.get(["a"])).value.large, 50_000);
  });
});

test("synchronous reads return such arrays too", async () => {
  const kv = await open(freshPath());
  for (const size of SIZES) await kv.set(["bytes", size], bytesOf(size));
  for (const size of SIZES) assertOwned(kv.getSync(["bytes", size]).value, size);
  const keys = SIZES.slice(0, 10).map((size) => ["bytes", size]);
  for (const { key, value } of kv.getManySync(keys)) assertOwned(value, key[1]);
});
