// Duty: sum, min and max: arithmetic, kinds of operands, and what they refuse.

/** A case: `start` stored, then sum(operand) through mutate gives `expected`. */
function summed(name, start, operand, expected) {
  return {
    name,
    async run(t) {
      const kv = await t.open();
      const given = start(t);
      if (given !== undefined) await kv.set(["n"], given);
      const mutation = { type: "sum", key: ["n"], value: operand(t) };
      const result = await kv.atomic().mutate(mutation).commit();
      t.same(await kv.get(["n"]), {
        key: ["n"],
        value: expected(t),
        versionstamp: result.versionstamp,
      });
    },
  };
}

/** A case: sum(operand) on `start` rejects with these words and leaves the value alone. */
function refused(name, start, operand, words) {
  return {
    name,
    async run(t) {
      const kv = await t.open();
      const given = start(t);
      if (given !== undefined) await kv.set(["n"], given);
      const before = await kv.get(["n"]);
      const mutation = { type: "sum", key: ["n"], value: operand(t) };
      await t.rejects(async () => kv.atomic().mutate(mutation).commit(), TypeError, words);
      t.same(await kv.get(["n"]), before);
    },
  };
}

const absent = () => undefined;
const u64 = (n) => (t) => new t.KvU64(n);
const just = (value) => () => value;
const notU64 = "Failed to perform 'sum' mutation on a non-U64 value in the database";
const notNumeric = "Some of the parameters are not valid V8 values";

