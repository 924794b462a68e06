// Arrays of every length and kind: the same bytes whether or not they are checked and written as arrays
// of numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serialize } from "node:v8";
import { decodeValue, encode, fromHex, hexOf, roundTrip } from "./codec.mjs";
import { assertSame } from "./graph.mjs";

/** On both sides of every bound of js/codec/value/dense.ts, and far above. */
const LENGTHS = [0, 1, 8, 9, 63, 64, 65, 80, 81, 400, 401, 3000];

const NUMBERS = [
  0,
  -0,
  1,
  23,
  24,
  255,
  256,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  -1,
  -24,
  -25,
  -256,
  -257,
  -(2 ** 32),
  -Number.MAX_SAFE_INTEGER,
  -Number.MAX_SAFE_INTEGER - 1,
  0.5,
  -0.5,
  5e-324,
  1e300,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
];

/** Each item on its own, so that no path for arrays is taken. */
const itemByItem = (array) => array.map((item) => hexOf(item)).join("");

test("numbers in arrays have the bytes of numbers alone", () => {
  for (const length of LENGTHS) {
    for (const start of [0, 3, 23]) {
      const array = Array.from({ length }, (_, i) => NUMBERS[(i + start) % NUMBERS.length]);
      assert.ok(hexOf(array).endsWith(itemByItem(array)));
      assertSame(roundTrip(array), array);
      const mixed = array.flatMap((item, i) => (i % 7 === 3 ? [item, "x", [item]] : [item]));
      assert.ok(hexOf(mixed).endsWith(itemByItem(mixed)));
      assertSame(roundTrip(mixed), mixed);
    }
  }
  for (const number of NUMBERS) {
    const array = new Array(500).fill(number);
    assertSame(roundTrip(array), array);
  }
});

test("holes and properties in arrays of every length and kind of item", () => {
  const kinds = [(i) => i, (i) => i + 0.5, (i) => `s${i}`, (i) => ({ i }), () => undefined];
  for (const length of LENGTHS) {
    for (const kind of kinds) {
      const make = () => Array.from({ length }, (_, i) => kind(i));
      assertSame(roundTrip(make()), make());
      for (const name of ["extra", "", "-1", "1.5", "4294967295", "constructor"]) {
        for (const value of [undefined, 1, { a: 1 }]) {
          const array = make();
          array[name] = value;
          const back = roundTrip(array);
          assertSame(back, array);
          assert.deepEqual(Object.keys(back), Object.keys(array));
          // As many properties as holes.
          if (length < 3) continue;
          delete array[length >> 1];
          assert.deepEqual(Object.keys(roundTrip(array)), Object.keys(array));
        }
      }
      for (const at of [0, length >> 1, length - 1]) {
        if (length === 0) continue;
        const array = make();
        delete array[at];
        const back = roundTrip(array);
        assert.equal(back.length, length);
        assert.deepEqual(Object.keys(back), Object.keys(array));
      }
    }
  }
});

test("properties that are not stored, and classes of arrays", () => {
  class Numbers extends Array {}
  for (const length of LENGTHS) {
    const plain = hexOf(new Array(length).fill(1.5));
    const make = () => new Array(length).fill(1.5);
    const hidden = make();
    Object.defineProperty(hidden, "hidden", { value: 1, enumerable: false });
    hidden[Symbol("s")] = 1;
    assert.equal(hexOf(hidden), plain);
    assert.equal(hexOf(Numbers.from(make())), plain);
    assert.equal(hexOf(Object.setPrototypeOf(make(), null)), plain);
    assert.equal(hexOf(Object.freeze(make())), plain);
    let calls = 0;
    const tagged = make();
    for (const name of [Symbol.toStringTag, "constructor"]) {
      Object.defineProperty(tagged, name, { get: () => calls++, enumerable: false });
    }
    assert.equal(hexOf(tagged), plain);
    assert.equal(calls, 0, "no code of the caller runs");
  }
});

