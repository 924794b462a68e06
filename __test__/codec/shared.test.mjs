// Objects that occur again, by the number of objects before them: few, listed and hashed ones are found in
// different ways, and how the first are kept depends on the value before.

import assert from "node:assert/strict";
import { test } from "node:test";
import { VALUE_DEPTH_MAX, hexOf, roundTrip } from "./codec.mjs";
import { assertSame } from "./graph.mjs";

/** Below, at and above the bounds of seen.ts: 8, 24 and 64 objects. */
const COUNTS = [1, 2, 7, 8, 9, 23, 24, 25, 26, 62, 63, 64, 65, 66, 130, 500];

/** An array of `count` objects. */
const objects = (count) => Array.from({ length: count }, (_, i) => ({ id: i }));

/** Every object occurs again, in another order, and the array itself does. */
function again(count) {
  const first = objects(count);
  return [first, [...first].reverse(), first, first[0], first[count - 1]];
}

test("every object of a value is found again, whatever value was written before", () => {
  for (const before of COUNTS) {
    for (const count of COUNTS) {
      roundTrip(objects(before));
      const value = again(count);
      const back = roundTrip(value);
      assertSame(back, value);
      assert.equal(back[2], back[0]);
      for (let i = 0; i < count; i++) assert.equal(back[1][count - 1 - i], back[0][i]);
      assert.equal(back[3], back[0][0]);
    }
  }
});

test("equal objects stay different ones", () => {
  for (const count of COUNTS) {
    const back = roundTrip([...objects(count), ...objects(count)]);
    assert.equal(new Set(back).size, 2 * count);
  }
});

test("the numbers of objects are right behind a value that failed", () => {
  for (const before of COUNTS) {
    for (const count of COUNTS) {
      assert.throws(() => roundTrip([objects(before), () => {}]), TypeError);
      assertSame(roundTrip(again(count)), again(count));
    }
  }
});

/** Short arrays of numbers: distinct ones, and all equal, so that they have one place (js/codec/value/leaves.ts). */
const PAIRS = {
  doubles: (i) => [i + 0.5, -i / 3],
  integers: (i) => [i, i * 1000, -i],
  "equal ones": () => [1.5, 2.5],
  "of any length": (i) => Array.from({ length: 1 + (i % 8) }, (_, k) => (i * k) / 8),
  "numbers and others": (i) => [i, i % 3 === 0 ? `s${i}` : i % 3 === 1 ? [i] : i],
};

test("short arrays of numbers are found again in values of every size", () => {
  for (const [form, make] of Object.entries(PAIRS)) {
    for (const count of [...COUNTS, 10_000]) {
      const arrays = Array.from({ length: count }, (_, i) => make(i));
      const value = { first: arrays, more: arrays.map((pair) => ({ pair })), last: arrays[0] };
      value.self = value;
      // A value is written in another way if the one before had many objects.
      roundTrip(1);
      roundTrip(objects(1));
      const alone = hexOf(value);
      roundTrip(objects(100));
      assert.equal(hexOf(value), alone, `${form}, ${count}`);
      roundTrip(objects(100));
      assertSame(roundTrip(value), value, `${form}, ${count}`);
    }
  }
});

test("short arrays of numbers with properties or holes are found again among many objects", () => {
  for (const change of [(array) => (array.name = 1), (array) => delete array[0]]) {
    const arrays = Array.from({ length: 100 }, (_, i) => [i, i + 0.5]);
    for (let i = 0; i < 100; i += 3) change(arrays[i]);
    const value = [arrays, [...arrays]];
    roundTrip(objects(100));
    assertSame(roundTrip(value), value);
  }
});

test("nesting is bounded for short arrays of numbers among many objects", () => {
  const nested = (levels) => {
    let value = [1];
    for (let i = 1; i < levels; i++) value = [value];
    return value;
  };
  roundTrip(objects(100));
  assertSame(roundTrip(nested(VALUE_DEPTH_MAX)), nested(VALUE_DEPTH_MAX));
  roundTrip(objects(100));
  assert.throws(() => roundTrip(nested(VALUE_DEPTH_MAX + 1)), RangeError);
});

test("views over one buffer are found among many objects", () => {
  for (const count of COUNTS) {
    const { buffer } = new Uint8Array([1, 2, 3, 4]);
    const value = [objects(count), new Uint8Array(buffer), new Uint16Array(buffer), buffer];
    const back = roundTrip([...value, value[0]]);
    assertSame(back, [...value, value[0]]);
    assert.equal(back[1].buffer, back[2].buffer);
    assert.equal(back[3], back[1].buffer);
    assert.equal(back[4], back[0]);
  }
});
