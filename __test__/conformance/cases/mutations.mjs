// Duty: mutate(): the same mutations as objects, and what is no mutation.

export default [
  {
    name: "set, delete, sum, min and max as objects",
    async run(t) {
      const kv = await t.open();
      await kv.set(["gone"], 1);
      const u64 = (n) => new t.KvU64(n);
      await kv
        .atomic()
        .mutate(
          { type: "set", key: ["set"], value: "v" },
          { type: "delete", key: ["gone"] },
          { type: "sum", key: ["sum"], value: u64(2n) },
          { type: "sum", key: ["sum"], value: u64(3n) },
        )
        .mutate({ type: "min", key: ["sum"], value: u64(4n) })
        .mutate({ type: "max", key: ["max"], value: u64(9n) })
        .commit();
      const entries = await t.all(kv.list({ prefix: [] }));
      t.same(
        entries.map((entry) => [entry.key[0], entry.value.value ?? entry.value]),
        [
          ["max", 9n],
          ["set", "v"],
          ["sum", 4n],
        ],
      );
    },
  },
  {
    name: "set of undefined is a value",
    async run(t) {
      const kv = await t.open();
      await kv
        .atomic()
        .mutate({ type: "set", key: ["a"], value: undefined })
        .commit();
      const entry = await kv.get(["a"]);
      t.is(entry.value, undefined);
      t.is(typeof entry.versionstamp, "string");
    },
  },
  {
    name: "an unknown type is a TypeError at the call",
    async run(t) {
      const kv = await t.open();
      for (const type of ["foo", undefined, null, 5, "SET"]) {
        const mutation = { type, key: ["a"], value: 1 };
        t.throws(() => kv.atomic().mutate(mutation), TypeError, "Invalid mutation type");
      }
      t.throws(() => kv.atomic().mutate({}), TypeError, "Invalid mutation type");
      t.throws(() => kv.atomic().mutate(null), TypeError);
    },
  },
  {
    name: "a missing value is a TypeError at the call",
    async run(t) {
      const kv = await t.open();
      for (const type of ["set", "sum", "min", "max"]) {
        const words = `Invalid mutation '${type}' without value`;
        t.throws(() => kv.atomic().mutate({ type, key: ["a"] }), TypeError, words);
      }
    },
  },
  {
    name: "an inherited value does not count",
    async run(t) {
      const kv = await t.open();
      const mutation = Object.create({ type: "set", key: ["a"], value: 1 });
      t.throws(() => kv.atomic().mutate(mutation), TypeError, "without value");
    },
  },
  {
    name: "delete with a value is a TypeError, with a falsy one it is not",
    async run(t) {
      const kv = await t.open();
      for (const value of [1, "x", {}, true]) {
        const mutation = { type: "delete", key: ["a"], value };
        t.throws(() => kv.atomic().mutate(mutation), TypeError, "'delete' with value");
      }
      for (const value of [undefined, null, 0, "", false]) {
        kv.atomic().mutate({ type: "delete", key: ["a"], value });
      }
    },
  },
  {
    name: "min and max refuse bigints, texts and bytes",
    async run(t) {
      const kv = await t.open();
      for (const type of ["min", "max"]) {
        for (const value of [5n, "5", new Uint8Array(8), { value: 5n }]) {
          const op = kv.atomic().mutate({ type, key: ["a"], value });
          const words = `Failed to perform '${type}' mutation on a non-U64 operand`;
          await t.rejects(async () => op.commit(), TypeError, words);
        }
      }
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "expireIn of a set is honoured and validated",
    async run(t) {
      const kv = await t.open();
      const set = (expireIn) => ({ type: "set", key: ["a"], value: 1, expireIn });
      await kv.atomic().mutate(set(60_000)).commit();
      t.is(await t.value(kv, ["a"]), 1);
      for (const expireIn of [-1, 1.5, NaN, Infinity]) {
        t.throws(() => kv.atomic().mutate(set(expireIn)), TypeError, "expireIn must be");
      }
    },
  },
  {
    name: "an expireIn of a set that is no number is ignored, and so is one of a sum",
    async run(t) {
      const kv = await t.open();
      for (const expireIn of ["0", null, 0n]) {
        await kv
          .atomic()
          .mutate({ type: "set", key: ["a"], value: 1, expireIn })
          .commit();
        t.is(await t.value(kv, ["a"]), 1);
      }
      const value = new t.KvU64(1n);
      await kv
        .atomic()
        .mutate({ type: "sum", key: ["n"], value, expireIn: 0 })
        .commit();
      t.is((await t.value(kv, ["n"])).value, 1n);
    },
  },
  {
    name: "a misspelt property is a TypeError at the call",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      const mutation = { type: "set", key: ["a"], value: 1, expiresIn: 5 };
      t.throws(() => kv.atomic().mutate(mutation), TypeError, "expiresIn");
    },
  },
];
