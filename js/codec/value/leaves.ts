/**
 * Finds short arrays of numbers again within a value, by the bytes that were written for them: those of most differ. A
 * set of objects makes a hash for each, which takes longer than to write two numbers.
 *
 * Invariant: an array is found if it occurred before and its elements are the same as then. They are read at each
 * occurrence, so a getter among them runs again; and an array that a getter has changed in between is written again.
 */

/** Places for arrays; a power of two. */
const SLOTS = 4096;
/** Arrays of one place that are compared; those beyond are in a map: their bytes are probably the same. */
const COMPARED_ARRAYS_MAX = 8;
/** Bytes at each end of an array that make its place. */
const HASHED_BYTES = 16;
/** The links of an array: the next one of its place, and its place. */
const LINKS = 2;
/** Room for so many arrays at first; and at most, to be kept for the next value. */
const ARRAYS_MIN = 1024;
const ARRAYS_KEPT_MAX = 8192;

export class Leaves {
  /** The last array of each place, plus one; 0: none. */
  readonly #places = new Int32Array(SLOTS);
  #links = new Int32Array(ARRAYS_MIN * LINKS);
  /** New for each value, as the sets of encoder.ts are. */
  #arrays: unknown[] = [];
  /** The indices of arrays whose places were full. */
  #crowd: Map<object, number> | null = null;
  /** The number of each array among the objects of the value. */
  readonly numbers: number[] = [];

  /** The index of the array whose bytes are [at, end); if it is new, it is added, and the answer is their count before. */
  indexOf(array: object, view: DataView, at: number, end: number): number {
    const arrays = this.#arrays;
    const count = arrays.length;
    const place = placeOf(view, at, end);
    const first = this.#places[place];
    let left = COMPARED_ARRAYS_MAX;
    for (let i = first; i !== 0; i = this.#links[(i - 1) * LINKS]) {
      if (arrays[i - 1] === array) return i - 1;
      if (--left === 0) return this.#indexInCrowd(array);
    }
    if ((count + 1) * LINKS > this.#links.length) this.#grow();
    this.#links[count * LINKS] = first;
    this.#links[count * LINKS + 1] = place;
    this.#places[place] = count + 1;
    arrays.push(array);
    return count;
  }

  /** The same for an array whose place is full. */
  #indexInCrowd(array: object): number {
    const crowd = (this.#crowd ??= new Map());
    const known = crowd.get(array);
    if (known !== undefined) return known;
    const count = this.#arrays.push(array) - 1;
    crowd.set(array, count);
    if ((count + 1) * LINKS > this.#links.length) this.#grow();
    this.#links[count * LINKS + 1] = 0;
    return count;
  }

  #grow(): void {
    const links = new Int32Array(this.#links.length * 2);
    links.set(this.#links);
    this.#links = links;
  }

  /** Forgets all. */
  clear(): void {
    const count = this.#arrays.length;
    if (count === 0) return;
    for (let i = 0; i < count; i++) this.#places[this.#links[i * LINKS + 1]] = 0;
    if (count > ARRAYS_KEPT_MAX) this.#links = new Int32Array(ARRAYS_MIN * LINKS);
    this.#arrays = [];
    this.numbers.length = 0;
    this.#crowd = null;
  }
}

function placeOf(view: DataView, at: number, end: number): number {
  const bytes = end - at;
  let hash = bytes;
  if (bytes < 4) {
    for (let i = at; i < end; i++) hash = Math.imul(hash ^ view.getUint8(i), 0x9e3779b1);
  } else {
    const last = end - 4;
    const middle = bytes > 2 * HASHED_BYTES ? at + HASHED_BYTES : last;
    for (let i = at; i < middle; i += 4) hash = mixed(hash, view.getInt32(i));
    for (let i = bytes > 2 * HASHED_BYTES ? end - HASHED_BYTES : last; i < last; i += 4)
      hash = mixed(hash, view.getInt32(i));
    hash = mixed(hash, view.getInt32(last));
  }
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}

function mixed(hash: number, word: number): number {
  return Math.imul(hash ^ (hash >>> 13) ^ word, 0x9e3779b1);
}
