/**
 * The numbers of an array, copied while it is encoded: each item is read once, and what they are together
 * decides how they are written. packed.ts decides, and reads those that are no integers.
 *
 * Invariant: nothing is written before all is read. Never runs code of the caller other than getters of elements.
 */

import type { Encoder } from "./encoder";

/** Bytes of a float64 with its head: the longest form of a number. */
const DOUBLE_BYTES = 9;
const SAFE_MAX = Number.MAX_SAFE_INTEGER;

export class Numbers {
  readonly ints: Int32Array;
  /** Room for all, if they are not all in `ints`. */
  readonly doubles: Float64Array;
  /** How many were read: first into `ints`, then, if others follow, all into `doubles`. */
  count = 0;
  /** The item behind them, if there is one. */
  next: unknown = null;
  /** The bits of all; of a negative one, those of its complement. */
  bits = 0;
  hasNegative = false;
  /** Bytes of the integers, written one by one. */
  bytes = 0;
  /** By how much that is less than so many doubles take; for those in `doubles`, until it is enough to decide. */
  saved = 0;
  hasNaN = false;

  constructor(readonly room: number) {
    this.ints = new Int32Array(room);
    this.doubles = new Float64Array(room);
  }

  /** Takes the items, until one is no integer of 32 bits. `first` is the first one, which was read. */
  read(array: readonly unknown[], length: number, first: number): void {
    const { ints } = this;
    let bits = 0;
    let signs = 0;
    let bytes = 0;
    let i = 0;
    for (; i < length; i++) {
      const value = i > 0 ? array[i] : first;
      if (typeof value !== "number") {
        this.next = value;
        break;
      }
      const int = value | 0;
      if (int !== value || (int === 0 && 1 / value < 0)) {
        this.next = value;
        break;
      }
      ints[i] = int;
      const argument = int ^ (int >> 31);
      bits |= argument;
      signs |= int;
      // One more above each bound, two above the last.
      bytes +=
        ((23 - argument) >>> 31) + ((255 - argument) >>> 31) + 2 * ((65535 - argument) >>> 31);
    }
    this.count = i;
    this.bytes = bytes + i;
    this.bits = bits;
    this.hasNegative = signs < 0;
  }

  /**
   * Takes what follows the integers, until an item is no number. Once all are shorter by more than `savedMax`, written one
   * by one, the rest is only copied.
   */
  readDoubles(array: readonly unknown[], length: number, savedMax: number): void {
    const { ints, doubles, count } = this;
    for (let i = 0; i < count; i++) doubles[i] = ints[i];
    let saved = DOUBLE_BYTES * count - this.bytes;
    this.hasNaN = false;
    if (typeof this.next !== "number") return;
    let i = count;
    doubles[i] = this.next;
    for (;;) {
      // Out of its place: the engine would make an object of each in a variable that can hold other items.
      const value = doubles[i];
      if (Math.trunc(value) === value) {
        saved += DOUBLE_BYTES - wholeBytes(value);
        if (saved > savedMax) {
          i = this.#copyDoubles(array, length, i + 1);
          break;
        }
      } else if (value !== value) this.hasNaN = true;
      if (++i === length) break;
      const next = array[i];
      if (typeof next !== "number") {
        this.next = next;
        break;
      }
      doubles[i] = next;
    }
    this.count = i;
    this.saved = saved;
  }

  /** Takes the items from `from` on, until one is no number; returns the index of that one, or `length`. */
  #copyDoubles(array: readonly unknown[], length: number, from: number): number {
    const { doubles } = this;
    for (let i = from; i < length; i++) {
      const value = array[i];
      if (typeof value !== "number") {
        this.next = value;
        return i;
      }
      doubles[i] = value;
    }
    return length;
  }

  /** The items that were read, the last of which is no number. */
  items(): unknown[] {
    const { doubles, count } = this;
    const items: unknown[] = [];
    for (let i = 0; i < count; i++) items.push(doubles[i]);
    items.push(this.next);
    return items;
  }

  /** Writes the integers one by one. */
  writeInts(encoder: Encoder): void {
    const { ints, count } = this;
    encoder.room(this.bytes);
    const { buf } = encoder;
    let at = encoder.pos;
    for (let i = 0; i < count; i++) {
      const int = ints[i];
      const sign = int >> 31;
      const argument = int ^ sign;
      const major = sign & 0x20;
      if (argument < 24) buf[at++] = major | argument;
      else if (argument < 0x100) {
        buf[at] = major | 0x18;
        buf[at + 1] = argument;
        at += 2;
      } else if (argument < 0x1_0000) {
        buf[at] = major | 0x19;
        buf[at + 1] = argument >> 8;
        buf[at + 2] = argument;
        at += 3;
      } else {
        buf[at] = major | 0x1a;
        buf[at + 1] = argument >> 24;
        buf[at + 2] = argument >> 16;
        buf[at + 3] = argument >> 8;
        buf[at + 4] = argument;
        at += 5;
      }
    }
    encoder.pos = at;
  }

  /** Writes the doubles one by one. */
  writeDoubles(encoder: Encoder): void {
    const { doubles, count } = this;
    encoder.room(DOUBLE_BYTES * count - this.saved);
    const { buf, view } = encoder;
    for (let i = 0; i < count; i++) {
      const value = doubles[i];
      const argument = value < 0 ? -1 - value : value;
      if (
        argument >= 0x1_0000_0000 &&
        value >= -SAFE_MAX &&
        value <= SAFE_MAX &&
        Math.trunc(value) === value
      ) {
        const at = encoder.pos;
        buf[at] = value < 0 ? 0x3b : 0x1b;
        view.setInt32(at + 1, (argument / 0x1_0000_0000) | 0);
        view.setInt32(at + 5, argument | 0);
        encoder.pos = at + DOUBLE_BYTES;
      } else encoder.number(value);
    }
  }
}

/** Bytes of a whole number, or of an infinite one. */
function wholeBytes(value: number): number {
  const argument = value < 0 ? -1 - value : value;
  if (argument >= 0x1_0000_0000 || (value === 0 && 1 / value < 0)) return DOUBLE_BYTES;
  return argument < 24 ? 1 : argument < 0x100 ? 2 : argument < 0x1_0000 ? 3 : 5;
}
