// Duty: random keys, and their order by meaning rather than by bytes: a second opinion on both
// key codecs.

/** Numbers near which codecs go wrong. */
const numbers = [0, -0, 1, -1, 0.5, 255, 256, 2 ** 31, 2 ** 53, 5e-324, -5e-324, 1e308, Infinity];
const bigints = [0n, 1n, 255n, 256n, 65535n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n, 2n ** 72n];

export function randomPart(random) {
  switch (random.int(0, 7)) {
    case 0:
      return random.bytes(random.int(0, 6)).map((byte) => (random.chance(0.3) ? 0 : byte));
    case 1:
    case 2:
      return random.text(6);
    case 3:
      return (random.chance(0.5) ? -1n : 1n) * random.pick(bigints);
    case 4:
      return random.bigint(random.chance(0.9) ? 10 : 200);
    case 5:
      return (random.chance(0.3) ? -1 : 1) * random.pick(numbers);
    case 6:
      return positiveNaN(random.double());
    default:
      return random.chance(0.5);
  }
}

export function randomKey(random, partsMax = 4) {
  return random.list(random.int(1, partsMax), () => randomPart(random));
}

/** JavaScript cannot see the sign of NaN, a key can: the tests use one of the two. */
function positiveNaN(number) {
  return Number.isNaN(number) ? NaN : number;
}

/** Negative, zero or positive: the order that docs/format.md promises. */
export function compareKeys(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = comparePart(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const rank = (part) =>
  ({ object: 0, string: 1, bigint: 2, number: 3, boolean: part ? 5 : 4 })[typeof part];

function comparePart(a, b) {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  switch (typeof a) {
    case "object":
      return compareLists(a, b);
    case "string":
      return compareLists(
        [...a].map((letter) => letter.codePointAt(0)),
        [...b].map((letter) => letter.codePointAt(0)),
      );
    case "bigint":
      return a < b ? -1 : a > b ? 1 : 0;
    case "number":
      return compareNumbers(a, b);
    default:
      return 0;
  }
}

function compareNumbers(a, b) {
  if (Object.is(a, b)) return 0;
  if (Number.isNaN(a)) return 1;
  if (Number.isNaN(b)) return -1;
  if (a === b) return Object.is(a, -0) ? -1 : 1;
  return a - b < 0 || a === -Infinity || b === Infinity ? -1 : 1;
}

function compareLists(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
