/**
 * The objects of a value in the order of their first occurrence, so that one that occurs again is found. Most values
 * have few: those are compared one by one.
 *
 * Invariant: keeps no object alive once it is cleared.
 */

/** Objects are compared one by one up to this many. */
const COMPARED_OBJECTS_MAX = 24;
/**
 * Up to this many they are looked up in an array, which engines do many at a time; beyond, in a Set, which makes a hash for
 * each new object.
 */
export const LISTED_OBJECTS_MAX = 64;

const indexOf = Array.prototype.indexOf;

/** The caller counts the objects. */
export class Seen {
  /** The first objects; the rest is undefined. */
  readonly #first: unknown[] = new Array(LISTED_OBJECTS_MAX).fill(undefined);
  /** How many `#first` may hold. */
  #firstMax = LISTED_OBJECTS_MAX;
  /**
   * All objects, once there are more than `#first` may hold. Each value has a new set: an old one takes twice the
   * time, because the engine has to remember which new objects it refers to.
   */
  #all: Set<unknown> | null = null;
  /** Indices by object; made when the first object beyond `#first` occurs again. */
  #indices: Map<unknown, number> | null = null;

  /** The index of the object among the first `count`; if it is new, it is added, and the answer is `count`. */
  indexOf(value: object, count: number): number {
    return count < this.#firstMax ? this.#listed(value, count) : this.#hashed(value, count);
  }

  #listed(value: object, count: number): number {
    const first = this.#first;
    if (count > COMPARED_OBJECTS_MAX) {
      const found = indexOf.call(first, value);
      if (found >= 0) return found;
    } else for (let i = 0; i < count; i++) if (first[i] === value) return i;
    first[count] = value;
    return count;
  }

  #hashed(value: object, count: number): number {
    const all = (this.#all ??= new Set(this.#first.slice(0, count)));
    all.add(value);
    if (all.size === count) return this.#indexInSet(value);
    if (this.#indices !== null) this.#indices.set(value, count);
    return count;
  }

  #indexInSet(value: object): number {
    if (this.#indices === null) {
      this.#indices = new Map();
      for (const object of this.#all!) this.#indices.set(object, this.#indices.size);
    }
    return this.#indices.get(value)!;
  }

  /** Takes the last object back; `count` are left. */
  forget(value: object, count: number): void {
    if (count < this.#firstMax) this.#first[count] = undefined;
    this.#all?.delete(value);
    this.#indices?.delete(value);
  }

  /** Forgets all `count` objects. `hasMany`: so has the next value, probably: then few are compared. */
  clear(count: number, hasMany: boolean): void {
    const firstMax = this.#firstMax;
    const first = Math.min(count, firstMax);
    for (let i = 0; i < first; i++) this.#first[i] = undefined;
    if (count >= firstMax) {
      this.#all = null;
      this.#indices = null;
    }
    this.#firstMax = hasMany ? COMPARED_OBJECTS_MAX : LISTED_OBJECTS_MAX;
  }
}
