// Duty: sum, min and max against a model in JavaScript's own bigints and numbers, with and without
// bounds, on every kind of stored number.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { seeded } from "./random.mjs";

const U64_MAX = 2n ** 64n - 1n;
const STEPS = 600;
const REFUSED = Symbol("refused");

/** A bigint near something that matters. */
function anyBigint(random) {
  const near = random.pick([
    0n,
    1n,
    255n,
    2n ** 63n,
    U64_MAX,
    U64_MAX + 1n,
    2n ** 100n,
    2n ** 900n,
  ]);
  return random.pick([1n, -1n]) * near + BigInt(random.int(-3, 3));
}

const anyNumber = (random) =>
  random.pick([
    0,
    -0,
    1,
    -1.5,
    0.1,
    2 ** 53,
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    random.int(-9, 9),
  ]);

function anyStored(random) {
  return random.pick([
    () => undefined,
    () => anyBigint(random),
    () => new KvU64(BigInt.asUintN(64, anyBigint(random))),
    () => anyNumber(random),
    () => random.pick(["text", null, [1], NaN, Infinity]),
  ])();
}

/** What is stored after the call, or REFUSED. Written from the words of docs/writing.md. */
function expected(method, stored, n, options) {
  const { min, max, clamp } = options ?? {};
  const bounded = min !== undefined || max !== undefined || clamp === true;
  const combine = (a, b) => {
    if (method === "sum") return a + b;
    return (method === "min") === a < b ? a : b;
  };
  const within = (result) => {
    if (min !== undefined && result < min) return clamp ? min : REFUSED;
    if (max !== undefined && result > max) return clamp ? max : REFUSED;
    return result;
  };
  if (typeof n === "number") {
    if (stored !== undefined && typeof stored !== "number") return REFUSED;
    const number = method === "sum" ? combine : Math[method];
    const exact = stored === undefined ? n : number(stored, n);
    const result = within(exact);
    return result === REFUSED || !Number.isFinite(result) ? REFUSED : result;
  }
  const isU64 = n instanceof KvU64;
  const operand = isU64 ? n.value : n;
  const fits = (value) => value >= 0n && value <= U64_MAX;
  if (stored === undefined) {
    const result = within(operand);
    if (result === REFUSED) return REFUSED;
    if (isU64) return fits(result) ? new KvU64(result) : clampU64(result, options);
    return !bounded && fits(result) ? new KvU64(result) : result;
  }
  if (typeof stored === "bigint") return within(combine(stored, operand));
  if (!(stored instanceof KvU64)) return REFUSED;
  if (method === "sum" && !bounded && fits(operand)) {
    return new KvU64(BigInt.asUintN(64, stored.value + operand));
  }
  const result = within(combine(stored.value, operand));
  if (result === REFUSED) return REFUSED;
  return fits(result) ? new KvU64(result) : clampU64(result, options);
}

/** A result beyond a KvU64: at its nearest end if it may be clamped and the bounds allow that end. */
function clampU64(result, { min, max, clamp } = {}) {
  const end = result < 0n ? 0n : U64_MAX;
  const allowed = (min === undefined || end >= min) && (max === undefined || end <= max);
  return clamp && allowed ? new KvU64(end) : REFUSED;
}

function anyOptions(random, n) {
  if (random.chance(0.4)) return undefined;
  const draw = typeof n === "number" ? () => anyNumber(random) : () => anyBigint(random);
  const ends = [draw(), draw()].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return {
    min: random.chance(0.6) ? ends[0] : undefined,
    max: random.chance(0.6) ? ends[1] : undefined,
    clamp: random.pick([undefined, true, false]),
  };
}

test(`${STEPS} random calculations`, () =>
  seeded("arithmetic", async (random) => {
    const kv = await openKv(":memory:");
    for (let step = 0; step < STEPS; step++) {
      const stored = anyStored(random);
      const method = random.pick(["sum", "sum", "min", "max"]);
      const n = random.pick([
        () => anyBigint(random),
        () => new KvU64(BigInt.asUintN(64, anyBigint(random))),
        () => anyNumber(random),
      ])();
      const options = method === "sum" ? anyOptions(random, n) : undefined;
      const result = expected(method, stored, n, options);
      const told = { method, stored, n, options };
      await kv.delete(["n"]);
      if (stored !== undefined) await kv.set(["n"], stored);
      const before = await kv.get(["n"]);
      const commit = kv.atomic().set(["other"], step)[method](["n"], n, options).commit();
      if (result === REFUSED) {
        await assert.rejects(commit, undefined, JSON.stringify(told, print));
        assert.deepEqual(await kv.get(["n"]), before);
        assert.notEqual((await kv.get(["other"])).value, step, "nothing of the commit is there");
      } else {
        await commit;
        assert.deepStrictEqual((await kv.get(["n"])).value, result, JSON.stringify(told, print));
      }
    }
    await kv.close();
  }));

function print(_name, value) {
  return typeof value === "bigint" ? `${value}n` : value;
}