test("arrays that shrink while they are written", () => {
  for (const length of [20, 1000]) {
    const array = new Array(length).fill(2);
    array[5] = {
      get shrink() {
        array.length = 8;
        return 1;
      },
    };
    const back = roundTrip(array);
    assert.equal(back.length, length);
    assert.deepEqual(back.slice(0, 8), [2, 2, 2, 2, 2, { shrink: 1 }, 2, 2]);
  }
});

test("wrong numbers in arrays are refused as they are alone", () => {
  const wrong = [
    "1800",
    "1900ff",
    "1a0000ffff",
    "1b00000000ffffffff",
    "1b0020000000000000",
    "fb3ff0000000000000",
    "fb0000000000000000",
    "fbc330000000000000".replace("c330", "433f"),
    "fb7ff8000000000001",
    "fbfff8000000000000",
    "f93c00",
    "fa3fc00000",
  ];
  for (const hex of wrong) {
    assert.throws(() => fromHex(hex), RangeError, hex);
    for (const before of [0, 3, 600]) {
      const head = before < 24 ? (0x80 + before + 1).toString(16) : "990259";
      assert.throws(() => fromHex(head + "01".repeat(before) + hex), RangeError, hex);
    }
  }
  const { bytes } = encode(Array.from({ length: 600 }, (_, i) => i * 1.25));
  for (let end = bytes.length - 20; end < bytes.length; end++) {
    assert.throws(() => decodeValue(67, Buffer.from(bytes.subarray(0, end)), 0, end), RangeError);
    assert.throws(() => decodeValue(67, bytes, 0, end), RangeError);
  }
});

/** The getters of the array, in the order in which `run` calls them. */
function callsOf(run, { length, isGetter, item, change }) {
  const calls = [];
  const array = Array.from({ length }, (_, i) => item(i, calls));
  for (let i = 0; i < length; i++) {
    if (!isGetter(i)) continue;
    const value = array[i];
    const get = () => {
      calls.push(i);
      return value;
    };
    Object.defineProperty(array, i, { get, enumerable: true, configurable: true });
  }
  change?.(array, calls);
  run(array);
  return calls;
}

test("getters of the elements of an array run once each, in the order of V8", () => {
  const objects = (i, calls) => ({
    get inner() {
      calls.push(`inner ${i}`);
      return i;
    },
  });
  const items = {
    objects,
    ints: (i) => i * 1000,
    doubles: (i) => i + 0.5,
    texts: (i) => `s${i}`,
    "numbers, then text": (i) => (i % 40 < 35 ? i + 0.5 : `s${i}`),
    "integers, then text": (i) => (i % 40 < 35 ? i : `s${i}`),
  };
  const getters = {
    all: () => true,
    "the first": (i) => i === 0,
    "every other": (i) => i % 2 === 1,
    "the ends": (i) => i % 40 > 33,
  };
  const changes = {
    none: undefined,
    "a property": (array, calls) => {
      const get = () => calls.push("property");
      Object.defineProperty(array, "more", { get, enumerable: true });
    },
    "a hole": (array) => delete array[3],
  };
  for (const length of [4, 8, ...LENGTHS.filter((length) => length > 8 && length < 500)]) {
    for (const [form, item] of Object.entries(items)) {
      for (const [which, isGetter] of Object.entries(getters)) {
        for (const [changed, change] of Object.entries(changes)) {
          const options = { length, isGetter, item, change };
          const expected = callsOf(serialize, options);
          const isCopied = length > 8 && length <= 400;
          const assertOrder = (calls) => {
            if (!isCopied) return assert.deepEqual(calls, expected, about);
            // Where the elements are copied at first, their getters run before those inside of them.
            const isInside = (call) => typeof call === "string" && call.startsWith("inner");
            for (const which of [isInside, (call) => !isInside(call)])
              assert.deepEqual(calls.filter(which), expected.filter(which), about);
          };
          const about = `${length} ${form}, getters: ${which}, changed: ${changed}`;
          for (const packs of [false, true])
            assertOrder(callsOf((array) => encode(array, packs), options));
        }
      }
    }
  }
});
