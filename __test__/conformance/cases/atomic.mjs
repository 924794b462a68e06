// Duty: atomic operations as a whole: result, order, all or nothing, reuse.

export default [
  {
    name: "commit answers ok and a versionstamp shared by all keys",
    async run(t) {
      const kv = await t.open();
      const result = await kv.atomic().set(["a"], 1).set(["b"], 2).sum(["c"], 3n).commit();
      t.same(Object.keys(result), ["ok", "versionstamp"]);
      t.is(result.ok, true);
      for (const key of [["a"], ["b"], ["c"]]) t.is(await t.stamp(kv, key), result.versionstamp);
    },
  },
  {
    name: "a commit returns the calculated results on request",
    denoDiffers: "Deno's commit takes no arguments",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic().set(["a"], 1).sum(["n"], 2n).sum(["n"], 3n);
      t.same(
        (await op.commit({ values: true })).values.map(({ value }) => value),
        [2n, 5n],
      );
      t.same(Object.keys(await op.commit()), ["ok", "versionstamp"]);
    },
  },
  {
    name: "a commit returns the results of its messages",
    denoDiffers: "Deno's result is { ok, versionstamp } and no more",
    async run(t) {
      const kv = await t.open();
      const { messages } = await kv.atomic().enqueue(1).set(["a"], 1).enqueue(2).commit();
      t.same(
        messages.map(({ deduplicated }) => deduplicated),
        [false, false],
      );
      t.ok(messages[0].id !== messages[1].id);
    },
  },
  {
    name: "every method answers the operation itself",
    async run(t) {
      const op = (await t.open()).atomic();
      t.is(op.check({ key: ["a"], versionstamp: null }), op);
      t.is(op.check(), op);
      t.is(op.set(["a"], 1), op);
      t.is(op.delete(["a"]), op);
      t.is(op.sum(["a"], 1n), op);
      t.is(op.min(["a"], 1n), op);
      t.is(op.max(["a"], 1n), op);
      t.is(op.mutate({ type: "delete", key: ["a"] }), op);
      t.is(op.mutate(), op);
      t.is(op.enqueue(1), op);
    },
  },
  {
    name: "an empty commit succeeds with a fresh versionstamp",
    async run(t) {
      const kv = await t.open();
      const before = await kv.set(["a"], 1);
      const empty = await kv.atomic().commit();
      t.is(empty.ok, true);
      t.ok(empty.versionstamp > before.versionstamp);
      t.ok((await kv.set(["a"], 1)).versionstamp > empty.versionstamp);
    },
  },
  {
    name: "nothing happens before commit",
    async run(t) {
      const kv = await t.open();
      kv.atomic().set(["a"], 1);
      await t.sleep(20);
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "an operation can be committed again, which does it all again",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic().sum(["n"], 2n);
      const first = await op.commit();
      const second = await op.commit();
      t.ok(second.versionstamp > first.versionstamp);
      t.is((await t.value(kv, ["n"])).value, 4n);
      op.sum(["n"], 1n);
      await op.commit();
      t.is((await t.value(kv, ["n"])).value, 7n);
    },
  },
  {
    name: "awaiting an operation instead of its commit is a TypeError",
    async run(t) {
      const kv = await t.open();
      const words = "is not a promise: did you forget to call 'commit()'";
      t.throws(() => kv.atomic().then(), TypeError, words);
      await t.rejects((async () => await kv.atomic().set(["a"], 1))(), TypeError, words);
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "mutations of one key apply in their order",
    async run(t) {
      const kv = await t.open();
      await kv.atomic().set(["a"], 1).delete(["a"]).commit();
      t.is(await t.stamp(kv, ["a"]), null);
      await kv.atomic().delete(["b"]).set(["b"], 2).commit();
      t.is(await t.value(kv, ["b"]), 2);
      await kv.atomic().set(["c"], 1).set(["c"], 2).commit();
      t.is(await t.value(kv, ["c"]), 2);
      await kv.atomic().set(["d"], new t.KvU64(5n)).sum(["d"], 1n).max(["d"], 9n).commit();
      t.is((await t.value(kv, ["d"])).value, 9n);
      await kv.atomic().sum(["e"], 5n).delete(["e"]).sum(["e"], 2n).commit();
      t.is((await t.value(kv, ["e"])).value, 2n);
    },
  },
  {
    name: "a commit that fails half-way leaves nothing",
    denoDiffers: "Deno keeps the mutations before the one that failed",
    async run(t) {
      const kv = await t.open();
      await kv.set(["text"], "no number");
      const before = await kv.get(["text"]);
      const op = kv
        .atomic()
        .set(["new"], 1)
        .delete(["text"])
        .set(["text"], "other")
        .sum(["counter"], 1n)
        .sum(["text"], 1n)
        .set(["after"], 1)
        .enqueue("message");
      await t.rejects(() => op.commit(), TypeError, "non-U64 value in the database");
      t.same(
        (await t.all(kv.list({ prefix: [] }))).map((entry) => entry.key),
        [["text"]],
      );
      t.same(await kv.get(["text"]), before);
      const got = [];
      const listening = kv.listenQueue((message) => {
        got.push(message);
      });
      await kv.enqueue("sentinel");
      await t.until(() => got.includes("sentinel"), "the sentinel");
      t.same(got, ["sentinel"]);
      kv.close();
      await listening;
    },
  },
  {
    name: "a failed commit beside good ones fails alone",
    async run(t) {
      const kv = await t.open();
      await kv.set(["text"], "no number");
      const results = await Promise.allSettled([
        kv.atomic().set(["a"], 1).commit(),
        kv.atomic().sum(["text"], 1n).commit(),
        kv
          .atomic()
          .check({ key: ["text"], versionstamp: null })
          .set(["c"], 1)
          .commit(),
        kv.atomic().set(["d"], 1).commit(),
      ]);
      t.same(
        results.map((result) => result.value?.ok ?? result.status),
        [true, "rejected", false, true],
      );
      t.same(await t.ends(kv.list({ prefix: [] })), ["a", "d", "text"]);
    },
  },
  {
    name: "commits that are not awaited happen in the order of the calls",
    async run(t) {
      const kv = await t.open();
      const done = [];
      for (let i = 0; i < 50; i++) {
        done.push(kv.atomic().set(["last"], i).set(["n", i], i).commit());
      }
      const stamps = (await Promise.all(done)).map((result) => result.versionstamp);
      t.same(stamps, [...new Set(stamps)].sort());
      t.is(await t.value(kv, ["last"]), 49);
    },
  },
  {
    name: "a misspelt option of set is a TypeError at the call",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.atomic().set(["a"], 1, { expiresIn: 5 }), TypeError, "expiresIn");
    },
  },
  {
    name: "set validates its options at the call and its key at commit",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.atomic().set(["a"], 1, { expireIn: -1 }), TypeError, "expireIn");
      const op = kv.atomic().set([], 1).delete([]).sum([], 1n);
      await t.rejects(() => op.commit(), TypeError, "key cannot be empty");
    },
  },
  {
    name: "1000 mutations of one commit",
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic();
      for (let i = 0; i < 1000; i++) op.set(["n", i], i);
      const { versionstamp } = await op.commit();
      const entries = await t.all(kv.list({ prefix: ["n"] }));
      t.is(entries.length, 1000);
      t.ok(entries.every((entry, i) => entry.value === i && entry.versionstamp === versionstamp));
    },
  },
];
