// Duty: expireIn: when entries go, what resets it, what it refuses.

const late = "Deno sweeps once a minute and shows expired entries until then";

export default [
  {
    name: "an entry with time left is there",
    async run(t) {
      const kv = await t.open();
      const { ok } = await kv.set(["a"], 1, { expireIn: 3_600_000 });
      t.ok(ok);
      t.is(await t.value(kv, ["a"]), 1);
      await kv.atomic().set(["b"], 2, { expireIn: 3_600_000 }).commit();
      t.is(await t.value(kv, ["b"]), 2);
      t.is((await t.all(kv.list({ prefix: [] }))).length, 2);
    },
  },
  {
    name: "an expireIn that is no non-negative integer is a TypeError",
    async run(t) {
      const kv = await t.open();
      for (const expireIn of [-1, 1.5, NaN, Infinity, -Infinity, null, "5", 5n, true]) {
        const words = t.refusal("expireIn must be a non-negative integer", expireIn);
        await t.rejects(() => kv.set(["a"], 1, { expireIn }), TypeError, words);
        t.throws(() => kv.atomic().set(["a"], 1, { expireIn }), TypeError, words);
      }
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "an expireIn beyond the range of dates is a TypeError",
    async run(t) {
      const kv = await t.open();
      const far = async () => kv.set(["a"], 1, { expireIn: 9e15 });
      await t.rejects(far, TypeError, "expireIn is too large");
      const ops = [
        kv.atomic().set(["b"], 1).set(["a"], 1, { expireIn: 9e15 }).set(["c"], 1),
        kv.atomic().mutate({ type: "set", key: ["a"], value: 1, expireIn: 9e15 }),
      ];
      for (const op of ops) {
        await t.rejects(() => op.commit(), TypeError, "expireIn is too large");
        await t.rejects(() => op.commit(), TypeError, "expireIn is too large");
      }
      t.same(await t.all(kv.list({ prefix: [] })), []);
      await kv.set(["a"], 1, { expireIn: 8.2e15 });
      t.is(await t.value(kv, ["a"]), 1);
    },
  },
  {
    name: "expireIn 0 is gone at once for every kind of read",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 0 });
      t.same(await kv.get(["a"]), { key: ["a"], value: null, versionstamp: null });
      t.same((await kv.getMany([["a"]]))[0].versionstamp, null);
      t.same(await t.all(kv.list({ prefix: [] })), []);
      t.same(await t.all(kv.list({ prefix: [] }, { reverse: true })), []);
      const reader = kv.watch([["a"]]).getReader();
      t.is((await reader.read()).value[0].versionstamp, null);
      await reader.cancel();
    },
  },
  {
    name: "an expired entry is absent to every call",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 1 });
      await t.sleep(5);
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "an expired entry counts as absent for checks",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      const { versionstamp } = await kv.set(["a"], 1, { expireIn: 0 });
      const stale = kv
        .atomic()
        .check({ key: ["a"], versionstamp })
        .set(["a"], 2);
      t.is((await stale.commit()).ok, false);
      const fresh = kv
        .atomic()
        .check({ key: ["a"], versionstamp: null })
        .set(["a"], 3);
      t.is((await fresh.commit()).ok, true);
      t.is(await t.value(kv, ["a"]), 3);
    },
  },
  {
    name: "an expired entry counts as absent for sums",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      await kv.set(["n"], new t.KvU64(5n), { expireIn: 0 });
      await kv.set(["text"], "x", { expireIn: 0 });
      await kv.atomic().sum(["n"], 1n).sum(["text"], 1n).commit();
      t.is((await t.value(kv, ["n"])).value, 1n);
      t.is((await t.value(kv, ["text"])).value, 1n);
    },
  },
  {
    name: "lists pass over expired entries without shortening their pages",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      const op = kv.atomic();
      for (let i = 0; i < 30; i++) op.set(["n", i], i, i % 3 ? { expireIn: 0 } : {});
      await op.commit();
      const n = { prefix: ["n"] };
      const left = [0, 3, 6, 9, 12, 15, 18, 21, 24, 27];
      t.same(await t.ends(kv.list(n)), left);
      t.same(await t.ends(kv.list(n, { limit: 4 })), left.slice(0, 4));
      t.same(await t.ends(kv.list(n, { batchSize: 2 })), left);
      t.same(await t.ends(kv.list(n, { reverse: true, limit: 2 })), [27, 24]);
    },
  },
  {
    name: "setting again without expireIn keeps the entry for good",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 30 });
      await kv.set(["a"], 2);
      await t.sleep(60);
      t.is(await t.value(kv, ["a"]), 2);
    },
  },
  {
    name: "setting again replaces the time",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 3_600_000 });
      await kv.set(["a"], 2, { expireIn: 0 });
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "sum, min and max as mutations keep the entry for good",
    async run(t) {
      const kv = await t.open();
      for (const type of ["sum", "min", "max"]) {
        await kv.set([type], new t.KvU64(1n), { expireIn: 2000 });
        await kv
          .atomic()
          .mutate({ type, key: [type], value: new t.KvU64(1n) })
          .commit();
      }
      await t.sleep(2100);
      t.is((await t.all(kv.list({ prefix: [] }))).length, 3);
    },
  },
  {
    name: "sum, min and max of an operation keep the end",
    denoDiffers: "in Deno the entry has no end afterwards",
    async run(t) {
      const kv = await t.open();
      for (const name of ["sum", "min", "max"]) {
        await kv.set([name], new t.KvU64(1n), { expireIn: 2000 });
        await kv.atomic()[name]([name], 1n).commit();
      }
      await t.sleep(2100);
      t.same(await t.all(kv.list({ prefix: [] })), []);
    },
  },
  {
    name: "expireAt ends an entry at a moment",
    denoDiffers: "Deno ignores the option, and the entry stays for ever",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, { expireAt: Date.now() + 100 });
      await kv.set(["b"], 1, { expireAt: new Date(Date.now() + 3_600_000) });
      t.is(await t.value(kv, ["b"]), 1);
      await t.sleep(150);
      t.same(await t.ends(kv.list({ prefix: [] })), ["b"]);
    },
  },
  {
    name: "a key that ends in commitVersionstamp() may expire",
    denoDiffers: late,
    async run(t) {
      const kv = await t.open();
      await kv.set(["log", kv.commitVersionstamp()], 1, { expireIn: 0 });
      await kv.set(["log", kv.commitVersionstamp()], 2, { expireIn: 60_000 });
      t.same(
        (await t.all(kv.list({ prefix: ["log"] }))).map((entry) => entry.value),
        [2],
      );
    },
  },
  {
    name: "a watch tells that an entry has expired",
    denoSlow: "Deno sweeps once a minute",
    async run(t) {
      const kv = await t.open();
      // Long enough for a watch to begin on a busy machine.
      await kv.set(["a"], 1, { expireIn: 3000 });
      const reader = kv.watch([["a"]]).getReader();
      t.is((await reader.read()).value[0].value, 1);
      t.is((await reader.read()).value[0].versionstamp, null);
      await reader.cancel();
    },
  },
  {
    name: "what expired while the file was closed is gone when it opens",
    on: "shared",
    async run(t) {
      let kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 20 });
      await kv.set(["b"], 2);
      await t.sleep(40);
      kv = await t.reopen(kv);
      t.same(await t.ends(kv.list({ prefix: [] })), ["b"]);
    },
  },
  {
    name: "time that is left goes on after close and open",
    on: "shared",
    async run(t) {
      let kv = await t.open();
      await kv.set(["a"], 1, { expireIn: 3_600_000 });
      await kv.set(["b"], 1, { expireIn: 400 });
      kv = await t.reopen(kv);
      t.is(await t.value(kv, ["a"]), 1);
      await t.until(async () => (await t.stamp(kv, ["b"])) === null, "the expiry");
      t.is(await t.value(kv, ["a"]), 1);
    },
  },
];
