// Bytes that nobody wrote: a value or RangeError, soon, in bounded memory, and never anything else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CBOR, decodeKey, decodeValue, encode, vectors } from "./codec.mjs";
import { randomFrom, randomValue } from "./random.mjs";

const MUTATIONS = 10_000;
const INTERESTING = [
  0x00, 0x18, 0x1b, 0x3b, 0x5a, 0x5b, 0x7b, 0x80, 0x9a, 0x9b, 0xa1, 0xba, 0xbf, 0xc1, 0xc2, 0xd8,
  0xd9, 0xfb, 0xff, 0x1c, 0x1d,
];

const seeds = [
  ...vectors("values")
    .values.map(({ hex }) => Buffer.from(hex, "hex"))
    .filter(({ length }) => length < 600),
  ...Array.from({ length: 60 }, (_, i) => encode([randomValue(randomFrom(i + 9000))]).bytes),
];

function mutate(bytes, random) {
  const out = Buffer.from(bytes);
  for (let n = 1 + random.below(4); n > 0 && out.length > 0; n--) {
    const at = random.below(out.length);
    switch (random.below(4)) {
      case 0:
        out[at] ^= 1 << random.below(8);
        break;
      case 1:
        out[at] = random.pick(INTERESTING);
        break;
      case 2:
        out.copyWithin(at, random.below(out.length));
        break;
      default:
        return out.subarray(0, at);
    }
  }
  return out;
}

/** Reads the value; whatever is read must be writable and come back. */
function decodeAnything(bytes) {
  let value;
  try {
    value = decodeValue(CBOR, bytes, 0, bytes.length);
  } catch (error) {
    assert.ok(
      error instanceof RangeError && error.message === "could not deserialize value",
      `${bytes.toString("hex")}: ${error.stack}`,
    );
    return false;
  }
  // A date's zone, a blob's contents and the like have other tests; here it is enough that it is a
  // value.
  encode(value);
  return true;
}

test("mutated values", () => {
  const random = randomFrom(7);
  let read = 0;
  for (let i = 0; i < MUTATIONS; i++)
    if (decodeAnything(mutate(random.pick(seeds), random))) read++;
  assert.ok(read > 0 && read < MUTATIONS, `${read} of ${MUTATIONS} could be read`);
});

test("random bytes", () => {
  const random = randomFrom(8);
  for (let i = 0; i < 5000; i++) {
    decodeAnything(
      Buffer.from(
        Array.from({ length: random.below(40) }, () =>
          random.next() < 0.4 ? random.pick(INTERESTING) : random.below(256),
        ),
      ),
    );
  }
});

test("mutated keys", () => {
  const random = randomFrom(9);
  const keys = vectors("keys").keys.map(({ hex }) => Buffer.from(hex, "hex"));
  for (let i = 0; i < 5000; i++) {
    const bytes = mutate(random.pick(keys), random);
    try {
      decodeKey(bytes, 0, bytes.length);
    } catch (error) {
      assert.ok(error instanceof RangeError, `${bytes.toString("hex")}: ${error.stack}`);
    }
  }
});

test("a claimed length allocates nothing", () => {
  const claims = [
    "9affffffff",
    "9b001fffffffffffff",
    "baffffffff",
    "bb000fffffffffffff",
    "5affffffff",
    "5b001fffffffffffff",
    "7affffffff",
    "7b001fffffffffffff",
  ];
  const wrappers = [
    "",
    "d90102",
    "d90103",
    "d845",
    "81",
    "a161",
    "d81cd81b8265417272617900",
    "d81b826b4172726179427566666572",
  ];
  const before = process.memoryUsage();
  for (let round = 0; round < 50; round++) {
    for (const wrapper of wrappers) {
      for (const claim of claims) decodeAnything(Buffer.from(wrapper + claim, "hex"));
    }
  }
  const after = process.memoryUsage();
  assert.ok(after.rss - before.rss < 256 * 2 ** 20, "memory stayed bounded");
  // The longest array with nothing in it is a few bytes, and stays that.
  const sparse = decodeValue(CBOR, Buffer.from("d81b836541727261791affffffffa0", "hex"), 0, 15);
  assert.equal(sparse.length, 2 ** 32 - 1);
  assert.equal(encode(sparse).bytes.toString("hex"), "d81b836541727261791affffffffa0");
});

test("bytes beyond the value's end are not read", () => {
  const value = { name: "a text that goes on", list: [1, "two", 3.5], n: 70000 };
  const { bytes } = encode(value);
  // The rest of the value does follow in the buffer; the end says that it is not there.
  for (let i = 0; i < 20; i++) decodeValue(CBOR, bytes, 0, bytes.length);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => decodeValue(CBOR, bytes, 0, end), {
      name: "RangeError",
      message: "could not deserialize value",
    });
  }
  assert.throws(() => decodeValue(CBOR, bytes, 0, bytes.length + 1), RangeError);
});

test("no code of the user's runs while a value is read", () => {
  const { bytes } = encode({
    trap: 1,
    list: [1, 2],
    map: new Map([["trap", 2]]),
    error: new Error("m"),
    again: { trap: 3 },
  });
  Object.defineProperty(Object.prototype, "trap", {
    set: () => assert.fail("a setter was run"),
    get: () => assert.fail("a getter was run"),
    configurable: true,
  });
  try {
    for (let i = 0; i < 20; i++) {
      const value = decodeValue(CBOR, bytes, 0, bytes.length);
      assert.equal(Object.getOwnPropertyDescriptor(value, "trap").value, 1);
    }
  } finally {
    delete Object.prototype.trap;
  }
});

test("other encodings", () => {
  const bytes = Buffer.from("0100000000000000", "hex");
  assert.equal(decodeValue(2, bytes, 0, 8).value, 1n);
  for (const length of [0, 7])
    assert.throws(() => decodeValue(2, bytes, 0, length), {
      name: "RangeError",
      message: "could not deserialize value",
    });
  assert.deepEqual(decodeValue(3, bytes, 0, 0), new Uint8Array());
  assert.throws(() => decodeValue(4, bytes, 0, 8), {
    name: "TypeError",
    message: "The value encoding 4 is unknown.",
  });
});
