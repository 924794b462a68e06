// KvU64, as Deno's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { encode, KvU64, roundTrip } from "./codec.mjs";

test("construction", () => {
  assert.throws(() => KvU64(1n), TypeError);
  for (const value of [1, "1", null, undefined, {}]) {
    assert.throws(() => new KvU64(value), {
      name: "TypeError",
      message: `Value must be a bigint: received ${typeof value}`,
    });
  }
  assert.throws(() => new KvU64(-1n), {
    name: "RangeError",
    message: "Value must be a positive bigint: received -1",
  });
  assert.throws(() => new KvU64(2n ** 64n), {
    name: "RangeError",
    message: "Value must fit in a 64-bit unsigned integer",
  });
});

test("behaviour", () => {
  const u64 = new KvU64(5n);
  assert.ok(Object.isFrozen(u64));
  assert.deepEqual(Object.keys(u64), ["value"]);
  assert.equal(u64.valueOf(), 5n);
  assert.equal(String(u64), "5");
  assert.equal(u64[Symbol.toStringTag], "Deno.KvU64");
  assert.ok(u64 + 1n === 6n && u64 > 4n && u64 == 5n);
  assert.throws(() => JSON.stringify(u64), TypeError);
  assert.equal(inspect(u64), "[Deno.KvU64: 5n]");
  assert.equal(inspect({ a: [u64] }), "{ a: [ [Deno.KvU64: 5n] ] }");
  assert.match(inspect(u64, { colors: true }), /\[Deno\.KvU64: 5n\]/);
});

test("storage", () => {
  for (const value of [0n, 1n, 255n, 2n ** 63n, 2n ** 64n - 1n]) {
    const { encoding, bytes } = encode(new KvU64(value));
    assert.equal(encoding, 2);
    assert.equal(bytes.readBigUInt64LE(), value);
    const back = roundTrip(new KvU64(value));
    assert.ok(back instanceof KvU64);
    assert.equal(back.value, value);
  }
});
