// Duty: sets of limits: the table of docs/limits.md, what "wide" allows, values of 64 MiB, and what
// an error about a limit says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { KvU64, sizeOf } from "../../index.mjs";
import { all, freshPath, onEveryKind, open } from "./databases.mjs";

const binding = createRequire(import.meta.url)("../../dist/native/binding.js");
const MIB = 1024 * 1024;

test("docs/limits.md has every limit of both sets", () => {
  const page = readFileSync(new URL("../../docs/limits.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+Max)` \| .+ \| (\d+) \| (\d+) \|$/gm)];
  const sets = ["deno", "wide"].map((set, at) => {
    const { valueDepthMax, ...limits } = binding.limits(set);
    const told = Object.fromEntries(rows.map((row) => [row[1], Number(row[2 + at])]));
    assert.deepEqual(told, limits, set);
    return limits;
  });
  for (const [name, bound] of Object.entries(sets[0])) assert.ok(sets[1][name] >= bound, name);
});

onEveryKind("wide limits", (fresh, { elsewhere = false, onPostgres = false } = {}) => {
  test("1000 keys a read and a watch, 1000 checks, 10,000 mutations", async () => {
    const kv = await fresh({ limits: "wide" });
    const operation = kv.atomic();
    for (let n = 0; n < 10_000; n++) operation.set(["k", n], n);
    await operation.commit();
    const keys = Array.from({ length: 1000 }, (_, n) => ["k", n * 10]);
    const values = (await kv.getMany(keys)).map(({ value }) => value);
    assert.deepEqual(
      values,
      keys.map(([, n]) => n),
    );
    const reader = kv.watch(keys).getReader();
    assert.deepEqual(
      (await reader.read()).value.map(({ value }) => value),
      values,
    );
    await reader.cancel();
    const entries = await kv.getMany(keys);
    assert.ok(
      (
        await kv
          .atomic()
          .check(...entries)
          .set(["done"], 1)
          .commit()
      ).ok,
    );
    await assert.rejects(kv.getMany([...keys, ["one more"]]), /Too many ranges \(max 1000\): 1001/);
  });

  test("values of 16 MiB, and not more", async () => {
    const kv = await fresh({ limits: "wide" });
    const value = new Uint8Array(16 * MIB).fill(7);
    await kv.set(["a"], value);
    assert.ok(Buffer.from(value).equals((await kv.get(["a"])).value));
    await assert.rejects(kv.set(["a"], new Uint8Array(16 * MIB + 1)), /limits\.valueBytesMax/);
  });

  // A server has limits of its own, which are these.
  if (!elsewhere)
    test("raising one limit raises those in its way", async () => {
      // The longest that PostgreSQL takes.
      const keyBytesMax = onPostgres ? 2600 : 100_000;
      const kv = await fresh({ limits: { valueBytesMax: MIB, keyBytesMax } });
      const key = ["k".repeat(keyBytesMax - 2)];
      await kv.set(key, new Uint8Array(MIB).fill(1));
      assert.equal((await kv.get(key)).value.length, MIB);
      assert.equal((await all(kv.list({ prefix: [] }))).length, 1);
      const given = await fresh({ limits: { valueBytesMax: MIB, commitBytesMax: 1000 } });
      await assert.rejects(given.set(["a"], new Uint8Array(2000)), /limits\.commitBytesMax/);
    });
});

for (const path of [":memory:", "file"]) {
  test(`a value of 64 MiB goes everywhere, ${path}`, async () => {
    const limits = { valueBytesMax: 64 * MIB, messageBytesMax: 64 * MIB };
    const kv = await open(path === "file" ? freshPath() : path, { limits });
    const value = Buffer.alloc(64 * MIB, "openkv");
    assert.equal(sizeOf(new Uint8Array(value)), 64 * MIB);
    const check = (back) => assert.ok(value.equals(back));
    await kv.atomic().set(["a"], new Uint8Array(value)).commit();
    check((await kv.get(["a"])).value);
    check((await kv.getMany([["a"]]))[0].value);
    check((await all(kv.list({ prefix: [] })))[0].value);
    const reader = kv.watch([["a"]]).getReader();
    check((await reader.read()).value[0].value);
    await reader.cancel();
    await assert.rejects(kv.set(["a"], new Uint8Array(64 * MIB + 1)), /Value too large/);
    // A message is CBOR, with a head.
    await kv.enqueue(value.subarray(0, 64 * MIB - 5));
    const message = await new Promise((resolve) => void kv.listenQueue(resolve));
    assert.equal(message.length, 64 * MIB - 5);
    await kv.close();
  });
}

test("an error about a limit tells the key and the option", async () => {
  const kv = await open(":memory:");
  const large = new Uint8Array(70_000);
  const told =
    'Value too large (max 65536 bytes): 70000 bytes given for key ["a",1,2n,true]; raise ' +
    "limits.valueBytesMax of openKv to allow it";
  await assert.rejects(kv.set(["a", 1, 2n, true], large), { name: "TypeError", message: told });
  const cases = [
    [
      () => kv.atomic().set(["a"], large).commit(),
      /70000 bytes given for key \["a"\]; raise limits\.value/,
    ],
    [() => kv.set(["k".repeat(3000)], 1), /3002 bytes given for key \["k{98}…; raise limits\.key/],
    [() => kv.get(["k".repeat(3000)]), /for key \["k{98}…; raise limits\.rangeKeyBytesMax/],
    [() => kv.enqueue(large), /limits\.messageBytesMax/],
    [() => kv.getMany(Array(11).fill(["a"])), /limits\.rangesMax/],
    [() => kv.watch(Array(11).fill(["a"])), /limits\.watchedKeysMax/],
    [() => kv.enqueue(1, { keysIfUndelivered: Array(11).fill(["a"]) }), /undeliveredKeysMax/],
    [
      () => many(kv, 101, (op, n) => op.check({ key: [n], versionstamp: null })),
      /limits\.checksMax/,
    ],
    [() => many(kv, 1001, (op, n) => op.delete([n])), /limits\.mutationsMax/],
    [() => many(kv, 20, (op, n) => op.set([n], large.subarray(0, 60_000))), /commitBytesMax/],
    [() => many(kv, 50, (op, n) => op.set([n, "k".repeat(2000)], n)), /commitKeyBytesMax/],
    [() => appended(kv, [60_000, 9000]), /69\d+ bytes given for key \["l"\]; raise limits\.value/],
    [
      () =>
        kv
          .atomic()
          .sum(["big"], 1n << 524_288n)
          .commit(),
      /valueBytesMax/,
    ],
  ];
  for (const [call, words] of cases) {
    await assert.rejects(
      async () => await call(),
      { name: "TypeError", message: words },
      String(call),
    );
  }
});

/** Items of these sizes, one append for each, in one commit. */
function appended(kv, sizes) {
  return many(kv, sizes.length, (op, n) => op.append(["l"], [new Uint8Array(sizes[n])]));
}

function many(kv, count, add) {
  const operation = kv.atomic();
  for (let n = 0; n < count; n++) add(operation, n);
  return operation.commit();
}

test("sizeOf answers what the limits count", async () => {
  const kv = await open(":memory:", { limits: { valueBytesMax: 5000, keyBytesMax: 100 } });
  for (const value of [
    "x".repeat(4997),
    { a: [1, 2n, null] },
    new Uint8Array(5000),
    new KvU64(1n),
  ]) {
    assert.ok(sizeOf(value) <= 5000);
    await kv.set(["a"], value);
  }
  assert.equal(sizeOf("x".repeat(4997)), 5000);
  assert.equal(sizeOf("x".repeat(4998)), 5001);
  await assert.rejects(kv.set(["a"], "x".repeat(4998)), /5001 bytes given/);
  assert.equal(sizeOf(new KvU64(1n)), 8);
  assert.equal(sizeOf(new Blob(["abc"])), sizeOf(new Blob(["xyz"])));
  assert.equal(sizeOf.key(["k".repeat(98)]), 100);
  await kv.set(["k".repeat(98)], 1);
  assert.equal(sizeOf.key([]), 0);
  assert.equal(sizeOf.key([kv.uuidv7()]), sizeOf(kv.uuidv7()));
  assert.throws(() => sizeOf(() => 1), /could not be cloned/);
  assert.throws(() => sizeOf.key("a"), /expected: array/);
  assert.throws(() => sizeOf.key([{}]), /expected string/);
});
