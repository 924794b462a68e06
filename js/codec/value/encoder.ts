/**
 * The output of encode.ts and of the writers of single kinds of values: heads, numbers, byte strings.
 * It numbers the objects of a value, so that an object that occurs again becomes a reference.
 */

import { outOfRange } from "../../model/errors";
import type { Buffer } from "node:buffer";
import { markUuid } from "../uuid";
import type { Fill, Mark, Writer } from "../writer";
import { Holes, headsOf, isMissing } from "./holes";
import { Leaves } from "./leaves";
import { valueTooLarge } from "./reject";
import { LISTED_OBJECTS_MAX, Seen } from "./seen";
import { type Edit, PLACEHOLDER_BYTES, splice, writeHead } from "./splice";
import { TAG_OBJECT } from "./tags";
import { VALUE_DEPTH_MAX } from "../../model/limits.js";

/** The places of more objects than this are not kept for the next value. */
const NUMBERS_KEPT_MAX = 4096;
/** Bytes that an unfinished value may have beyond its limit: placeholders can only shrink it. */
const LIMIT_SLACK_BYTES = 1024;

/** A buffer that the value holds, or holds a view of. */
export interface SeenBuffer {
  buffer: ArrayBuffer;
  /** Its size when it was written; a getter can resize it afterwards. Infinity: it has one size. */
  bytes: number;
  /** The view written as its own bytes at [at, end), as long as nothing else uses the buffer. */
  alone: {
    name: string;
    at: number;
    end: number;
    byteOffset: number;
    length: number;
    /** It is a view of all bytes of the buffer. */
    isWhole: boolean;
  } | null;
  /** Its number among the value's objects, once it is written. */
  object: number;
}

export abstract class Encoder {
  buf!: Buffer;
  pos = 0;
  fills: Fill[] | null = null;
  buffers: SeenBuffer[] = [];
  /** Behind the last byte that may be written without making room. */
  end = 0;
  view!: DataView;
  #writer: Writer | null = null;
  #start = 0;
  /** Whether arrays of numbers are packed. */
  protected packs = false;
  /** Most bytes of the value. */
  bytesMax = 0;
  protected depth = 0;
  /** The start of each object, by its number in the order of first occurrence. */
  readonly #starts: number[] = [];
  /** Short arrays of numbers; null until they are kept apart for the first time. */
  #leaves: Leaves | null = null;
  #leafCount = 0;
  /** Whether they are: in a value with many objects, as far as the last value tells. */
  protected hasLeaves = false;
  /** The other objects; and their numbers, if there are leaves: else these are their indices. */
  readonly #seen = new Seen();
  #seenCount = 0;
  readonly #numbers: number[] = [];
  #edits: Edit[] | null = null;

  /** Writes a value. */
  abstract value(value: unknown): void;

  /** Writes a string. */
  abstract text(text: string): void;

  /** Writes a map of own properties. */
  abstract plain(value: object, keys?: string[]): void;

  /** Starts a value at the position of the writer. */
  protected begin(writer: Writer, bytesMax: number): void {
    if (writer.busy) throw new Error("a writer was used while a value was being encoded into it");
    writer.busy = true;
    this.#writer = writer;
    this.bytesMax = bytesMax;
    this.packs = writer.packs;
    this.#adopt(writer);
    this.#start = this.pos = writer.pos;
  }

  /**
   * Makes the encoder ready for the next value, whether or not this one was finished. Keeps nothing
   * alive.
   */
  reset(): void {
    if (this.#writer !== null) this.#writer.busy = false;
    this.#writer = null;
    this.depth = 0;
    this.fills = null;
    const count = this.#seenCount + this.#leafCount;
    if (count > 0) {
      const hasMany = count > LISTED_OBJECTS_MAX;
      this.#seen.clear(this.#seenCount, hasMany);
      this.#seenCount = 0;
      if (this.hasLeaves) {
        this.#leaves?.clear();
        this.#leafCount = 0;
        if (count > NUMBERS_KEPT_MAX) this.#numbers.length = 0;
      }
      if (count > NUMBERS_KEPT_MAX) this.#starts.length = 0;
      this.hasLeaves = hasMany;
    }
    if (this.buffers.length > 0) this.buffers = [];
    this.#edits = null;
  }

  #adopt(writer: Writer): void {
    this.buf = writer.buf;
    this.view = writer.view;
    this.end = writer.buf.length;
  }

