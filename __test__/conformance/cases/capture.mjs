// Duty: what a call captures, and when: nothing that the caller changes later may be written.

export default [
  {
    name: "set captures key and value at the call",
    async run(t) {
      const kv = await t.open();
      const [key, part, value, bytes] = [["a"], new Uint8Array([1]), { n: 1 }, new Uint8Array([1])];
      const done = [kv.set(key, value), kv.set(["b"], bytes), kv.set(["c", part], 1)];
      key[0] = "x";
      value.n = 2;
      bytes[0] = 2;
      part[0] = 2;
      await Promise.all(done);
      t.same(await t.value(kv, ["a"]), { n: 1 });
      t.same(await t.value(kv, ["b"]), new Uint8Array([1]));
      t.is(await t.value(kv, ["c", new Uint8Array([1])]), 1);
      t.is((await t.all(kv.list({ prefix: [] }))).length, 3);
    },
  },
  {
    name: "delete captures its key at the call",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      await kv.set(["b"], 1);
      const key = ["a"];
      const done = kv.delete(key);
      key[0] = "b";
      await done;
      t.same(await t.ends(kv.list({ prefix: [] })), ["b"]);
    },
  },
  {
    name: "atomic set captures structured values at the call",
    async run(t) {
      const kv = await t.open();
      const value = { n: 1 };
      const op = kv.atomic().set(["a"], value);
      value.n = 2;
      await op.commit();
      t.same(await t.value(kv, ["a"]), { n: 1 });
    },
  },
  {
    name: "atomic set captures bytes at the call",
    denoDiffers: "Deno reads the bytes at commit()",
    async run(t) {
      const kv = await t.open();
      const bytes = new Uint8Array([1]);
      const op = kv.atomic().set(["a"], bytes);
      bytes[0] = 2;
      await op.commit();
      t.same(await t.value(kv, ["a"]), new Uint8Array([1]));
    },
  },
  {
    name: "atomic operations capture keys at the call",
    denoDiffers: "Deno reads the keys at commit()",
    async run(t) {
      const kv = await t.open();
      const [set, sum, del, check] = [["set"], ["sum"], ["del"], ["check"]];
      await kv.set(["del"], 1);
      await kv.set(["other"], 1);
      const op = kv
        .atomic()
        .check({ key: check, versionstamp: null })
        .set(set, 1)
        .sum(sum, 1n)
        .delete(del);
      for (const key of [set, sum, del, check]) key[0] = "other";
      t.is((await op.commit()).ok, true);
      t.same(await t.ends(kv.list({ prefix: [] })), ["other", "set", "sum"]);
    },
  },
  {
    name: "enqueue captures its message at the call",
    async run(t) {
      const kv = await t.open();
      const [message, other] = [{ n: 1 }, { n: 2 }];
      const done = kv.enqueue(message);
      const op = kv.atomic().enqueue(other);
      message.n = other.n = 3;
      await done;
      await op.commit();
      const got = [];
      const listening = kv.listenQueue((m) => {
        got.push(m.n);
      });
      await t.until(() => got.length === 2, "two messages");
      kv.close();
      await listening;
      t.same(got.sort(), [1, 2]);
    },
  },
  {
    name: "list captures its selector at the call",
    async run(t) {
      const kv = await t.open();
      for (const key of [
        ["a", 1],
        ["a", 2],
        ["b", 1],
      ])
        await kv.set(key, 1);
      const selector = { prefix: ["a"], start: ["a", 2] };
      const iterator = kv.list(selector);
      selector.prefix[0] = "b";
      selector.start = undefined;
      t.same(
        (await t.all(iterator)).map((entry) => entry.key),
        [["a", 2]],
      );
    },
  },
  {
    name: "get captures its key at the call",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], "a");
      await kv.set(["b"], "b");
      const key = ["a"];
      const one = kv.get(key);
      const many = kv.getMany([key]);
      key[0] = "b";
      t.is((await one).value, "a");
      t.is((await many)[0].value, "a");
    },
  },
  {
    name: "a getter that uses the database while its value is encoded",
    async run(t) {
      const kv = await t.open();
      await kv.set(["x"], { before: "x".repeat(1000) });
      const inner = [];
      const value = {
        head: "h".repeat(100),
        get nested() {
          inner.push(kv.get(["x"]), kv.set(["inner"], { from: "getter" }), kv.getMany([["x"]]));
          inner.push(kv.atomic().set(["inner2"], [1, 2, 3]).commit());
          return { list: [1, 2, 3] };
        },
        tail: "t".repeat(100),
      };
      await kv.set(["outer"], value);
      const [got, , [many]] = await Promise.all(inner);
      t.is(got.value.before.length, 1000);
      t.is(many.value.before.length, 1000);
      t.same(await t.value(kv, ["outer"]), {
        head: "h".repeat(100),
        nested: { list: [1, 2, 3] },
        tail: "t".repeat(100),
      });
      t.same(await t.value(kv, ["inner"]), { from: "getter" });
      t.same(await t.value(kv, ["inner2"]), [1, 2, 3]);
    },
  },
  {
    name: "a key part's array subclass and getters are read once",
    async run(t) {
      const kv = await t.open();
      let reads = 0;
      const key = ["a"];
      Object.defineProperty(key, 1, { get: () => ++reads, enumerable: true });
      await kv.set(key, 1);
      const [entry] = await t.all(kv.list({ prefix: [] }));
      t.same(entry.key, ["a", reads]);
    },
  },
];
