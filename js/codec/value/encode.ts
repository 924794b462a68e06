/**
 * Values to CBOR (docs/format.md §2): the hot path of every write.
 *
 * One pass: getters run once, in the order in which V8 runs them. What one pass cannot know (which
 * objects are met again) is put in afterwards by splice.ts, only for values that need it.
 */

import type { Buffer } from "node:buffer";
import { types } from "node:util";
import { isResizable, viewBuffer, viewBytes } from "../slots";
import { isU64 } from "../u64";
import { type Mark, markUuid } from "../uuid";
import type { Writer } from "../writer";
import { writeBigint } from "./bigint";
import type { Fill } from "./blob";
import { placed } from "./culprit";
import { notCloneable, proxyNotCloneable, tooLarge } from "./reject";
import { type ShapeWriter, shapeWriter } from "./shapes";
import { type Edit, PLACEHOLDER_BYTES, splice, writeHead } from "./splice";
import { writeSpecial } from "./special";
import { writeLongText } from "./strings";
import { ENCODING_BYTES, ENCODING_CBOR, ENCODING_LE64, TAG_OBJECT, VALUE_DEPTH_MAX } from "./tags";
import { type SeenBuffers, viewName, writeView } from "./views";

/** Strings up to this many code units are written by a loop; above, a native call is cheaper. */
const LOOP_TEXT_UNITS_MAX = 40;
/** Objects are looked up in an array up to this many, in a Set beyond. */
const LINEAR_OBJECTS_MAX = 8;
/**
 * Arrays up to this length are checked for holes and properties by their keys, longer ones by their
 * values.
 */
const KEYED_ARRAY_ITEMS_MAX = 8;
const INDICES = Array.from({ length: KEYED_ARRAY_ITEMS_MAX }, (_, i) => String(i));
/** A set of seen objects larger than this is not kept for the next value. */
const SEEN_KEPT_MAX = 4096;
/** Below this depth objects are written without their shapes: that takes less stack. */
const SHAPED_DEPTH_MAX = 64;
/** Bytes that an unfinished value may have beyond its limit: placeholders can only shrink it. */
const LIMIT_SLACK_BYTES = 1024;

const isProxy = types.isProxy;
const isArray = Array.isArray;
const isView = ArrayBuffer.isView;
const objectKeys = Object.keys;
const objectValues = Object.values;
const toStringOf = Object.prototype.toString;
const hasOwn = Object.prototype.hasOwnProperty;

/**
 * Appends the bytes of a top-level value and returns its encoding id: LE64 for `KvU64`, BYTES for
 * `Uint8Array` and its subclasses, CBOR for everything else. Leaves contents still to be read in
 * `writer.fills`.
 *
 * Throws TypeError "… could not be cloned." for what cannot be stored, RangeError for nesting
 * deeper than VALUE_DEPTH_MAX, TypeError for more than `bytesMax` bytes, and whatever a getter
 * throws; the writer is then where it was.
 */
export function encodeValue(
  writer: Writer,
  value: unknown,
  bytesMax = Number.POSITIVE_INFINITY,
): number {
  if (typeof value === "object" && value !== null) {
    if (isView(value)) {
      if (viewName(value) === "Uint8Array") {
        encodeBytes(writer, value as Uint8Array, bytesMax);
        return ENCODING_BYTES;
      }
    } else {
      if (isProxy(value)) throw proxyNotCloneable(value);
      if (isU64(value)) {
        writer.ensure(8);
        writer.view.setBigUint64(writer.pos, value.value, true);
        writer.pos += 8;
        return ENCODING_LE64;
      }
      encode(writer, value, bytesMax, true);
      return ENCODING_CBOR;
    }
  }
  encode(writer, value, bytesMax, false);
  return ENCODING_CBOR;
}

/**
 * Appends any value as CBOR, also those that have an encoding of their own at top level (queue
 * messages). As with `encodeValue`, the room of what is in `writer.fills` holds nothing yet, not even
 * zeros: `encodeWhole` (whole.ts) is for callers that do not fill it.
 */