export default [
  summed("u64 on nothing stores it", absent, u64(5n), u64(5n)),
  summed("u64 adds", u64(5n), u64(7n), u64(12n)),
  summed("u64 wraps at 2^64", u64(2n ** 64n - 1n), u64(3n), u64(2n)),
  summed("bigint on nothing stores it", absent, just(-3n), just(-3n)),
  summed("bigint adds beyond 64 bits", just(2n ** 70n), just(1n), just(2n ** 70n + 1n)),
  summed("bigint crosses zero", just(3n), just(-5n), just(-2n)),
  summed("bigint cancels out to 0n", just(2n ** 64n), just(-(2n ** 64n)), just(0n)),
  summed("bigint carries into another byte", just(255n), just(1n), just(256n)),
  summed("negative bigints add", just(-(2n ** 64n)), just(-1n), just(-(2n ** 64n) - 1n)),
  summed("number on nothing stores it", absent, just(1.5), just(1.5)),
  summed("number adds as floating point", just(0.1), just(0.2), just(0.1 + 0.2)),
  summed("whole numbers add", just(41), just(1), just(42)),
  summed("numbers beyond 2^53", just(2 ** 53), just(1), just(2 ** 53)),
  summed("numbers to Infinity", just(1e308), just(1e308), just(Infinity)),
  summed("NaN spreads", just(1), just(NaN), just(NaN)),
  summed("Infinity minus Infinity", just(Infinity), just(-Infinity), just(NaN)),
  summed("-0 and 0", just(-0), just(0), just(0)),
  summed("-0 and -0", just(-0), just(-0), just(-0)),
  summed("negative numbers", just(-1), just(-1.5), just(-2.5)),
  summed("a bigint of 64 bits adds to u64", u64(5n), just(7n), u64(12n)),
  summed("a bigint of 64 bits wraps u64", u64(5n), just(2n ** 64n - 1n), u64(4n)),
  refused("u64 on text", just("x"), u64(1n), notU64),
  refused("u64 on bytes", just(new Uint8Array(8)), u64(1n), notU64),
  refused("u64 on a bigint", just(5n), u64(1n), notU64),
  refused("u64 on a number", just(5), u64(1n), notU64),
  refused("u64 on null", just(null), u64(1n), notU64),
  refused("number on u64", u64(5n), just(1), "Cannot sum KvU64 with Number"),
  refused("negative bigint on u64", u64(5n), just(-1n), "Cannot sum KvU64 with BigInt"),
  refused("large bigint on u64", u64(5n), just(2n ** 64n), "Cannot sum KvU64 with BigInt"),
  refused("bigint on a number", just(5), just(1n), "Cannot sum Number with BigInt"),
  refused("number on a bigint", just(5n), just(1), "Cannot sum BigInt with Number"),
  refused("number on text", just("x"), just(1), "unsupported value type"),
  refused("bigint on an object", just({ a: 1 }), just(1n), "unsupported value type"),
  refused("number on bytes", just(new Uint8Array(8)), just(1), "unsupported value type"),
  refused("text on nothing", absent, just("x"), notNumeric),
  refused("text on a number", just(1), just("x"), notNumeric),
  refused("bytes on nothing", absent, just(new Uint8Array(8)), notNumeric),
  refused("an object on nothing", absent, just({ a: 1 }), notNumeric),
  refused("true on nothing", absent, just(true), notNumeric),
  refused("null on nothing", absent, just(null), notNumeric),
  refused("undefined on nothing", absent, just(undefined), notNumeric),
  {
    name: "sum, min and max of an operation take a bigint",
    async run(t) {
      const kv = await t.open();
      await kv.atomic().sum(["s"], 5n).min(["m"], 5n).max(["x"], 5n).commit();
      await kv.atomic().sum(["s"], 3n).min(["m"], 3n).max(["x"], 3n).commit();
      const entries = await t.all(kv.list({ prefix: [] }));
      t.same(
        entries.map((entry) => entry.value.value),
        [3n, 8n, 5n],
      );
      t.ok(entries.every((entry) => entry.value instanceof t.KvU64));
    },
  },
  {
    name: "min and max keep the other operand too",
    async run(t) {
      const kv = await t.open();
      await kv.atomic().min(["m"], 5n).max(["x"], 5n).commit();
      await kv.atomic().min(["m"], 9n).max(["x"], 9n).commit();
      t.is((await t.value(kv, ["m"])).value, 5n);
      t.is((await t.value(kv, ["x"])).value, 9n);
    },
  },
  {
    name: "min and max are unsigned",
    async run(t) {
      const kv = await t.open();
      await kv
        .atomic()
        .min(["m"], 2n ** 63n)
        .max(["x"], 2n ** 63n)
        .commit();
      await kv.atomic().min(["m"], 1n).max(["x"], 1n).commit();
      t.is((await t.value(kv, ["m"])).value, 1n);
      t.is((await t.value(kv, ["x"])).value, 2n ** 63n);
    },
  },
  {
    name: "min and max refuse a stored value that is no u64",
    async run(t) {
      const kv = await t.open();
      await kv.set(["n"], 5n);
      await kv.set(["text"], "no number");
      for (const name of ["min", "max"]) {
        const words = `Failed to perform '${name}' mutation on a non-U64 value in the database`;
        const mutation = { type: name, key: ["n"], value: new t.KvU64(1n) };
        await t.rejects(() => kv.atomic().mutate(mutation).commit(), TypeError, words);
        await t.rejects(() => kv.atomic()[name](["text"], 1n).commit(), TypeError, words);
      }
      t.is(await t.value(kv, ["n"]), 5n);
    },
  },
  {
    name: "sum, min and max of an operation check their operand at the call",
    async run(t) {
      const op = (await t.open()).atomic();
      for (const name of ["sum", "min", "max"]) {
        t.throws(() => op[name](["a"], "1"), TypeError, "Value must be a bigint: received string");
        t.throws(() => op[name](["a"]), TypeError, "Value must be a bigint: received undefined");
      }
    },
  },
  {
    name: "sum, min and max of an operation go with every kind of number",
    denoDiffers: "Deno's methods take bigints within 0…2^64 − 1 only, and only KvU64s are stored",
    async run(t) {
      const kv = await t.open();
      await kv.set(["u64"], new t.KvU64(5n));
      await kv.set(["bigint"], 2n ** 70n);
      await kv.set(["number"], 1.5);
      await kv.atomic().sum(["u64"], -2n).sum(["bigint"], 1n).sum(["number"], 1).commit();
      t.is((await t.value(kv, ["u64"])).value, 3n);
      t.is(await t.value(kv, ["bigint"]), 2n ** 70n + 1n);
      t.is(await t.value(kv, ["number"]), 2.5);
      await kv
        .atomic()
        .min(["bigint"], -1n)
        .max(["number"], 9)
        .max(["new"], 2n ** 64n)
        .commit();
      t.is(await t.value(kv, ["bigint"]), -1n);
      t.is(await t.value(kv, ["number"]), 9);
      t.is(await t.value(kv, ["new"]), 2n ** 64n);
      await t.rejects(() => kv.atomic().sum(["u64"], -4n).commit(), RangeError, "KvU64");
      const advice = "store a bigint in place of the KvU64 to allow it";
      await t.rejects(() => kv.atomic().min(["u64"], -4n).commit(), RangeError, advice);
      await t.rejects(
        () =>
          kv
            .atomic()
            .max(["u64"], 2n ** 64n)
            .commit(),
        RangeError,
        advice,
      );
    },
  },
  {
    name: "a sum gives its key a new versionstamp even when nothing changes",
    async run(t) {
      const kv = await t.open();
      const first = await kv.atomic().sum(["n"], 0n).commit();
      const second = await kv.atomic().sum(["n"], 0n).commit();
      t.ok(second.versionstamp > first.versionstamp);
      t.is(await t.stamp(kv, ["n"]), second.versionstamp);
    },
  },
  {
    name: "200 sums at once are exact",
    async run(t) {
      const kv = await t.open();
      await Promise.all(Array.from({ length: 200 }, () => kv.atomic().sum(["n"], 1n).commit()));
      t.is((await t.value(kv, ["n"])).value, 200n);
    },
  },
];
