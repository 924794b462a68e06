// Duty: several copies of the package's JavaScript on one thread, as test runners and hot
// replacement make them by loading modules anew, and bundlers by packing one twice.
//
// They shared one scratch and one way for events, the last one's: the first copy's reads were of
// keys of the other's, its answers were what an earlier read had left, and its openKv never ended.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";

const require = createRequire(import.meta.url);

/** Loads the package once more; `addon`: with a new entry for the addon too. */
function copy({ addon }) {
  for (const path of Object.keys(require.cache)) {
    if (addon || !path.endsWith(".node")) delete require.cache[path];
  }
  return require("../../index.js");
}

for (const addon of [false, true]) {
  describe(`copies over ${addon ? "an addon loaded anew" : "one addon"}`, () => {
    test("each reads its own", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      assert.notEqual(one.openKv, two.openKv);
      const a = await one.openKv(":memory:");
      await a.set(["alice"], "alice's");
      await a.set(["bobby"], "bobby's");
      assert.equal((await a.get(["alice"])).value, "alice's");
      const b = await two.openKv(":memory:");
      await b.set(["alice"], "of b");
      assert.equal((await b.get(["alice"])).value, "of b");
      assert.equal((await a.get(["bobby"])).value, "bobby's");
      assert.equal((await b.get(["bobby"])).versionstamp, null);
      const both = await a.getMany([["bobby"], ["alice"]]);
      assert.deepEqual(both.map((entry) => entry.value), ["bobby's", "alice's"]);
      const keys = [];
      for await (const entry of a.list({ prefix: [] })) keys.push(entry.key[0]);
      assert.deepEqual(keys, ["alice", "bobby"]);
      a.close();
      b.close();
    });

    test("a larger answer makes only the asker's scratch larger", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const a = await one.openKv(":memory:", { limits: "wide" });
      const b = await two.openKv(":memory:");
      await a.set(["large"], new Uint8Array(3 * 1024 * 1024).fill(1));
      await b.set(["large"], "small");
      for (let round = 0; round < 3; round++) {
        assert.equal((await a.get(["large"])).value.length, 3 * 1024 * 1024);
        assert.equal((await b.get(["large"])).value, "small");
      }
      a.close();
      b.close();
    });

    test("each takes the 64-bit integers of the other", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const kv = await one.openKv(":memory:");
      const foreign = new two.KvU64(5n);
      assert.ok(!(foreign instanceof one.KvU64));
      await kv.set(["n"], foreign);
      const { value } = await kv.get(["n"]);
      assert.ok(value instanceof one.KvU64);
      assert.equal(value.value, 5n);
      assert.equal(one.sizeOf(foreign), 8);
      const added = [{ type: "sum", key: ["n"], value: foreign }];
      await kv.atomic().mutate(...added).sum(["n"], foreign).max(["n"], new two.KvU64(1n)).commit();
      assert.equal((await kv.get(["n"])).value.value, 15n);
      // What only looks like one is stored as any other object is.
      const lookalikes = [
        { value: 5n },
        Object.create(two.KvU64.prototype),
        Object.create(two.KvU64.prototype, { value: { value: -1n, enumerable: true } }),
        Object.create(two.KvU64.prototype, { value: { get: () => 5n, enumerable: true } }),
      ];
      for (const given of lookalikes) {
        await kv.set(["like"], given);
        const { value } = await kv.get(["like"]);
        assert.ok(!(value instanceof one.KvU64), `${Object.keys(given)}`);
        await assert.rejects(async () => await kv.atomic().sum(["n"], given).commit(), TypeError);
      }
      await assert.rejects(kv.set(["like"], new Proxy(foreign, {})), TypeError);
      kv.close();
    });

    test("each is told of its own events", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const first = await one.openKv(":memory:");
      const b = await two.openKv(":memory:");
      const a = await one.openKv(":memory:");
      first.close();
      assert.equal(await a.count({ prefix: [] }), 0);
      const watched = a.watch([["k"]]).getReader();
      assert.equal((await watched.read()).value[0].value, null);
      await b.set(["k"], "of b");
      await a.set(["k"], "of a");
      assert.equal((await watched.read()).value[0].value, "of a");
      a.close();
      b.close();
    });
  });
}