export function encodeCbor(
  writer: Writer,
  value: unknown,
  bytesMax = Number.POSITIVE_INFINITY,
): void {
  encode(writer, value, bytesMax, false);
}

/** `known`: the value is an object, and neither a proxy nor a view. */
function encode(writer: Writer, value: unknown, bytesMax: number, known: boolean): void {
  const encoder = idle.pop() ?? new Encoder();
  try {
    encoder.run(writer, value, bytesMax, known);
  } catch (error) {
    throw placed(error, value);
  } finally {
    encoder.reset();
    idle.push(encoder);
  }
}

/** Encoders not at work; a getter that encodes takes another one. */
const idle: Encoder[] = [];

function encodeBytes(writer: Writer, value: Uint8Array, bytesMax: number): void {
  const buffer = viewBuffer(value, false);
  if (types.isSharedArrayBuffer(buffer)) {
    throw new TypeError("serde_v8 error: invalid type; expected: buffer, got: Uint8Array");
  }
  if (isResizable(buffer)) {
    throw new TypeError("serde_v8 error: can't create slice from resizable ArrayBuffer");
  }
  const length = viewBytes(value, false);
  if (length > bytesMax) throw tooLarge(bytesMax, length);
  writer.ensure(length);
  writer.buf.set(value, writer.pos);
  writer.pos += length;
}

export class Encoder {
  buf!: Buffer;
  pos = 0;
  fills: Fill[] | null = null;
  buffers: SeenBuffers = [];
  /** Behind the last byte that may be written without making room. */
  end = 0;
  view!: DataView;
  #writer: Writer | null = null;
  #start = 0;
  /** Most bytes of the value. */
  bytesMax = 0;
  #depth = 0;
  /** Every object's place, by number in the order of first meeting. */
  #starts: number[] = [];
  #count = 0;
  #first: unknown[] = new Array(LINEAR_OBJECTS_MAX).fill(undefined);
  /** All objects, once there are more than `#first` holds. */
  #seen = new Set<unknown>();
  /** Numbers by object; made when the first object beyond `#first` is met again. */
  #numbers: Map<unknown, number> | null = null;
  #edits: Edit[] | null = null;
  /** The shape that was last met at each level: the next one is likely to be the same. */
  readonly #likely: (ShapeWriter | null)[] = new Array(SHAPED_DEPTH_MAX).fill(null);

  run(writer: Writer, value: unknown, bytesMax: number, known: boolean): void {
    if (writer.busy) throw new Error("a writer was used while a value was being encoded into it");
    writer.busy = true;
    this.#writer = writer;
    this.bytesMax = bytesMax;
    this.#adopt(writer);
    this.#start = this.pos = writer.pos;
    if (!known) this.value(value);
    else if (isArray(value)) this.#array(value);
    else this.#known(value as object);
    this.#finish(writer);
  }

