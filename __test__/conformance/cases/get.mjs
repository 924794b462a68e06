// Duty: get and getMany: shapes of hits and misses, consistency, snapshots.

export default [
  {
    name: "a missing key answers nulls and the key that was passed",
    async run(t) {
      const kv = await t.open();
      const key = ["none"];
      const entry = await kv.get(key);
      t.same(entry, { key: ["none"], value: null, versionstamp: null });
      t.same(Object.keys(entry), ["key", "value", "versionstamp"]);
      t.is(entry.key, key, "key");
    },
  },
  {
    name: "a hit is a plain entry with a key of its own",
    async run(t) {
      const kv = await t.open();
      const key = ["a"];
      const { versionstamp } = await kv.set(key, "v");
      const entry = await kv.get(key);
      t.same(entry, { key: ["a"], value: "v", versionstamp });
      t.same(Object.keys(entry), ["key", "value", "versionstamp"]);
      t.ok(entry.key !== key, "the key array is the caller's");
      t.ok(!Object.isFrozen(entry) && !Object.isFrozen(entry.key), "frozen");
      t.is(Object.getPrototypeOf(entry), Object.prototype, "prototype");
    },
  },
  {
    name: "a stored null is a hit",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], null);
      const entry = await kv.get(["a"]);
      t.is(entry.value, null);
      t.is(typeof entry.versionstamp, "string");
    },
  },
  {
    name: "every get decodes a value of its own",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], { n: [1] });
      const first = await t.value(kv, ["a"]);
      first.n.push(2);
      t.same(await t.value(kv, ["a"]), { n: [1] });
    },
  },
  {
    name: "get answers the key as stored, not as spelt",
    async run(t) {
      const kv = await t.open();
      await kv.set([new Uint16Array([1, 256]), "\ud800"], 1);
      const entry = await kv.get([new Uint16Array([1, 256]), "\ud800"]);
      t.same(entry.key, [new Uint8Array([1, 0, 0, 1]), "\ufffd"]);
    },
  },
  {
    name: "a read that follows a write sees it",
    async run(t) {
      const kv = await t.open();
      for (let i = 0; i < 50; i++) {
        await kv.set(["a"], i);
        t.is(await t.value(kv, ["a"]), i);
      }
    },
  },
  {
    name: "a prefix is no key, nor is an extension",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a", "b"], 1);
      t.is(await t.stamp(kv, ["a"]), null);
      t.is(await t.stamp(kv, ["a", "b", "c"]), null);
      t.is(await t.stamp(kv, ["a", "b"]), (await kv.get(["a", "b"])).versionstamp);
    },
  },
  {
    name: "both consistency levels and none",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      for (const consistency of ["strong", "eventual", undefined, null]) {
        t.is((await kv.get(["a"], { consistency })).value, 1);
        t.is((await kv.getMany([["a"]], { consistency }))[0].value, 1);
      }
      t.is((await kv.get(["a"], null)).value, 1);
      t.is((await kv.get(["a"], undefined)).value, 1);
    },
  },
  {
    name: "another consistency level is a TypeError",
    async run(t) {
      const kv = await t.open();
      const words = "unknown variant `x`, expected `strong` or `eventual`";
      await t.rejects(() => kv.get(["a"], { consistency: "x" }), TypeError, words);
      await t.rejects(() => kv.getMany([["a"]], { consistency: "x" }), TypeError, words);
      await t.rejects(() => kv.get(["a"], { consistency: 5 }), TypeError);
    },
  },
  {
    name: "a misspelt option is a TypeError that names it",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      await t.rejects(() => kv.get(["a"], { consistancy: "strong" }), TypeError, "consistancy");
      await t.rejects(() => kv.getMany([], { consistancy: "strong" }), TypeError, "consistancy");
    },
  },
  {
    name: "get of the empty key is a miss",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      t.same(await kv.get([]), { key: [], value: null, versionstamp: null });
      t.same(await kv.getMany([[]]), [{ key: [], value: null, versionstamp: null }]);
    },
  },
  {
    name: "500 gets at once",
    async run(t) {
      const kv = await t.open();
      const numbers = Array.from({ length: 500 }, (_, i) => i);
      await Promise.all(numbers.map((i) => kv.set(["n", i], i)));
      const entries = await Promise.all(numbers.map((i) => kv.get(["n", i])));
      t.same(
        entries.map((entry) => entry.value),
        numbers,
      );
    },
  },
  {
    name: "getMany keeps order, duplicates and misses",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      await kv.set(["b"], 2);
      const missing = ["c"];
      const entries = await kv.getMany([["b"], missing, ["a"], ["b"]]);
      t.same(
        entries.map((entry) => entry.value),
        [2, null, 1, 2],
      );
      t.same(
        entries.map((entry) => entry.key),
        [["b"], ["c"], ["a"], ["b"]],
      );
      t.is(entries[1].key, missing, "key of a miss");
      t.is(entries[1].versionstamp, null);
      t.ok(entries[0] !== entries[3], "duplicates share an entry");
    },
  },
  {
    name: "getMany of nothing is an empty array",
    async run(t) {
      t.same(await (await t.open()).getMany([]), []);
    },
  },
  {
    name: "getMany takes 10 keys and not 11",
    async run(t) {
      const kv = await t.open();
      t.is((await kv.getMany(Array(10).fill(["a"]))).length, 10);
      const eleven = Array(11).fill(["a"]);
      await t.rejects(() => kv.getMany(eleven), TypeError, "Too many ranges (max 10)");
    },
  },
  {
    name: "getMany of something that is no array is a TypeError",
    async run(t) {
      const kv = await t.open();
      for (const keys of [null, undefined, "ab"]) {
        await t.rejects(() => kv.getMany(keys), TypeError);
      }
    },
  },
  {
    name: "getMany is one snapshot",
    async run(t) {
      const kv = await t.open();
      let writing = true;
      const writer = (async () => {
        for (let i = 0; i < 100; i++) {
          await kv.atomic().set(["l"], i).set(["m"], i).set(["z"], i).commit();
        }
        writing = false;
      })();
      let last = -1;
      while (writing) {
        const [l, m, z] = await kv.getMany([["l"], ["m"], ["z"]]);
        t.same([l.value, l.versionstamp], [m.value, m.versionstamp]);
        t.same([l.value, l.versionstamp], [z.value, z.versionstamp]);
        t.ok((l.value ?? -1) >= last, "went back in time");
        last = l.value ?? -1;
        await t.sleep(0);
      }
      await writer;
    },
  },
  {
    name: "an aborted signal gives up each call of Deno's",
    denoDiffers: "it takes no signals",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const signal = AbortSignal.abort(new RangeError("given up"));
      const calls = [
        () => kv.get(["a"], { signal }),
        () => kv.getMany([["a"]], { signal }),
        () => kv.set(["a"], 2, { signal }),
        () => kv.delete(["a"], { signal }),
        () => kv.list({ prefix: [] }, { signal }).next(),
        () => kv.enqueue(1, { signal }),
        () => kv.atomic().set(["a"], 2).commit({ signal }),
      ];
      for (const call of calls) await t.rejects(call, RangeError, "given up");
      t.is(await t.value(kv, ["a"]), 1);
    },
  },
];
