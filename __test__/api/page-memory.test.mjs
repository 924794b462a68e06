// Duty: the options cacheSize and mmapSize: a file larger than the cache reads as it was written, the
// options have the effect that they promise, and the handles of a process agree on them.

import assert from "node:assert/strict";
import { readFileSync, realpathSync } from "node:fs";
import { describe, test } from "node:test";
import { until } from "../kit/time.mjs";
import { all, freshPath, open } from "./databases.mjs";

const CACHE_BYTES_MIN = 65_536;
const CACHE_BYTES_DEFAULT = 16 * 1024 * 1024;
/** Forty times the smallest cache, as small entries and as large ones. */
const ENTRIES = 2000;
const valueOf = (n, round = 0) => ({ n, round, text: "x".repeat(n % 50 === 0 ? 20_000 : 900) });

async function filled(options) {
  const path = freshPath();
  const kv = await open(path, { durability: "normal", ...options });
  await write(kv, 0, ENTRIES);
  await kv.checkpoint();
  return { kv, path };
}

function write(kv, from, to, round) {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  return Promise.all(numbers.map((n) => kv.set(["k", n], valueOf(n, round))));
}

/** Reads every entry by each kind of read. */
async function assertReads(kv, roundOf = () => 0) {
  const listed = await all(kv.list({ prefix: ["k"] }));
  assert.equal(listed.length, ENTRIES);
  for (const { key, value } of listed) assert.deepEqual(value, valueOf(key[1], roundOf(key[1])));
  for (let i = 0; i < ENTRIES; i += 7) {
    const n = (i * 619) % ENTRIES;
    assert.deepEqual((await kv.get(["k", n])).value, valueOf(n, roundOf(n)));
  }
}

/** Misses of the page caches while every entry is read by `get`, twice, the first time to warm up. */
async function missesOf(kv) {
  for (let n = 0; n < ENTRIES; n++) await kv.get(["k", n]);
  const before = (await kv.metrics()).cache.misses;
  for (let n = 0; n < ENTRIES; n++) await kv.get(["k", n]);
  return (await kv.metrics()).cache.misses - before;
}

/** Whether a mapping of this process is of the file. */
function isMapped(path) {
  const maps = readFileSync("/proc/self/maps", "utf8").split("\n");
  return maps.some((line) => line.endsWith(` ${realpathSync(path)}`));
}

describe("cacheSize and mmapSize", () => {
  for (const options of [
    { cacheSize: CACHE_BYTES_MIN },
    { cacheSize: CACHE_BYTES_MIN, mmapSize: 2 ** 30 },
    { cacheSize: CACHE_BYTES_MIN, mmapSize: 2 ** 20 },
  ]) {
    test(`a file larger than the cache: ${JSON.stringify(options)}`, async () => {
      const { kv } = await filled(options);
      await assertReads(kv);
    });
  }

  test("a mapping shows later commits, growth and a file that has become smaller", async () => {
    const { kv, path } = await filled({ mmapSize: 2 ** 30 });
    const other = await open(path);
    await assertReads(other);
    await write(kv, 0, ENTRIES / 2, 1);
    const roundOf = (n) => (n < ENTRIES / 2 ? 1 : 0);
    await assertReads(other, roundOf);
    await kv.checkpoint();
    await assertReads(other, roundOf);
    await kv.set(["large"], new Uint8Array(60_000));
    for (let n = 0; n < 100; n++) await kv.set(["more", n], "x".repeat(20_000));
    await kv.checkpoint();
    assert.equal((await other.get(["more", 99])).value.length, 20_000);
    for (let n = 0; n < 100; n++) await kv.delete(["more", n]);
    const { beforeBytes, afterBytes } = await kv.vacuum();
    assert.ok(afterBytes < beforeBytes);
    await kv.checkpoint();
    await assertReads(other, roundOf);
    await assertReads(kv, roundOf);
  });

  test("a cache as large as the file reads nothing twice, a small one does", async () => {
    const { kv: small } = await filled({ cacheSize: CACHE_BYTES_MIN });
    const { kv: large } = await filled({ cacheSize: 64 * 1024 * 1024 });
    const [misses, fewer] = [await missesOf(small), await missesOf(large)];
    assert.ok(misses > ENTRIES / 10, `${misses} misses with a small cache`);
    assert.ok(
      fewer < misses / 10,
      `${fewer} misses with a large cache, ${misses} with a small one`,
    );
  });

  test("the usual cache grows with what is read, one of a named size does not", async () => {
    const entries = 6000;
    const misses = async (kv) => {
      const before = (await kv.metrics()).cache.misses;
      for (let n = 0; n < entries; n++) await kv.get(["k", n]);
      return (await kv.metrics()).cache.misses - before;
    };
    const path = freshPath();
    const usual = await open(path, { durability: "normal" });
    // A page each, together half more than the usual cache.
    const value = new Uint8Array(3500);
    const numbers = Array.from({ length: entries }, (_, n) => n);
    await Promise.all(numbers.map((n) => usual.set(["k", n], value)));
    await usual.checkpoint();
    await until(async () => (await misses(usual)) < entries / 100, "the cache has grown");
    await usual.close();
    const named = await open(path, { cacheSize: CACHE_BYTES_DEFAULT });
    for (let pass = 0; pass < 3; pass++) assert.ok((await misses(named)) > entries / 2);
  });

  test("only mmapSize maps the file", { skip: process.platform !== "linux" }, async () => {
    const { kv: usual, path: unmapped } = await filled();
    await assertReads(usual);
    assert.equal(isMapped(unmapped), false);
    const { kv, path } = await filled({ mmapSize: 2 ** 30 });
    await assertReads(kv);
    assert.equal(isMapped(path), true);
  });

  test("handles of a process agree on them", async () => {
    const { kv, path } = await filled({ cacheSize: 2 ** 20 });
    const refused = (options, words) =>
      assert.rejects(open(path, options), { name: "TypeError", message: words });
    await refused({ cacheSize: 2 ** 21 }, /option cacheSize is 2097152, but .* with 1048576,/);
    await refused({ mmapSize: 2 ** 20 }, /option mmapSize is 1048576, but .* with 0,/);
    const without = await open(path);
    const same = await open(path, { cacheSize: 2 ** 20, mmapSize: 0 });
    for (const handle of [kv, without, same]) {
      assert.equal((await handle.get(["k", 1])).value.n, 1);
    }
  });
});
