// Random values and keys from a seed, so that a failure can be seen again.

/** A generator of numbers in [0, 1), by mulberry32. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  const pick = (list) => list[below(list.length)];
  return { next, below, pick };
}

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  23,
  24,
  255,
  256,
  65535,
  65536,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  2 ** 53,
  0.1,
  -1.5,
  1e300,
  5e-324,
  NaN,
  Infinity,
  -Infinity,
];
const BIGINTS = [
  0n,
  1n,
  -1n,
  255n,
  -256n,
  2n ** 63n,
  -(2n ** 63n),
  2n ** 64n - 1n,
  2n ** 64n,
  -(2n ** 64n),
  2n ** 111n,
  2n ** 112n - 1n,
  2n ** 128n,
  -(2n ** 128n) - 1n,
  3n ** 400n,
];
const PIECES = [
  "a",
  "key",
  "lorem ipsum ",
  "\0",
  "é",
  "ß",
  "日本",
  "😀",
  "\ud800",
  "\udc00",
  "\u2028",
  "\ufeff",
  "\ufffd",
  "x".repeat(30),
  "y".repeat(300),
];
const KEYS = [
  "id",
  "name",
  "a",
  "b",
  "__proto__",
  "constructor",
  "toString",
  "0",
  "1",
  "10",
  "-1",
  "",
  "é",
  "日本",
  "length",
  "then",
  "\ud800",
  "a long key that does not fit a single byte",
];

export function randomText(random) {
  let text = "";
  for (let n = random.below(5); n > 0; n--) text += random.pick(PIECES);
  return text;
}

/**
 * A structured value: everything that has an equal after a structured clone. `budget.left` bounds
 * its size. Objects made so far are used again now and then, so that there are shared references
 * and cycles.
 */
export function randomValue(random, budget = { left: 60 }, pool = []) {
  budget.left--;
  if (pool.length > 0 && random.next() < 0.08) return random.pick(pool);
  const kind = budget.left <= 0 ? random.below(8) : random.below(24);
  const keep = (object) => {
    pool.push(object);
    return object;
  };
  const inner = () => randomValue(random, budget, pool);
  const some = () => random.below(6);
  switch (kind) {
    case 0:
      return undefined;
    case 1:
      return null;
    case 2:
      return random.next() < 0.5;
    case 3:
      return random.pick(NUMBERS);
    case 4:
      return Math.trunc((random.next() - 0.5) * 2 ** random.below(60));
    case 5:
      return random.pick(BIGINTS);
    case 6:
    case 7:
      return randomText(random);
    case 8:
      return keep(
        new Date(random.next() < 0.1 ? NaN : Math.trunc((random.next() - 0.5) * 2 * 8.64e15)),
      );
    case 9:
      return keep(
        new RegExp(
          random.pick(["a", "\\/", "[b-c]+", "", "é"]),
          random.pick(["", "g", "iu", "dgimsuy"]),
        ),
      );
    case 10:
      return keep(Object(random.pick([true, false, 1.5, -0, "text", "", 5n])));
    case 11: {
      const error = keep(
        new (random.pick([Error, RangeError, TypeError, SyntaxError]))(randomText(random)),
      );
      if (random.next() < 0.5)
        Object.defineProperty(error, "cause", {
          value: inner(),
          configurable: true,
          writable: true,
        });
      return error;
    }
    case 12:
      return keep(Uint8Array.from({ length: random.below(100) }, () => random.below(256)));
    case 13: {
      const View = random.pick([
        Int8Array,
        Uint8ClampedArray,
        Int16Array,
        Uint16Array,
        Int32Array,
        Uint32Array,
        Float32Array,
        Float64Array,
        BigInt64Array,
        BigUint64Array,
      ]);
      const view = keep(new View(random.below(9)));
      new Uint8Array(view.buffer).forEach((_, i, bytes) => (bytes[i] = random.below(64)));
      return view;
    }
    case 14: {
      const buffer = keep(new ArrayBuffer(16));
      new Uint8Array(buffer)[random.below(16)] = 7;
      // Views of one buffer, in any order with the buffer itself.
      const views = [
        new Uint8Array(buffer, 4, 8),
        new Uint16Array(buffer, 2),
        new DataView(buffer, 1, 9),
        buffer,
      ];
      return [random.pick(views), random.pick(views), buffer];
    }
    case 15: {
      const map = keep(new Map());
      for (let n = some(); n > 0; n--) map.set(inner(), inner());
      return map;
    }
    case 16: {
      const set = keep(new Set());
      for (let n = some(); n > 0; n--) set.add(inner());
      return set;
    }
    case 17: {
      const sparse = keep(new Array(random.below(8)));
      for (let n = some(); n > 0; n--) sparse[random.below(12)] = inner();
      if (random.next() < 0.5) sparse[random.pick(["extra", "name", "-1"])] = inner();
      return sparse;
    }
    case 18:
    case 19:
    case 20: {
      const array = keep([]);
      const length = random.next() < 0.2 ? 12 : some();
      for (let n = 0; n < length; n++) array.push(inner());
      return array;
    }
    default: {
      const object = keep({});
      for (let n = some(); n > 0; n--) {
        Object.defineProperty(object, random.pick(KEYS), {
          value: inner(),
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
      return object;
    }
  }
}

/** A key of up to four parts, many of them close to each other. */
export function randomKey(random) {
  return Array.from({ length: 1 + random.below(4) }, () => {
    switch (random.below(5)) {
      case 0:
        return Uint8Array.from({ length: random.below(4) }, () => random.pick([0, 1, 254, 255]));
      case 1:
        return random.pick([
          "",
          "a",
          "b",
          "ab",
          "a\0",
          "a\0b",
          "\0",
          "é",
          "日",
          "😀",
          "\ud800",
          "~",
          "\x7f",
          "z".repeat(random.below(70)),
        ]);
      case 2:
        return random.pick(BIGINTS) + BigInt(random.below(3) - 1);
      case 3:
        return random.next() < 0.5
          ? random.pick(NUMBERS)
          : (random.next() - 0.5) * 2 ** random.below(60);
      default:
        return random.next() < 0.5;
    }
  });
}
