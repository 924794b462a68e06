/**
 * Whether an array has nothing but its elements, each of them.
 *
 * JavaScript has no test for properties beside the elements of an array that does not look at all
 * elements. `util.inspect` has: with `maxArrayLength: 0` it prints their number and all properties.
 * Whether it does so in this runtime is tested once; where it does not, the keys are counted.
 *
 * Invariant: an element that is a getter runs once, when the caller reads it; or, where elements are
 * copied, when the copy is made. Never runs a getter otherwise.
 */

import { inspect } from "node:util";

/** Up to this many items the keys are counted; for more, `inspect` is faster. */
const KEYED_ITEMS_MAX = 80;
/** Up to this many items a copy of the elements is counted. */
const COPIED_ITEMS_MAX = 400;
/** The length of the array that `inspect` is tested with. */
const TESTED_ITEMS = 3;

const isBun = process.versions.bun !== undefined;
const objectKeys = Object.keys;
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

/**
 * A copy of the elements, for an array that is checked best by it; null for others. It has other properties too, if
 * there are any, and is shorter where there are holes.
 *
 * Getters of elements run here, in their order: before those inside of the elements, which V8 runs in
 * between. No test finds out sooner that an element is a getter without a cost for all arrays.
 */
export function copyOfElements(array: readonly unknown[], length: number): unknown[] | null {
  return length > COPIED_ITEMS_MAX || isBun ? null : objectValues(array);
}

/** Whether an array has no other properties, if it has no holes. Reads nothing of it; `length` is its own. */
export function hasOnlyElements(array: readonly unknown[], length: number): boolean {
  if (length > KEYED_ITEMS_MAX && isBare(array) && isShownBare(array, length)) return true;
  return objectKeys(array).length === length;
}

/** Whether an array has no holes. Reads nothing of it. */
export function isFull(array: readonly unknown[], length: number): boolean {
  for (let i = 0; i < length; i++) if (!(i in array)) return false;
  return true;
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