  /**
   * Makes the encoder ready for the next value, whether or not this one was finished. Keeps nothing
   * alive.
   */
  reset(): void {
    if (this.#writer !== null) this.#writer.busy = false;
    this.#writer = null;
    this.#depth = 0;
    this.fills = null;
    if (this.#count > 0) {
      const first = Math.min(this.#count, LINEAR_OBJECTS_MAX);
      for (let i = 0; i < first; i++) this.#first[i] = undefined;
      if (this.#count >= LINEAR_OBJECTS_MAX) {
        if (this.#count > SEEN_KEPT_MAX) {
          this.#seen = new Set();
          this.#starts = [];
        } else this.#seen.clear();
        this.#numbers = null;
      }
      this.#count = 0;
    }
    if (this.buffers.length > 0) this.buffers = [];
    this.#edits = null;
  }

  #adopt(writer: Writer): void {
    this.buf = writer.buf;
    this.view = writer.view;
    this.end = writer.buf.length;
  }

  #finish(writer: Writer): void {
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

  /** Remembers a placeholder. */
  mark(placeholder: number, at: number): void {
    markUuid(this.#writer!, placeholder, at);
  }

  #refuseAbove(bytes: number): void {
    if (bytes > this.bytesMax) throw tooLarge(this.bytesMax, bytes);
  }

  /** Makes room for `bytes` more; call before writing. */
  room(bytes: number): void {
    if (this.pos + bytes > this.end) this.grow(bytes);
  }

  /** Makes room for `bytes` more; replaces `buf`. */
  grow(bytes: number): void {
    if (this.pos - this.#start > this.bytesMax + LIMIT_SLACK_BYTES) throw tooLarge(this.bytesMax);
    const writer = this.#writer!;
    writer.grow(this.pos, bytes);
    this.#adopt(writer);
  }

  value(value: unknown): void {
    switch (typeof value) {
      case "string":
        return this.text(value);
      case "number":
        return this.number(value);
      case "object":
        if (value === null) return this.nil();
        return this.#object(value);
      case "boolean":
        if (this.pos >= this.end) this.grow(1);
        this.buf[this.pos++] = value ? 0xf5 : 0xf4;
        return;
      case "undefined":
        if (this.pos >= this.end) this.grow(1);
        this.buf[this.pos++] = 0xf7;
        return;
      case "bigint":
        return writeBigint(this, value);
      default:
        if (isProxy(value)) throw proxyNotCloneable(value as object);
        throw notCloneable(value);
    }
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
    if (value >= 0 && value < 24 && (value | 0) === value && (value !== 0 || 1 / value > 0)) {
      this.buf[this.pos++] = value;
    } else if (Number.isSafeInteger(value) && (value !== 0 || 1 / value > 0)) {
      this.pos =
        value >= 0
          ? writeHead(this.buf, this.pos, 0, value)
          : writeHead(this.buf, this.pos, 1, -1 - value);
    } else {
      this.float(value);
    }
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

  text(text: string): void {
    const { length } = text;
    if (length > LOOP_TEXT_UNITS_MAX) return writeLongText(this, text);
    if (this.pos + length + 2 > this.end) this.grow(length + 2);
    const { buf } = this;
    let at = this.pos;
    if (length < 24) buf[at++] = 0x60 | length;
    else {
      buf[at++] = 0x78;
      buf[at++] = length;
    }
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) return writeLongText(this, text);
      buf[at++] = unit;
    }
    this.pos = at;
  }

  #object(value: object): void {
    if (isProxy(value)) throw proxyNotCloneable(value);
    if (isArray(value)) return this.#array(value);
    if (isView(value)) return writeView(this, value);
    this.#known(value);
  }

