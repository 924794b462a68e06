// Duty: the class KvU64.

import { inspect } from "node:util";

export default [
  {
    name: "holds a bigint from 0 to 2^64 - 1",
    async run(t) {
      const kv = await t.open();
      for (const n of [0n, 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n]) {
        await kv.set(["n"], new t.KvU64(n));
        const back = await t.value(kv, ["n"]);
        t.ok(back instanceof t.KvU64);
        t.is(back.value, n);
      }
    },
  },
  {
    name: "value is an own, enumerable, frozen property",
    run(t) {
      const u64 = new t.KvU64(5n);
      t.same(Object.keys(u64), ["value"]);
      t.ok(Object.isFrozen(u64));
      t.throws(() => {
        u64.value = 6n;
      }, TypeError);
    },
  },
  {
    name: "turns into bigint, text and tag",
    run(t) {
      const u64 = new t.KvU64(5n);
      t.is(u64.valueOf(), 5n);
      t.is(u64.toString(), "5");
      t.is(`${u64}`, "5");
      t.is(u64 + 1n, 6n);
      t.ok(u64 < 6n && u64 == 5n);
      t.is(Object.prototype.toString.call(u64), "[object Deno.KvU64]");
      t.is(inspect(u64), "[Deno.KvU64: 5n]");
    },
  },
  {
    name: "does not turn into JSON",
    run(t) {
      t.throws(() => JSON.stringify(new t.KvU64(5n)), TypeError);
    },
  },
  {
    name: "another type is a TypeError",
    run(t) {
      for (const [value, type] of [
        [1, "number"],
        ["1", "string"],
        [undefined, "undefined"],
      ]) {
        const words = `Value must be a bigint: received ${type}`;
        t.throws(() => new t.KvU64(value), TypeError, words);
      }
      t.throws(() => new t.KvU64(null), TypeError, "Value must be a bigint");
    },
  },
  {
    name: "outside 64 bits is a RangeError",
    run(t) {
      t.throws(() => new t.KvU64(-1n), RangeError, "must be a positive bigint");
      t.throws(() => new t.KvU64(2n ** 64n), RangeError, "must fit in a 64-bit unsigned integer");
    },
  },
  {
    name: "needs new",
    run(t) {
      t.throws(() => t.KvU64(1n), TypeError);
    },
  },
];
