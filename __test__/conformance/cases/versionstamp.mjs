// Duty: versionstamps, and keys that end in the commit's own.

export default [
  {
    name: "rise with every commit, in text order",
    async run(t) {
      const kv = await t.open();
      const stamps = [];
      for (let i = 0; i < 60; i++) stamps.push((await kv.set(["a"], i)).versionstamp);
      t.same(stamps, [...new Set(stamps)].sort());
    },
  },
  {
    name: "a key that ends in commitVersionstamp() ends in the commit's versionstamp",
    async run(t) {
      const kv = await t.open();
      const key = ["log", kv.commitVersionstamp()];
      const ways = [
        () => kv.set(key, "set"),
        () => kv.atomic().set(key, "atomic").commit(),
        () => kv.atomic().mutate({ type: "set", key, value: "mutate" }).commit(),
      ];
      const expected = [];
      for (const way of ways) {
        const { versionstamp } = await way();
        expected.push([["log", versionstamp], versionstamp]);
      }
      const entries = await t.all(kv.list({ prefix: ["log"] }));
      t.same(
        entries.map((entry) => [entry.key, entry.versionstamp]),
        expected,
      );
      t.same(
        entries.map((entry) => entry.value),
        ["set", "atomic", "mutate"],
      );
      t.is(key.length, 2);
      t.is(await t.value(kv, expected[0][0]), "set");
    },
  },
  {
    name: "every commit appends after the ones before",
    async run(t) {
      const kv = await t.open();
      const key = ["log", kv.commitVersionstamp()];
      await Promise.all(Array.from({ length: 30 }, (_, i) => kv.set(key, i)));
      const values = (await t.all(kv.list({ prefix: ["log"] }))).map((entry) => entry.value);
      t.same(
        values,
        Array.from({ length: 30 }, (_, i) => i),
      );
    },
  },
  {
    name: "two such sets of one prefix in one commit: the last wins",
    async run(t) {
      const kv = await t.open();
      const stamp = kv.commitVersionstamp();
      const op = kv.atomic().set(["a", stamp], 1).set(["a", stamp], 2).set(["b", stamp], 3);
      await op.commit();
      const entries = await t.all(kv.list({ prefix: [] }));
      t.same(
        entries.map((entry) => entry.value),
        [2, 3],
      );
    },
  },
  {
    name: "the symbol alone is an empty key",
    async run(t) {
      const kv = await t.open();
      const key = [kv.commitVersionstamp()];
      await t.rejects(() => kv.set(key, 1), TypeError, "key cannot be empty");
    },
  },
  {
    name: "anywhere else the symbol is no key part",
    async run(t) {
      const kv = await t.open();
      const key = ["a", kv.commitVersionstamp()];
      const words = "expected string, number, bigint, ArrayBufferView, boolean";
      await t.rejects(() => kv.get(key), TypeError, words);
      await t.rejects(() => kv.delete(key), TypeError, words);
      await t.rejects(() => kv.set([...key, "b"], 1), TypeError, words);
      await t.rejects(async () => kv.atomic().sum(key, 1n).commit(), TypeError, words);
      await t.rejects(async () => kv.atomic().delete(key).commit(), TypeError, words);
      const check = { key, versionstamp: null };
      await t.rejects(async () => kv.atomic().check(check).commit(), TypeError, words);
      const iterator = kv.list({ prefix: key });
      await t.rejects(() => iterator.next(), TypeError, words);
      t.throws(() => kv.watch([key]), TypeError, words);
    },
  },
  {
    name: "a symbol of the same description is not it",
    async run(t) {
      const kv = await t.open();
      const key = ["a", Symbol("KvCommitVersionstamp")];
      await t.rejects(() => kv.set(key, 1), TypeError, "expected string");
    },
  },
  {
    name: "a failed check writes no such key",
    async run(t) {
      const kv = await t.open();
      await kv.set(["x"], 1);
      const op = kv
        .atomic()
        .check({ key: ["x"], versionstamp: null })
        .set(["log", kv.commitVersionstamp()], 1);
      t.is((await op.commit()).ok, false);
      t.same(await t.all(kv.list({ prefix: ["log"] })), []);
    },
  },
  {
    name: "the versionstamp counts when the key's size is limited",
    denoDiffers: "Deno lets the suffix go beyond the limit, and cannot get such a key",
    async run(t) {
      const kv = await t.open();
      const bytes = (size) => new Uint8Array(size - 2).fill(1);
      // The suffix is 22 bytes: 02, 20 digits, 00.
      await kv.set([bytes(2026), kv.commitVersionstamp()], 1);
      const [entry] = await t.all(kv.list({ prefix: [] }));
      t.is(await t.value(kv, entry.key), 1);
      const long = [bytes(2027), kv.commitVersionstamp()];
      await t.rejects(() => kv.set(long, 1), TypeError, "Key too large for write");
    },
  },
];
