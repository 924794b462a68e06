// Packed arrays: which arrays are packed, and that they are read as what was written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Writer, decodeValue, encode, encodeValue, fromHex, hexOf, roundTrip } from "./codec.mjs";
import { assertSame } from "./graph.mjs";

/** The tag of a packed array with its name. */
const PACKED = "d81b82654172726179";

const list = (length, make) => Array.from({ length }, (_, i) => make(i));
const isPacked = (value) => hexOf(value, true).includes(PACKED);

function assertComesBack(value) {
  assertSame(roundTrip(value, true), value);
  const [packed, plain] = [encode(value, true).bytes, encode(value).bytes];
  assert.ok(packed.length <= plain.length, `${packed.length} bytes instead of ${plain.length}`);
  assertSame(decodeValue(67, packed, 0, packed.length), decodeValue(67, plain, 0, plain.length));
}

test("arrays of so many numbers are packed if that is not longer", () => {
  for (const length of [0, 1, 31, 32, 33, 400, 401, 1024, 1025, 3000, 65_536, 65_537, 70_001]) {
    const doubles = list(length, (i) => i + 0.5);
    assert.equal(isPacked(doubles), length >= 32, `${length}`);
    assertComesBack(doubles);
    assertComesBack(list(length, (i) => i * 1000));
    assertComesBack(list(length, (i) => i % 200));
    const small = list(length, (i) => i % 24);
    assert.equal(isPacked(small), false);
    assertComesBack(small);
  }
});

test("every class of elements, at its bounds", () => {
  const bounds = [-(2 ** 31), -32_768, -128, 0, 127, 255, 32_767, 65_535, 2 ** 31 - 1];
  for (const low of bounds) {
    for (const high of bounds) {
      for (const [least, most] of [
        [low, high],
        [low - 1, high],
        [low, high + 1],
      ]) {
        assertComesBack(list(40, (i) => (i % 2 === 0 ? least : most)));
        assertComesBack([...list(40, () => least), most]);
        assertComesBack([most, ...list(40, () => least)]);
        assertComesBack([...list(40, () => least), most, 0.5]);
      }
    }
  }
});

test("numbers that are no 32-bit integers, anywhere", () => {
  const special = [
    -0,
    Number.NaN,
    Infinity,
    -Infinity,
    5e-324,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    -(2 ** 53),
  ];
  for (const number of special) {
    for (const others of [() => 0.25, () => 300, (i) => i * 70_000]) {
      for (const at of [0, 1, 20, 39]) {
        const array = list(40, others);
        array[at] = number;
        assertComesBack(array);
      }
    }
    assertComesBack(list(40, () => number));
  }
});

test("NaN has one form, whatever its bits were", () => {
  const bits = new BigUint64Array(40).fill(0xfff8000000000001n);
  const array = [...new Float64Array(bits.buffer), 0.5];
  assert.ok(isPacked(array));
  assert.equal(hexOf(array, true).match(/000000000000f87f/g).length, 40);
  assertComesBack(array);
});

test("random arrays of numbers", () => {
  let seed = 7;
  const random = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
  const kinds = [
    () => Math.floor(random() * 30),
    () => Math.floor(random() * 300) - 150,
    () => Math.floor(random() * 2 ** 33) - 2 ** 32,
    () => Math.floor(random() * 2 ** 50),
    () => random(),
    () => -random() * 1e300,
  ];
  for (let round = 0; round < 600; round++) {
    const mixed = list(1 + (round % 3), () => kinds[Math.floor(random() * kinds.length)]);
    assertComesBack(list(20 + Math.floor(random() * 60), (i) => mixed[i % mixed.length]()));
  }
});

test("other arrays are not packed", () => {
  const make = () => list(40, (i) => i + 0.5);
  for (const item of [null, undefined, "1", 1n, [1], new Number(1), true]) {
    for (const at of [0, 20, 39]) {
      const array = make();
      array[at] = item;
      assert.equal(isPacked(array), false);
      assertComesBack(array);
    }
  }
  for (const length of [40, 500]) {
    const hole = list(length, (i) => i + 0.5);
    delete hole[length - 1];
    const property = Object.assign(
      list(length, (i) => i + 0.5),
      { extra: 1 },
    );
    for (const array of [hole, property]) {
      assert.equal(hexOf(array, true), hexOf(array));
      assertComesBack(array);
    }
  }
  class Numbers extends Array {}
  assert.equal(hexOf(Numbers.from(make()), true), hexOf(make(), true));
  assert.equal(hexOf(Object.freeze(make()), true), hexOf(make(), true));
});

test("an array that occurs twice is one array again", () => {
  const array = list(40, (i) => i + 0.5);
  const back = roundTrip({ a: array, b: [array, new Map([[array, array]])] }, true);
  assert.deepEqual(back.a, array);
  assert.equal(back.b[0], back.a);
  assert.equal(back.b[1].get(back.a), back.a);
  back.a[0] = "replaced";
  back.a.push(1);
  assert.equal(back.a.length, 41);
});

test("a packed array is as deep as a plain one", () => {
  for (const [levels, fits] of [
    [999, true],
    [1000, false],
  ]) {
    let value = list(40, (i) => i + 0.5);
    for (let i = 0; i < levels; i++) value = [value];
    if (!fits) {
      assert.throws(() => encode(value, true), RangeError);
      const inner = hexOf(
        list(40, (i) => i + 0.5),
        true,
      );
      assert.throws(() => fromHex("81".repeat(levels) + inner), RangeError);
    } else assert.equal(hexOf(roundTrip(value, true), true), hexOf(value, true));
  }
});

test("getters of an array that encode, or change it, while it is read", () => {
  const inner = list(2000, (i) => i + 0.25);
  for (const others of [0.5, 70_000]) {
    const array = list(40, () => others);
    Object.defineProperty(array, 20, {
      enumerable: true,
      configurable: true,
      get() {
        assert.equal(hexOf(inner, true), hexOf(inner, true));
        array[30] = 0.75;
        return others;
      },
    });
    const back = roundTrip({ array }, true);
    assert.deepEqual(
      back.array,
      list(40, (i) => (i === 30 ? 0.75 : others)),
    );
  }
});

test("a value over its limit is refused, and leaves the writer as it was", () => {
  const value = { a: list(1000, (i) => i + 0.5) };
  const { length } = encode(value, true).bytes;
  const writer = new Writer(64);
  writer.packs = true;
  writer.u8(7);
  assert.throws(() => encodeValue(writer, value, length - 1), TypeError);
  assert.equal(writer.pos, 1);
  encodeValue(writer, value, length);
  assert.equal(writer.pos, 1 + length);
});
