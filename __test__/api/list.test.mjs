// Duty: lists across pages and lanes: order, overlap of next(), changes and close mid-iteration.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import {
  all,
  freshPath,
  onEveryKind,
  onNearReplica,
  onReplica,
  open,
  spendTurn,
} from "./databases.mjs";

/** More than the first page (32), the second (128) and the largest (500) together. */
const ROWS = 1700;

async function filled(kv, rows = ROWS) {
  const writes = [];
  for (let i = 0; i < rows; i++) writes.push(kv.set(["row", i], { i }));
  await Promise.all(writes);
  return kv;
}
const numbers = (entries) => entries.map(({ value }) => value.i);
const upTo = (n) => Array.from({ length: n }, (_, i) => i);
const rows = { prefix: ["row"] };

function lists(fresh) {
  test("every entry once, in order, forward and in reverse", async () => {
    const kv = await filled(await fresh());
    assert.deepEqual(numbers(await all(kv.list(rows))), upTo(ROWS));
    assert.deepEqual(numbers(await all(kv.list(rows, { reverse: true }))), upTo(ROWS).reverse());
  });

  test("every batchSize gives the same entries", async () => {
    const kv = await filled(await fresh(), 300);
    for (const batchSize of [1, 2, 7, 32, 33, 299, 300, 301, 500, 501, 1000]) {
      assert.deepEqual(numbers(await all(kv.list(rows, { batchSize }))), upTo(300), `${batchSize}`);
    }
    const tooMany = kv.list(rows, { batchSize: 1001 });
    await assert.rejects(tooMany.next(), /Too many entries \(max 1000\)/);
  });

  test("limits that end at, before and behind the borders of pages", async () => {
    const kv = await filled(await fresh());
    for (const limit of [1, 31, 32, 33, 159, 160, 161, 659, 660, 661, ROWS, ROWS + 1]) {
      const expected = upTo(Math.min(limit, ROWS));
      assert.deepEqual(numbers(await all(kv.list(rows, { limit }))), expected, `${limit}`);
    }
  });

  test("calls of next() that overlap get an entry each, in the order of the calls", async () => {
    const kv = await filled(await fresh());
    for (const spend of [false, true]) {
      const iterator = kv.list(rows);
      const seen = [];
      for (let done = false; !done; ) {
        if (spend) await spendTurn(kv);
        const results = await Promise.all(Array.from({ length: 97 }, () => iterator.next()));
        for (const result of results) {
          assert.ok(!(done && !result.done), "an entry after the end");
          done ||= result.done;
          if (!result.done) seen.push(result.value.value.i);
        }
      }
      assert.deepEqual(seen, upTo(ROWS));
    }
  });

  test("the asynchronous lane gives the same entries", async () => {
    const kv = await filled(await fresh());
    for (const reverse of [false, true]) {
      const iterator = kv.list(rows, { reverse });
      const seen = [];
      await spendTurn(kv);
      for await (const { value } of iterator) {
        seen.push(value.i);
        if (seen.length % 30 === 0) await spendTurn(kv);
      }
      assert.deepEqual(seen, reverse ? upTo(ROWS).reverse() : upTo(ROWS));
    }
  });

  test("a cursor goes on wherever it was taken", async () => {
    const kv = await filled(await fresh(), 200);
    for (const stop of [1, 31, 32, 33, 160, 199]) {
      for (const reverse of [false, true]) {
        const first = kv.list(rows, { reverse });
        const seen = [];
        for (let i = 0; i < stop; i++) seen.push((await first.next()).value);
        const rest = kv.list(rows, { reverse, cursor: first.cursor });
        assert.equal(rest.cursor, first.cursor);
        seen.push(...(await all(rest)));
        assert.deepEqual(numbers(seen), reverse ? upTo(200).reverse() : upTo(200));
        assert.equal(rest.cursor, "");
      }
    }
  });

  test("break leaves the iterator where it is", async () => {
    const kv = await filled(await fresh(), 100);
    const iterator = kv.list(rows);
    const seen = [];
    for (let i = 0; i < 10; i++) {
      for await (const { value } of iterator) {
        seen.push(value.i);
        if (seen.length % 10 === 0) break;
      }
    }
    assert.deepEqual(seen, upTo(100));
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  });

  test("what is deleted behind and ahead of an iteration", async () => {
    const kv = await filled(await fresh());
    const seen = [];
    const deletions = [];
    for await (const { key, value } of kv.list(rows)) {
      seen.push(value.i);
      deletions.push(kv.delete(key));
      if (value.i % 100 === 50) await Promise.all([...deletions, kv.delete(["row", ROWS - 1])]);
    }
    assert.deepEqual(seen, upTo(ROWS - 1));
    await Promise.all(deletions);
    assert.deepEqual(await all(kv.list(rows)), []);
  });

  test("what is added ahead of an iteration is found, once", async () => {
    const kv = await filled(await fresh(), 300);
    const seen = [];
    let added = [];
    for await (const { value } of kv.list(rows)) {
      seen.push(value.i);
      if (value.i === 50)
        added = upTo(1201)
          .slice(300)
          .map((i) => kv.set(["row", i], { i }));
      if (value.i === 100) await Promise.all(added);
    }
    assert.deepEqual(seen, upTo(1201));
  });

  test("an iterator of each page size at once, interleaved", async () => {
    const kv = await filled(await fresh(), 400);
    const iterators = upTo(20).map((i) => kv.list(rows, i === 0 ? {} : { batchSize: i * 10 }));
    const seen = iterators.map(() => []);
    for (let row = 0; row <= 400; row++) {
      for (const [i, iterator] of iterators.entries()) {
        const { done, value } = await iterator.next();
        assert.equal(done, row === 400);
        if (!done) seen[i].push(value.value.i);
      }
    }
    for (const list of seen) assert.deepEqual(list, upTo(400));
  });

  test("keys and values are fresh: changing one changes no other", async () => {
    const kv = await fresh();
    for (const i of [1, 2]) await kv.set([new Uint8Array([9]), i], new Uint8Array([i]));
    const [one, two] = await all(kv.list({ prefix: [new Uint8Array([9])] }));
    one.key[0][0] = 7;
    one.key.push("more");
    one.value[0] = 7;
    assert.deepEqual([two.key, two.value], [[new Uint8Array([9]), 2], new Uint8Array([2])]);
    assert.equal(one.value.buffer.byteLength, 1);
  });

  test("rows larger than a page's memory", async () => {
    const kv = await fresh({ limits: { valueBytesMax: 9_000_000, commitBytesMax: 10_000_000 } });
    const sizes = [10, 200_000, 5, 6_000_000, 300, 400_000];
    for (const [i, size] of sizes.entries()) {
      await kv.set(["large", i], new Uint8Array(size).fill(i));
    }
    for (const reverse of [false, true]) {
      const entries = await all(kv.list({ prefix: ["large"] }, { reverse }));
      const found = entries.map(({ value }) => value.length);
      assert.deepEqual(found, reverse ? sizes.toReversed() : sizes);
      for (const { key, value } of entries) {
        assert.ok(Buffer.alloc(value.length, key[1]).equals(value), `row ${key[1]}`);
      }
    }
  });
}

