/**
 * The numbers of an array, copied while it is encoded: each item is read once, and what they are together
 * decides how they are written. packed.ts decides.
 *
 * Invariant: nothing is written before all is read. Never runs code of the caller other than getters of elements.
 */

import type { Encoder } from "./encoder";

/** Bytes of a float64 with its head: the longest form of a number. */
const DOUBLE_BYTES = 9;

/** Bytes of a float64 without its head. */
const PACKED_BYTES = 8;
const SAFE_MAX = Number.MAX_SAFE_INTEGER;

export class Numbers {
  readonly ints: Int32Array;
  readonly doubles: Float64Array;
  /** How many were read. All are in `ints`, or all in `doubles`. */
  count = 0;
  areInts = true;
  /** The item behind them, if it was read. It is no number. */
  next: unknown = null;
  /** The bits of all integers; of a negative one, those of its complement. */
  bits = 0;
  hasNegative = false;
  hasNaN = false;
  /** Bytes of all, written one by one; or more, if those are fewer than packed ones take. */
  bytes = 0;

  constructor(readonly room: number) {
    this.ints = new Int32Array(room);
    this.doubles = new Float64Array(room);
  }

  /** Takes the items, until one is no number. `first` is the first one, which was read. */
  read(array: readonly unknown[], length: number, first: number): void {
    const { ints } = this;
    let bits = 0;
    let signs = 0;
    let bytes = 0;
    let i = 0;
    this.hasNaN = false;
    for (; i < length; i++) {
      const value = i > 0 ? array[i] : first;
      if (typeof value !== "number") {
        this.next = value;
        break;
      }
      const int = value | 0;
      if (int !== value || (int === 0 && 1 / value < 0))
        return this.#readDoubles(array, length, i, value, bytes + i);
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
    this.areInts = true;
    this.bits = bits;
    this.hasNegative = signs < 0;
  }

  /**
   * Takes the items from `from` on, behind integers of so many `bytes`; `first`, which is read already, is no integer
   * of 32 bits.
   */
  #readDoubles(
    array: readonly unknown[],
    length: number,
    from: number,
    first: number,
    bytes: number,
  ): void {
    const { ints, doubles } = this;
    for (let i = 0; i < from; i++) doubles[i] = ints[i];
    let hasNaN = false;
    let i = from;
    for (let value: unknown = first; ; value = array[i]) {
      if (typeof value !== "number") {
        this.next = value;
        break;
      }
      doubles[i] = value;
      i++;
      if (Math.trunc(value) === value) {
        bytes += wholeBytes(value);
        const most = bytes + DOUBLE_BYTES * (length - i);
        if (most < PACKED_BYTES * length) {
          // Too many short ones, whatever follows: that is only copied.
          bytes = most;
          i = this.#copyDoubles(array, length, i);
          break;
        }
      } else {
        bytes += DOUBLE_BYTES;
        if (value !== value) hasNaN = true;
      }
      if (i === length) break;
    }
    this.count = i;
    this.areInts = false;
    this.bytes = bytes;
    this.hasNaN = hasNaN;
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

  /** The items that were read. */
  items(length: number): unknown[] {
    const { count, areInts, ints, doubles } = this;
    const items: unknown[] = [];
    if (areInts) for (let i = 0; i < count; i++) items.push(ints[i]);
    else for (let i = 0; i < count; i++) items.push(doubles[i]);
    if (count < length) items.push(this.next);
    this.next = null;
    return items;
  }

  /** Writes the numbers one by one. */
  write(encoder: Encoder): void {
    if (this.areInts) this.#writeInts(encoder);
    else this.#writeDoubles(encoder);
  }

  #writeInts(encoder: Encoder): void {
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

  #writeDoubles(encoder: Encoder): void {
    const { doubles, count } = this;
    encoder.room(this.bytes);
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