  /** Moves the writer behind the complete value. */
  protected finish(writer: Writer): void {
    const { fills } = this;
    const { marks } = writer;
    if (this.#edits !== null) {
      const moved = inOrder(fills, marks);
      const bytes = splice(this.buf, this.#start, this.pos, this.#edits, this.#starts, moved);
      this.#refuseAbove(bytes.length);
      writer.pos = this.#start;
      writer.bytes(bytes);
    } else {
      this.#refuseAbove(this.pos - this.#start);
      writer.pos = this.pos;
    }
    const origin = this.#edits === null ? this.#start : 0;
    if (fills !== null) {
      for (const fill of fills) fill.offset -= origin;
      writer.fills = fills;
    }
    if (marks !== null) for (const mark of marks) mark.offset -= origin;
  }

  /** A copy of the last bytes before a position. */
  copyBefore(end: number, bytes: number): Uint8Array {
    return Uint8Array.prototype.slice.call(this.buf, end - bytes, end);
  }

  /** Remembers a placeholder. */
  mark(placeholder: number, at: number): void {
    markUuid(this.#writer!, placeholder, at);
  }

  #refuseAbove(bytes: number): void {
    if (bytes > this.bytesMax) throw valueTooLarge(this.bytesMax, bytes);
  }

  /** Makes room for `bytes` more; call before writing. */
  room(bytes: number): void {
    if (this.pos + bytes > this.end) this.grow(bytes);
  }

  /** Makes room for `bytes` more; replaces `buf`. */
  grow(bytes: number): void {
    if (this.pos - this.#start > this.bytesMax + LIMIT_SLACK_BYTES)
      throw valueTooLarge(this.bytesMax);
    const writer = this.#writer!;
    writer.grow(this.pos, bytes);
    this.#adopt(writer);
  }

  nil(): void {
    if (this.pos >= this.end) this.grow(1);
    this.buf[this.pos++] = 0xf6;
  }

  /** A CBOR head: major type 0 … 6 with its argument, shortest form. */
  head(major: number, argument: number): void {
    if (this.pos + 9 > this.end) this.grow(9);
    if (argument < 24) this.buf[this.pos++] = (major << 5) | argument;
    else this.pos = writeHead(this.buf, this.pos, major, argument);
  }

  /** The start of tag 27 `[name, …]` with `items` items, the name included. */
  object(name: string, items: number): void {
    this.head(6, TAG_OBJECT);
    this.head(4, items);
    this.text(name);
  }

  number(value: number): void {
    if (this.pos + 9 > this.end) this.grow(9);
    const int = value | 0;
    if (int === value && (int !== 0 || 1 / value > 0)) {
      if (int >= 0 && int < 24) this.buf[this.pos++] = int;
      else {
        const sign = int >> 31;
        this.pos = writeHead(this.buf, this.pos, -sign, int ^ sign);
      }
    } else if (Number.isSafeInteger(value) && value !== 0) {
      this.pos =
        value > 0
          ? writeHead(this.buf, this.pos, 0, value)
          : writeHead(this.buf, this.pos, 1, -1 - value);
    } else this.float(value);
  }

  /**
   * Writes the items of an array from index `from` on; reads each once, after those before it are written. `source` is
   * the array itself, where `array` is a copy. Returns those that are missing.
   */
  items(
    array: readonly unknown[],
    from: number,
    length: number,
    source: readonly unknown[],
  ): Holes | null {
    let { buf, view, pos, end } = this;
    let holes: Holes | null = null;
    for (let i = from; i < length; i++) {
      const value = array[i];
      if (typeof value !== "number" || i >= source.length) {
        this.pos = pos;
        if (isMissing(array, source, i, value)) (holes ??= new Holes()).add(this, i);
        else this.value(value);
        ({ buf, view, pos, end } = this);
        continue;
      }
      if (pos + 9 > end) {
        this.pos = pos;
        this.grow(9);
        ({ buf, view, end } = this);
      }
      const int = value | 0;
      if (int === value && (int !== 0 || 1 / value > 0)) {
        const sign = int >> 31;
        const argument = int ^ sign;
        const major = sign & 0x20;
        if (argument < 24) buf[pos++] = major | argument;
        else if (argument < 0x100) {
          buf[pos] = major | 0x18;
          buf[pos + 1] = argument;
          pos += 2;
        } else if (argument < 0x1_0000) {
          buf[pos] = major | 0x19;
          buf[pos + 1] = argument >>> 8;
          buf[pos + 2] = argument;
          pos += 3;
        } else {
          buf[pos] = major | 0x1a;
          view.setUint32(pos + 1, argument);
          pos += 5;
        }
      } else if (Math.trunc(value) === value || value !== value) {
        this.pos = pos;
        this.number(value);
        ({ pos } = this);
      } else {
        buf[pos] = 0xfb;
        view.setFloat64(pos + 1, value);
        pos += 9;
      }
    }
    this.pos = pos;
    return holes;
  }

  /** A float64, also for integers (dates). */
  float(value: number): void {
    if (this.pos + 9 > this.end) this.grow(9);
    const at = this.pos;
    this.buf[at] = 0xfb;
    this.view.setFloat64(at + 1, value);
    if (value !== value) {
      this.view.setUint32(at + 1, 0x7ff80000);
      this.view.setUint32(at + 5, 0);
    }
    this.pos = at + 9;
  }

  /** A byte string. */
  bytes(bytes: Uint8Array): void {
    const { length } = bytes;
    this.head(2, length);
    if (this.pos + length > this.end) this.grow(length);
    this.buf.set(bytes, this.pos);
    this.pos += length;
  }

  enter(): void {
    if (++this.depth > VALUE_DEPTH_MAX) {
      throw outOfRange(`Value is nested too deeply (max ${VALUE_DEPTH_MAX} levels)`);
    }
  }

  leave(): void {
    this.depth--;
  }

  /**
   * If the object occurred before in this value, writes a reference and returns true. Otherwise
   * numbers it.
   */
  met(value: object): boolean {
    const count = this.#seenCount;
    const index = this.#seen.indexOf(value, count);
    if (index < count) {
      this.reference(this.hasLeaves ? this.#numbers[index] : index);
      return true;
    }
    const number = count + this.#leafCount;
    if (this.hasLeaves) this.#numbers[count] = number;
    this.#starts[number] = this.pos;
    this.#seenCount = count + 1;
    return false;
  }

  /**
   * The same for a short array of numbers, which is written from `at` to the position: those bytes are taken
   * back if it occurred before.
   */
  metLeaf(value: object, at: number): void {
    const leaves = (this.#leaves ??= new Leaves());
    const { numbers } = leaves;
    const index = leaves.indexOf(value, this.view, at, this.pos);
    if (index < numbers.length) {
      this.pos = at;
      this.reference(numbers[index]);
      return;
    }
    const number = this.#seenCount + this.#leafCount++;
    numbers.push(number);
    this.#starts[number] = at;
  }

  /** Frees the number of the last object, which is not part of the value, or not yet. */
  forget(value: object): void {
    this.#seen.forget(value, --this.#seenCount);
  }

  /** Numbers an object that occurs nowhere else. */
  number_of(value: object, at: number): number {
    const number = this.#seenCount + this.#leafCount;
    this.met(value);
    this.#starts[number] = at;
    return number;
  }

  /** A placeholder that becomes tag 29 with the object's index. */
  reference(object: number): void {
    this.edit({ kind: "reference", at: this.pos, drop: PLACEHOLDER_BYTES, object });
    if (this.pos >= this.end) this.grow(1);
    this.buf[this.pos++] = 0;
  }

  /** The counts of the maps whose heads are edited, by position. */
  changedHeads(): Map<number, number> {
    return headsOf(this.#edits ?? []);
  }

  edit(edit: Edit): void {
    if (this.#edits === null) this.#edits = [edit];
    else this.#edits.push(edit);
  }
}

/** Fills and marks, whose offsets a splice moves, in the order of the offsets. */
function inOrder(fills: Fill[] | null, marks: Mark[] | null): { offset: number }[] | null {
  if (fills === null || marks === null) return fills ?? marks;
  return [...fills, ...marks].sort((a, b) => a.offset - b.offset);
}
