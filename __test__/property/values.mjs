// Duty: random structured values that equal themselves after a round trip: shared references,
// cycles, holes, every class of the table in docs/format.md.

const numbers = [0, -0, 1, -1, 23, 24, 255, 256, 65535, 65536, 2 ** 32, 2 ** 53, NaN, Infinity];
const views = [
  Uint8Array,
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
];
const sources = ["a", "[b-z]+", "\\d\\/", ""];
const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];

/** A value of at most `budget` parts. */
export function randomValue(random, budget = random.int(1, 60)) {
  return new Maker(random, budget).value(0);
}

class Maker {
  #random;
  #budget;
  /** Objects made so far: any of them may be met again, also inside itself. */
  #made = [];
  /** Property names made so far: rows of one shape must be common. */
  #shapes = [];

  constructor(random, budget) {
    this.#random = random;
    this.#budget = budget;
  }

  value(depth) {
    const random = this.#random;
    if (--this.#budget <= 0 || depth > 8) return this.#primitive();
    if (this.#made.length > 0 && random.chance(0.08)) return random.pick(this.#made);
    return random.chance(0.4) ? this.#primitive() : this.#object(depth + 1);
  }

  #primitive() {
    const random = this.#random;
    switch (random.int(0, 8)) {
      case 0:
        return undefined;
      case 1:
        return null;
      case 2:
        return random.chance(0.5);
      case 3:
        return random.int(-(2 ** 20), 2 ** 20);
      case 4:
        return random.pick(numbers);
      case 5:
        return random.double();
      case 6:
        return random.bigint(random.chance(0.8) ? 9 : 60);
      case 7:
        return random.text(random.chance(0.9) ? 20 : 400);
      default:
        return random.text(12, { lone: true });
    }
  }

  #object(depth) {
    const random = this.#random;
    switch (random.int(0, 12)) {
      case 0:
      case 1:
      case 2:
        return this.#record(depth);
      case 3:
      case 4:
        return this.#array(depth);
      case 5:
        return this.#map(depth);
      case 6:
        return this.#set(depth);
      case 7:
        return this.#keep(new Date(random.chance(0.1) ? NaN : random.int(-1e13, 4e12)));
      case 8:
        return this.#keep(new RegExp(random.pick(sources), random.pick(["", "g", "iu"])));
      case 9:
        return this.#keep(Object(random.pick([true, false, 1.5, -0, "boxed", "", 5n])));
      case 10:
        return this.#error(depth);
      case 11:
        return this.#keep(random.bytes(random.int(0, 40)).buffer);
      default:
        return this.#view();
    }
  }

  #keep(object) {
    this.#made.push(object);
    return object;
  }

  #record(depth) {
    const random = this.#random;
    const object = this.#keep({});
    for (const name of this.#names()) object[name] = this.value(depth);
    if (random.chance(0.05)) Object.defineProperty(object, "hidden", { value: 1 });
    return object;
  }

  #names() {
    const random = this.#random;
    if (this.#shapes.length > 0 && random.chance(0.5)) return random.pick(this.#shapes);
    const odd = ["", "__proto__x", "constructor", "0", "17", "é", "a b", "\ud800"];
    const name = () => (random.chance(0.2) ? random.pick(odd) : random.text(8));
    const names = [...new Set(random.list(random.int(0, 6), name))];
    this.#shapes.push(names);
    return names;
  }

  #array(depth) {
    const random = this.#random;
    const array = this.#keep([]);
    const length = random.int(0, 8);
    const holes = random.chance(0.15);
    for (let i = 0; i < length; i++) if (!holes || random.chance(0.6)) array[i] = this.value(depth);
    array.length = Math.max(array.length, length);
    if (random.chance(0.1)) array[random.text(5) || "x"] = this.value(depth);
    return array;
  }

  #map(depth) {
    const map = this.#keep(new Map());
    const size = this.#random.int(0, 5);
    for (let i = 0; i < size; i++) map.set(this.value(depth), this.value(depth));
    return map;
  }

  #set(depth) {
    const set = this.#keep(new Set());
    const size = this.#random.int(0, 5);
    for (let i = 0; i < size; i++) set.add(this.value(depth));
    return set;
  }

  #error(depth) {
    const random = this.#random;
    const error = this.#keep(new (random.pick(errors))(random.text(10)));
    error.stack = `${error.name}: at ${random.text(10)}`;
    if (random.chance(0.4)) {
      Object.defineProperty(error, "cause", {
        value: this.value(depth),
        writable: true,
        configurable: true,
      });
    }
    return error;
  }

  #view() {
    const random = this.#random;
    const View = random.pick(views);
    const size = View.BYTES_PER_ELEMENT * random.int(0, 6);
    const view = new View(random.bytes(size).buffer);
    // A NaN's payload is nobody's promise.
    if (view instanceof Float32Array || view instanceof Float64Array) {
      for (let i = 0; i < view.length; i++) if (Number.isNaN(view[i])) view[i] = NaN;
    }
    return this.#keep(view);
  }
}
