// Duty: set: its result, overwriting, order, and the refusal of wrong arguments.

export default [
  {
    name: "answers ok and a versionstamp of 20 hex digits",
    async run(t) {
      const kv = await t.open();
      const result = await kv.set(["a"], 1);
      t.same(Object.keys(result), ["ok", "versionstamp"]);
      t.is(result.ok, true);
      t.match(result.versionstamp, /^[0-9a-f]{20}$/);
      t.is(await t.stamp(kv, ["a"]), result.versionstamp);
    },
  },
  {
    name: "overwrites value and versionstamp, whatever the types",
    async run(t) {
      const kv = await t.open();
      let last = "";
      for (const value of [1, "two", new t.KvU64(3n), new Uint8Array([4]), { five: 5 }, null]) {
        const { versionstamp } = await kv.set(["a"], value);
        const entry = await kv.get(["a"]);
        t.same(entry.value, value);
        t.is(entry.versionstamp, versionstamp);
        t.ok(versionstamp > last, "versionstamps rise");
        last = versionstamp;
      }
      t.is((await t.all(kv.list({ prefix: [] }))).length, 1);
    },
  },
  {
    name: "undefined is stored when it is given",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], undefined);
      const entry = await kv.get(["a"]);
      t.is(entry.value, undefined);
      t.is(typeof entry.versionstamp, "string");
    },
  },
  {
    name: "a call without a value is a TypeError that says what to write",
    denoDiffers: "Deno stores undefined, which nobody who forgets the value means",
    async run(t) {
      const kv = await t.open();
      await t.rejects(() => kv.set(["a"]), TypeError, "value is missing: write kv.set(key, value)");
      t.throws(() => kv.atomic().set(["a"]), TypeError, "write atomic().set(key, value)");
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "a name that other stores have for expireIn is a TypeError that says what to write",
    denoDiffers: "Deno ignores it, and the entry lives for ever",
    async run(t) {
      const kv = await t.open();
      const names = {
        ttl: "write expireIn: milliseconds",
        px: "write expireIn: milliseconds",
        ex: "write expireIn: seconds * 1000",
        expirationTtl: "write expireIn: seconds * 1000",
        nx: "check({ key, versionstamp: null })",
      };
      for (const [name, words] of Object.entries(names)) {
        await t.rejects(() => kv.set(["a"], 1, { [name]: 5 }), TypeError, words);
        t.throws(() => kv.atomic().set(["a"], 1, { [name]: 5 }), TypeError, words);
        const mutation = { type: "set", key: ["a"], value: 1, [name]: 5 };
        t.throws(() => kv.atomic().mutate(mutation), TypeError, words);
        // It is no option of a read either.
        await t.rejects(() => kv.get(["a"], { [name]: 5 }), TypeError, `'${name}'`);
      }
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "null and undefined options are none",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1, null);
      await kv.set(["a"], 2, undefined);
      await kv.set(["a"], 3, { expireIn: undefined });
      t.is(await t.value(kv, ["a"]), 3);
    },
  },
  {
    name: "a misspelt option is a TypeError that names it",
    denoDiffers: "Deno ignores every option it does not know, and the slip goes unseen",
    async run(t) {
      const kv = await t.open();
      await t.rejects(() => kv.set(["a"], 1, { expiresIn: 5 }), TypeError, "expiresIn");
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "sets that are not awaited happen in the order of the calls",
    async run(t) {
      const kv = await t.open();
      const results = await Promise.all(Array.from({ length: 100 }, (_, i) => kv.set(["a"], i)));
      t.is(await t.value(kv, ["a"]), 99);
      const stamps = results.map((result) => result.versionstamp);
      t.same(stamps, [...new Set(stamps)].sort());
    },
  },
  {
    name: "500 sets at once all arrive",
    async run(t) {
      const kv = await t.open();
      await Promise.all(Array.from({ length: 500 }, (_, i) => kv.set(["n", i], { i })));
      const entries = await t.all(kv.list({ prefix: ["n"] }));
      t.same(
        entries.map((entry) => entry.value.i),
        Array.from({ length: 500 }, (_, i) => i),
      );
      t.is(new Set(entries.map((entry) => entry.versionstamp)).size, 500, "versionstamps");
    },
  },
  {
    name: "a set that fails leaves nothing",
    async run(t) {
      const kv = await t.open();
      await t.rejects(() => kv.set(["a"], () => {}), TypeError, "could not be cloned");
      await t.rejects(() => kv.set(["a"], new Uint8Array(65537)), TypeError);
      t.is(await t.stamp(kv, ["a"]), null);
    },
  },
  {
    name: "one bad set among good ones rejects alone",
    async run(t) {
      const kv = await t.open();
      const results = await Promise.allSettled([
        kv.set(["a"], 1),
        kv.set([], 2),
        kv.set(["c"], 3),
        kv.set(["d"], Symbol("x")),
        kv.set(["e"], 5),
      ]);
      t.same(
        results.map((result) => result.status),
        ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"],
      );
      t.same(await t.ends(kv.list({ prefix: [] })), ["a", "c", "e"]);
    },
  },
];
