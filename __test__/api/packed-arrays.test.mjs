// Duty: arrays of numbers, packed in files and memory, through everything that reads values in Rust:
// filters, searches, appending, messages; and who gets them over the network.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assertSame } from "../codec/graph.mjs";
import { freshPath, onEachAndServed, onPostgres, open } from "./databases.mjs";
import { startServer } from "../kit/server.mjs";

const list = (length, make) => Array.from({ length }, (_, i) => make(i));
const doubles = (length = 100) => list(length, (i) => i + 0.5);

/** The values by name, each an array that can be packed, of another class. */
const ARRAYS = {
  bytes: list(64, (i) => 100 + i),
  signed: list(64, (i) => (i % 2 === 0 ? -100 : 100)),
  shorts: list(64, (i) => i * 300),
  ints: list(64, (i) => i * -70_000),
  doubles: doubles(),
  special: [...doubles(), -0, Number.NaN, Infinity, -Infinity],
};

/** The start of every packed array, and how many are in a copy of the database. */
const PACKED = Buffer.from("d81b82654172726179", "hex");
async function packedIn(kv) {
  const path = freshPath();
  await kv.backup(path);
  const bytes = readFileSync(path);
  let count = 0;
  for (let at = bytes.indexOf(PACKED); at >= 0; at = bytes.indexOf(PACKED, at + 1)) count++;
  return count;
}

function suite(fresh, { onPostgres: isPostgres = false } = {}) {
  test("they are read as they were written", async () => {
    const kv = await fresh();
    for (const [name, array] of Object.entries(ARRAYS)) {
      await kv.set(["a", name], array);
      await kv
        .atomic()
        .set(["b", name], { array, again: [array] })
        .commit();
    }
    for (const [name, array] of Object.entries(ARRAYS)) {
      assertSame((await kv.get(["a", name])).value, array);
      assertSame((await kv.get(["b", name])).value, { array, again: [array] });
    }
  });

  test("filters see their items", async () => {
    const kv = await fresh();
    await kv.set(["p", 1], { v: doubles(), twice: [doubles(), doubles()] });
    await kv.set(["p", 2], { v: list(40, (i) => i * 1000), deep: { v: ARRAYS.bytes } });
    const found = async (where) => {
      const keys = [];
      for await (const { key } of kv.list({ prefix: ["p"] }, { where })) keys.push(key[1]);
      return keys;
    };
    for (const [where, expected] of [
      [{ "v.3": 3.5 }, [1]],
      [{ "v.39": 39_000 }, [2]],
      [{ "v.40": { $exists: true } }, [1]],
      [{ "v.100": { $exists: true } }, []],
      [{ "v.3": { $gt: 100 } }, [2]],
      [{ v: { $contains: 99.5 } }, [1]],
      [{ v: { $contains: 1 } }, []],
      [{ v: { $empty: false } }, [1, 2]],
      [{ "twice.1.7": 7.5 }, [1]],
      [{ "deep.v.1": 101 }, [2]],
      [{ "v.name": { $exists: true } }, []],
    ]) {
      assert.deepEqual(await found(where), expected, JSON.stringify(where));
    }
  });

  test("items are appended to them, and they are appended", async () => {
    const kv = await fresh();
    const expected = doubles();
    await kv.set(["a"], doubles());
    await kv.atomic().append(["a"], [1, "x"]).commit();
    expected.push(1, "x");
    await kv.atomic().prepend(["a"], ARRAYS.ints).commit();
    expected.unshift(...ARRAYS.ints);
    await kv.atomic().append(["b"], doubles()).commit();
    await kv.atomic().append(["b"], doubles()).commit();
    assertSame((await kv.get(["a"])).value, expected);
    assertSame((await kv.get(["b"])).value, [...doubles(), ...doubles()]);
  });

  test("messages have them", async () => {
    const kv = await fresh();
    const queue = kv.queue("q");
    await queue.enqueue({ v: doubles() });
    const message = await queue.receive();
    assertSame(message.value, { v: doubles() });
    await message.ack();
  });

  if (isPostgres) return;
  test("searches find their numbers", async () => {
    const kv = await fresh();
    await kv.createIndex({ prefix: ["s"], fields: ["years"] });
    await kv.set(["s", 1], { years: list(40, (i) => 1900 + i) });
    const keys = async (query) => (await kv.search(["s"], query)).entries.map(({ key }) => key);
    assert.deepEqual(await keys("1939"), [["s", 1]]);
    assert.deepEqual(await keys("1940"), []);
  });
}

onEachAndServed("arrays of numbers", suite);
onPostgres("arrays of numbers", suite);

test("files have them packed; what is written through a server is plain", async () => {
  const path = freshPath();
  const kv = await open(path);
  await kv.set(["a"], doubles());
  await kv.atomic().set(["b"], doubles()).commit();
  assert.equal(await packedIn(kv), 2);
  await kv.set(["c"], doubles(31));
  const accessToken = "the-token-of-these-tests";
  const server = await startServer({ path, accessToken });
  const remote = await open(server.url, { accessToken });
  await remote.set(["d"], doubles());
  await remote.atomic().set(["e"], doubles()).commit();
  assert.equal(await packedIn(kv), 2);
  for (const key of ["a", "b", "d", "e"]) assertSame((await remote.get([key])).value, doubles());
});

test("a file in Deno's format has them in that format", async () => {
  const path = freshPath();
  const kv = await open(path, { encoding: "v8" });
  await kv.set(["a"], { v: doubles(), w: ARRAYS.ints });
  assertSame((await kv.get(["a"])).value, { v: doubles(), w: ARRAYS.ints });
  assert.equal(await packedIn(kv), 0);
});

test("clients that do not read packed arrays are offered no extension", async () => {
  const path = freshPath();
  const kv = await open(path);
  await kv.set(["a"], doubles());
  const accessToken = "the-token-of-these-tests";
  const server = await startServer({ path, accessToken });
  const offered = async (headers) => {
    const answer = await fetch(server.url, {
      method: "POST",
      headers: { authorization: `Bearer ${accessToken}`, ...headers },
      body: '{"supportedVersions":[3]}',
    });
    assert.equal(answer.status, 200);
    return (await answer.json()).extensions;
  };
  assert.equal(await offered({}), undefined);
  assert.equal(await offered({ "x-openkv-extensions": "1" }), undefined);
  assert.equal(await offered({ "x-openkv-packed": "1" }), undefined);
  const both = await offered({ "x-openkv-extensions": "1", "x-openkv-packed": "1" });
  assert.ok(both.includes("frames-1"));
});