  /** An object that is neither a proxy nor an array nor a view. */
  #known(value: object): void {
    // Before anything looks at its keys: a value can hold one large object very often.
    if (this.met(value)) return;
    const level = this.#depth;
    const likely = level < SHAPED_DEPTH_MAX ? this.#likely[level] : null;
    if (likely !== null && likely(this, value)) return;
    const tag = toStringOf.call(value);
    if (tag !== "[object Object]") return writeSpecial(this, value, tag);
    const keys = objectKeys(value);
    // Objects that hide what they are have no properties of their own to be stored.
    if (keys.length === 0) return writeSpecial(this, value, tag);
    const shape = level < SHAPED_DEPTH_MAX ? shapeWriter(value, keys) : null;
    if (shape !== null) {
      this.#likely[level] = shape;
      if (shape(this, value)) return;
    }
    this.plain(value, keys);
  }

  /** A map of own properties. */
  plain(value: object, keys: string[] = objectKeys(value)): void {
    this.enter();
    this.entries(value as Record<string, unknown>, keys);
    this.leave();
  }

  /**
   * A map with these keys of the object; those that vanish while it is written are left out, as in
   * V8.
   */
  entries(value: Record<string, unknown>, keys: string[]): void {
    const at = this.pos;
    const count = keys.length;
    this.head(5, count);
    const behind = this.pos;
    let left = count;
    for (let i = 0; i < count; i++) {
      const key = keys[i];
      const item = value[key];
      if (item === undefined && !hasOwn.call(value, key)) {
        left--;
        continue;
      }
      this.text(key);
      this.value(item);
    }
    if (left !== count) this.edit({ kind: "head", at, drop: behind - at, count: left });
  }

  #array(value: unknown[]): void {
    if (this.met(value)) return;
    this.enter();
    const { length } = value;
    if (length <= KEYED_ARRAY_ITEMS_MAX) {
      const keys = objectKeys(value);
      // Indices come first and in order, so the last one tells that all are there.
      if (keys.length === length && (length === 0 || keys[length - 1] === INDICES[length - 1])) {
        this.head(4, length);
        for (let i = 0; i < length; i++) this.value(value[i]);
      } else {
        this.#sparse(value);
        this.entries(value as unknown as Record<string, unknown>, keys);
      }
    } else {
      // As many values as elements, and no element missing: then there is nothing else.
      const items = objectValues(value) as unknown[];
      if (items.length === length && hasAll(value, length)) {
        this.head(4, length);
        for (let i = 0; i < length; i++) this.value(items[i]);
      } else {
        this.#sparse(value);
        this.entries(value as unknown as Record<string, unknown>, objectKeys(value));
      }
    }
    this.leave();
  }

  /**
   * The start of an array with holes or with properties beside its elements; its entries follow.
   */
  #sparse(value: unknown[]): void {
    this.object("Array", 3);
    this.number(value.length);
  }

  enter(): void {
    if (++this.#depth > VALUE_DEPTH_MAX) {
      throw new RangeError(`Value is nested too deeply (max ${VALUE_DEPTH_MAX} levels)`);
    }
  }

  leave(): void {
    this.#depth--;
  }

  /**
   * Whether the object was met before in this value; then a reference is written. Else it gets its
   * number.
   */
  met(value: object): boolean {
    const count = this.#count;
    if (count < LINEAR_OBJECTS_MAX) {
      const first = this.#first;
      for (let i = 0; i < count; i++) {
        if (first[i] === value) {
          this.reference(i);
          return true;
        }
      }
      first[count] = value;
    } else {
      const seen = this.#seen;
      if (count === LINEAR_OBJECTS_MAX) for (const object of this.#first) seen.add(object);
      seen.add(value);
      if (seen.size === count) {
        this.reference(this.#numberOf(value));
        return true;
      }
      if (this.#numbers !== null) this.#numbers.set(value, count);
    }
    this.#starts[count] = this.pos;
    this.#count = count + 1;
    return false;
  }

  /** What was met last is no object of the value, or not yet: its number is free again. */
  forget(value: object): void {
    const count = --this.#count;
    if (count < LINEAR_OBJECTS_MAX) {
      this.#first[count] = undefined;
      return;
    }
    this.#seen.delete(value);
    this.#numbers?.delete(value);
  }

  /** Gives an object that is not met anywhere else a number. */
  number_of(value: object, at: number): number {
    const number = this.#count;
    this.met(value);
    this.#starts[number] = at;
    return number;
  }

  #numberOf(value: object): number {
    if (this.#numbers === null) {
      this.#numbers = new Map();
      for (const object of this.#seen) this.#numbers.set(object, this.#numbers.size);
    }
    return this.#numbers.get(value)!;
  }

  /** A placeholder that becomes tag 29 with the object's index. */
  reference(object: number): void {
    this.edit({ kind: "reference", at: this.pos, drop: PLACEHOLDER_BYTES, object });
    if (this.pos >= this.end) this.grow(1);
    this.buf[this.pos++] = 0;
  }

  edit(edit: Edit): void {
    if (this.#edits === null) this.#edits = [edit];
    else this.#edits.push(edit);
  }
}

/** What has an offset that a splice moves, by its offset. */
function inOrder(fills: Fill[] | null, marks: Mark[] | null): { offset: number }[] | null {
  if (fills === null || marks === null) return fills ?? marks;
  return [...fills, ...marks].sort((a, b) => a.offset - b.offset);
}

/** Whether the array has every index below `length`. */
function hasAll(value: unknown[], length: number): boolean {
  for (let i = 0; i < length; i++) if (!(i in value)) return false;
  return true;
}