onEveryKind("list", lists);
onReplica("list", lists);
onNearReplica("list", lists);

test("close mid-iteration: what is buffered is yielded, then BadResource", async () => {
  const kv = await filled(await openKv(":memory:"), 100);
  const iterator = kv.list(rows);
  await iterator.next();
  await kv.close();
  let yielded = 1;
  await assert.rejects(
    async () => {
      for await (const { value } of iterator) assert.equal(value.i, yielded++);
    },
    { name: "BadResource" },
  );
  assert.equal(yielded, 32, "the first page");
  assert.notEqual(iterator.cursor, "");
  await assert.rejects(iterator.next(), { name: "BadResource" });
});

test("lists that have reached their limit keep no memory of a page, and their cursor", async () => {
  const kv = await filled(await openKv(":memory:"), 100);
  const lists = Array.from({ length: 100 }, () => kv.list(rows, { limit: 2 }));
  const bytes = () => process.memoryUsage().arrayBuffers;
  await kv.list(rows, { limit: 2 }).toArray();
  const before = bytes();
  for (const [at, list] of lists.entries()) {
    assert.deepEqual(numbers(at % 2 === 0 ? await list.toArray() : await all(list)), [0, 1]);
    assert.equal((await kv.paginate(rows, { limit: 2 })).entries.length, 2);
  }
  // A page has 128 KiB.
  assert.ok(bytes() - before < 1024 * 1024, `${bytes() - before} bytes are kept`);
  for (const { cursor } of lists) {
    assert.deepEqual(numbers(await kv.list(rows, { cursor, limit: 2 }).toArray()), [2, 3]);
  }
  kv.close();
});

