/**
 * Whether an array has nothing but its elements, each of them.
 *
 * JavaScript has no test for properties beside the elements of an array that does not look at all
 * elements. `util.inspect` has: told to print no elements, it prints their number and all properties.
 * Whether it does so in this runtime is tested once; where it does not, the values are counted.
 */

import { inspect } from "node:util";

/** Arrays up to this length are checked by their values. */
const COUNTED_ITEMS_MAX = 400;
/** The same if they begin with a fraction: each value of an array of doubles is allocated. */
const COUNTED_DOUBLES_MAX = 64;
/** The length of the array that `inspect` is tested with. */
const TESTED_ITEMS = 3;

const objectValues = Object.values;
const hasOwn = Object.prototype.hasOwnProperty;
const prototypeOf = Object.getPrototypeOf as (value: object) => object;
/** Few, since each costs; with other defaults of the program the text is another one, or they change nothing. */
const options = {
  customInspect: false,
  depth: 0,
  getters: false,
  maxArrayLength: 0,
  sorted: false,
};

/** Whether `inspect` shows properties; tested with the first long array. */
let showsProperties: boolean | undefined;

/** `length` is that of the array. Runs no code of the caller. */
export function isDense(array: readonly unknown[], length: number): boolean {
  if (!hasOnlyElements(array, length)) return false;
  for (let i = 0; i < length; i++) if (!(i in array)) return false;
  return true;
}

/** {@link isDense} of an array without holes. */
export function hasOnlyElements(array: readonly unknown[], length: number): boolean {
  const first = array[0];
  const isFraction = typeof first === "number" && Math.trunc(first) !== first;
  const isCounted = length <= (isFraction ? COUNTED_DOUBLES_MAX : COUNTED_ITEMS_MAX);
  if (!isCounted && isBare(array) && isShownBare(array, length)) return true;
  // As many values as elements and no hole: there are no other properties.
  return objectValues(array).length === length;
}

/** Whether `inspect` runs no code: it reads the names of the array's class. */
function isBare(array: readonly unknown[]): boolean {
  return (
    prototypeOf(array) === Array.prototype &&
    Array.prototype.length === 0 &&
    !(Symbol.toStringTag in array) &&
    !hasOwn.call(array, "constructor")
  );
}

function isShownBare(array: readonly unknown[], length: number): boolean {
  showsProperties ??= testInspect();
  return showsProperties && inspect(array, options) === shown(length);
}

/** What `inspect` shows of an array without properties. */
function shown(length: number): string {
  return `[ ... ${length} more items ]`;
}

/** Whether `inspect` shows properties of every kind. */
function testInspect(): boolean {
  const make = (): Record<string, unknown> => {
    const array: unknown[] = new Array(TESTED_ITEMS).fill(0.5);
    return array as unknown as Record<string, unknown>;
  };
  if (inspect(make(), options) !== shown(TESTED_ITEMS)) return false;
  for (const name of ["a", "", "-1", "1.5", "4294967295", "length2", "then"]) {
    for (const value of [undefined, {}]) {
      const array = make();
      array[name] = value;
      if (inspect(array, options) === shown(TESTED_ITEMS)) return false;
    }
  }
  return true;
}
