// Duty: delete.

export default [
  {
    name: "answers undefined and removes the entry",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      t.is(await kv.delete(["a"]), undefined);
      t.same(await kv.get(["a"]), { key: ["a"], value: null, versionstamp: null });
      t.same(await t.all(kv.list({ prefix: [] })), []);
    },
  },
  {
    name: "of a missing key is fine",
    async run(t) {
      const kv = await t.open();
      t.is(await kv.delete(["none"]), undefined);
    },
  },
  {
    name: "removes that key alone, not its extensions",
    async run(t) {
      const kv = await t.open();
      for (const key of [["a"], ["a", "b"], ["a", ""], ["aa"]]) await kv.set(key, 1);
      await kv.delete(["a"]);
      const left = await t.all(kv.list({ prefix: [] }));
      t.same(
        left.map((entry) => entry.key),
        [["a", ""], ["a", "b"], ["aa"]],
      );
    },
  },
  {
    name: "of every kind of value",
    async run(t) {
      const kv = await t.open();
      for (const value of [new t.KvU64(1n), new Uint8Array(60000), "x".repeat(60000), 1]) {
        await kv.set(["a"], value);
        await kv.delete(["a"]);
        t.is(await t.stamp(kv, ["a"]), null);
      }
    },
  },
  {
    name: "then set again gives a new versionstamp",
    async run(t) {
      const kv = await t.open();
      const first = await kv.set(["a"], 1);
      await kv.delete(["a"]);
      const second = await kv.set(["a"], 1);
      t.ok(second.versionstamp > first.versionstamp);
    },
  },
  {
    name: "set and delete in the order of the calls, not awaited",
    async run(t) {
      const kv = await t.open();
      await Promise.all([kv.set(["a"], 1), kv.delete(["a"]), kv.set(["b"], 1), kv.delete(["c"])]);
      t.same(await t.ends(kv.list({ prefix: [] })), ["b"]);
    },
  },
];