test("close while next() waits for the asynchronous lane", async () => {
  const kv = await filled(await openKv(freshPath()), 100);
  const iterator = kv.list(rows);
  await spendTurn(kv);
  const waiting = [iterator.next(), iterator.next(), kv.get(["row", 1]), kv.getMany([["row", 2]])];
  kv.close();
  const outcomes = await Promise.allSettled(waiting);
  for (const { status, reason } of outcomes) {
    if (status === "rejected") assert.equal(reason.name, "BadResource");
  }
});

test("an unreadable value: every way to it tells the error, and a list can go on", async () => {
  const path = freshPath();
  const kv = await open(path);
  for (const i of [1, 2, 3]) await kv.set(["row", i], { i });
  await writeRaw(path, kv, ["row", 2], [0xff]);
  const unreadable = { name: "RangeError", message: /could not deserialize value/ };
  await assert.rejects(kv.get(["row", 2]), unreadable);
  await assert.rejects(
    kv.getMany([
      ["row", 1],
      ["row", 2],
    ]),
    unreadable,
  );
  await assert.rejects(
    kv
      .watch([["row", 2]])
      .getReader()
      .read(),
    unreadable,
  );
  await spendTurn(kv);
  const [one, two] = await Promise.allSettled([kv.get(["row", 1]), kv.get(["row", 2])]);
  assert.deepEqual(one.value.value, { i: 1 }, "its neighbour on the asynchronous lane");
  assert.equal(two.reason.name, "RangeError");
  for (const batchSize of [1, 2, 500]) {
    const iterator = kv.list(rows, { batchSize });
    assert.equal((await iterator.next()).value.value.i, 1);
    await assert.rejects(iterator.next(), unreadable);
    assert.equal((await iterator.next()).value.value.i, 3);
    assert.equal((await iterator.next()).done, true);
  }
});

/** Stores bytes that no encoder wrote as a CBOR value, past all of js/. */
async function writeRaw(path, kv, [text, number], value) {
  const require = createRequire(import.meta.url);
  const binding = require("../../dist/native/binding.js");
  const { encodeKey } = require("../../build/codec/key.js");
  const { Writer } = require("../../build/codec/writer.js");
  const writer = new Writer();
  writer.u8(2);
  writer.u8(0);
  writer.u32(0);
  encodeKey(writer, [text, number]);
  writer.patchU32(2, writer.pos - 6);
  writer.u8(67);
  writer.u32(value.length);
  writer.bytes(Uint8Array.from(value));
  writer.u8(0);
  // Nobody listens to these ids, so that the test looks for the effect instead.
  const limits = binding.limits();
  const options = { path, durability: "full", readonly: false, busyTimeoutMs: 5000, limits };
  const attachment = binding.attach(Buffer.alloc(1), () => {});
  const handle = new binding.Handle(attachment, 1, options);
  for (;;) {
    handle.write(2, 1, writer.buf, writer.pos);
    await new Promise((resolve) => setTimeout(resolve, 10));
    const written = await kv.get([text, number]).then(
      () => false,
      () => true,
    );
    if (written) break;
  }
  handle.close(3);
}
