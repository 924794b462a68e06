// Duty: checks: what they compare, what a lost one answers, what is no check.

export default [
  {
    name: "a check that holds lets the commit through",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const entry = await kv.get(["a"]);
      t.is((await kv.atomic().check(entry).set(["a"], 2).commit()).ok, true);
      t.is(await t.value(kv, ["a"]), 2);
    },
  },
  {
    name: "a check that fails answers ok: false and changes nothing",
    async run(t) {
      const kv = await t.open();
      const old = await kv.set(["a"], 1);
      const { versionstamp } = await kv.set(["a"], 2);
      const op = kv
        .atomic()
        .check({ key: ["a"], versionstamp: old.versionstamp })
        .set(["a"], 3)
        .set(["b"], 3)
        .enqueue("never");
      t.is((await op.commit()).ok, false);
      t.is(await t.stamp(kv, ["a"]), versionstamp);
      t.is(await t.stamp(kv, ["b"]), null);
    },
  },
  {
    name: "null and undefined mean absent",
    async run(t) {
      const kv = await t.open();
      const create = (versionstamp) =>
        kv
          .atomic()
          .check({ key: ["a"], versionstamp })
          .set(["a"], 1)
          .commit();
      t.is((await create(null)).ok, true);
      t.is((await create(null)).ok, false);
      t.is((await create(undefined)).ok, false);
      await kv.delete(["a"]);
      t.is((await create(undefined)).ok, true);
    },
  },
  {
    name: "a check may leave the versionstamp out",
    async run(t) {
      const kv = await t.open();
      t.is(
        (
          await kv
            .atomic()
            .check({ key: ["a"] })
            .set(["a"], 1)
            .commit()
        ).ok,
        true,
      );
      t.is(
        (
          await kv
            .atomic()
            .check({ key: ["a"] })
            .set(["a"], 2)
            .commit()
        ).ok,
        false,
      );
    },
  },
  {
    name: "a versionstamp does not fit an absent key",
    async run(t) {
      const kv = await t.open();
      const { versionstamp } = await kv.set(["b"], 1);
      t.is(
        (
          await kv
            .atomic()
            .check({ key: ["a"], versionstamp })
            .commit()
        ).ok,
        false,
      );
    },
  },
  {
    name: "a refused commit names the checks that failed",
    denoDiffers: "Deno's result is { ok: false } and no more",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const a = await kv.get(["a"]);
      const wrong = { key: ["a"], versionstamp: null };
      t.same(await kv.atomic().check(a, wrong).check(wrong).commit(), {
        ok: false,
        failed: [1, 2],
      });
    },
  },
  {
    name: "all checks must hold, duplicates and several arguments too",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const a = await kv.get(["a"]);
      const absent = { key: ["b"], versionstamp: null };
      t.is((await kv.atomic().check(a, a, absent).check(absent).commit()).ok, true);
      const wrong = { key: ["a"], versionstamp: null };
      t.is((await kv.atomic().check(a, wrong).commit()).ok, false);
      t.is((await kv.atomic().check(a).check(absent).check(wrong).commit()).ok, false);
    },
  },
  {
    name: "checks come before mutations, wherever they are written",
    async run(t) {
      const kv = await t.open();
      const op = kv
        .atomic()
        .set(["a"], 1)
        .check({ key: ["a"], versionstamp: null });
      t.is((await op.commit()).ok, true);
      t.is((await op.commit()).ok, false);
    },
  },
  {
    name: "a versionstamp may be in upper case",
    async run(t) {
      const kv = await t.open();
      let versionstamp = "";
      while (!/[a-f]/.test(versionstamp)) ({ versionstamp } = await kv.set(["a"], 1));
      const upper = { key: ["a"], versionstamp: versionstamp.toUpperCase() };
      t.is((await kv.atomic().check(upper).commit()).ok, true);
    },
  },
  {
    name: "another string is no versionstamp",
    async run(t) {
      const kv = await t.open();
      const bad = ["", "zz", "0", "0".repeat(19), "0".repeat(21), "g".repeat(20), " ".repeat(20)];
      for (const versionstamp of bad) {
        const op = kv.atomic().check({ key: ["a"], versionstamp });
        await t.rejects(() => op.commit(), TypeError, "Invalid check");
      }
    },
  },
  {
    name: "another type is no versionstamp",
    async run(t) {
      const kv = await t.open();
      for (const versionstamp of [5, 5n, {}, true]) {
        const op = kv.atomic().check({ key: ["a"], versionstamp });
        await t.rejects(async () => op.commit(), TypeError);
      }
    },
  },
  {
    name: "null is no check",
    async run(t) {
      const kv = await t.open();
      t.throws(() => kv.atomic().check(null), TypeError);
      t.throws(() => kv.atomic().check(undefined), TypeError);
    },
  },
  {
    name: "deleting and setting again changes what a check compares",
    async run(t) {
      const kv = await t.open();
      await kv.set(["a"], 1);
      const entry = await kv.get(["a"]);
      await kv.delete(["a"]);
      t.is((await kv.atomic().check(entry).commit()).ok, false);
      await kv.set(["a"], 1);
      t.is((await kv.atomic().check(entry).commit()).ok, false);
    },
  },
  {
    name: "a check alone commits and gives a versionstamp",
    async run(t) {
      const kv = await t.open();
      const { versionstamp } = await kv.set(["a"], 1);
      const result = await kv
        .atomic()
        .check({ key: ["a"], versionstamp })
        .commit();
      t.ok(result.ok && result.versionstamp > versionstamp);
      t.is(await t.stamp(kv, ["a"]), versionstamp);
    },
  },
  {
    name: "check-and-set from many at once loses no update",
    async run(t) {
      const kv = await t.open();
      await kv.set(["n"], 0);
      const add = async () => {
        for (;;) {
          const entry = await kv.get(["n"]);
          const op = kv
            .atomic()
            .check(entry)
            .set(["n"], entry.value + 1);
          if ((await op.commit()).ok) return;
        }
      };
      await Promise.all(Array.from({ length: 16 }, add));
      t.is(await t.value(kv, ["n"]), 16);
    },
  },
  {
    name: "one of many at once creates",
    async run(t) {
      const kv = await t.open();
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          kv
            .atomic()
            .check({ key: ["a"], versionstamp: null })
            .set(["a"], i)
            .commit(),
        ),
      );
      t.is(results.filter((result) => result.ok).length, 1);
      t.is(results[await t.value(kv, ["a"])].ok, true);
    },
  },
];
