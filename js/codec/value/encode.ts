/**
 * Values to CBOR (docs/format.md §2): the hot path of every write.
 *
 * One pass: getters run once, in the order of V8 (but see dense.ts for those of the elements of
 * arrays). References to objects that occur again are inserted afterwards by splice.ts, only for
 * values that need it.
 */

import { misuse } from "../../model/errors";
import { types } from "node:util";
import { isResizable, viewBuffer, viewBytes } from "../slots";
import { isU64 } from "../u64";
import type { Writer } from "../writer";
import { writeBigint } from "./bigint";
import { placed } from "./culprit";
import { copyOfElements, hasOnlyElements, isFull } from "./dense";
import { Encoder } from "./encoder";
import { Holes, isMissing } from "./holes";
import { PACKED_ITEMS_MIN, writeNumbers } from "./packed";
import { notCloneable, proxyNotCloneable, valueTooLarge } from "./reject";
import { type ShapeWriter, shapeWriter } from "./shapes";
import { writeSpecial } from "./special";
import { writeLongText } from "./strings";
import { ENCODING_BYTES, ENCODING_CBOR, ENCODING_LE64 } from "./tags";
import { viewName, writeView } from "./views";

/** Strings up to this many code units are written by a loop; above, a native call is cheaper. */
const LOOP_TEXT_UNITS_MAX = 40;
/** Arrays up to this length are checked for holes and properties by their keys. */
const KEYED_ARRAY_ITEMS_MAX = 8;
const INDICES = Array.from({ length: KEYED_ARRAY_ITEMS_MAX }, (_, i) => String(i));
const NOTHING: readonly unknown[] = [];
const INDEX = /^(?:0|[1-9]\d{0,9})$/;
/** Below this depth objects are written without their shapes: that takes less stack. */
const SHAPED_DEPTH_MAX = 64;

const isProxy = types.isProxy;
const isArray = Array.isArray;
const isView = ArrayBuffer.isView;
const objectKeys = Object.keys;
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
 * zeros: `fillBlobs` fills it.
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
  const encoder = idle.pop() ?? new ValueEncoder();
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
const idle: ValueEncoder[] = [];

function encodeBytes(writer: Writer, value: Uint8Array, bytesMax: number): void {
  const buffer = viewBuffer(value, false);
  if (types.isSharedArrayBuffer(buffer)) {
    throw misuse("serde_v8 error: invalid type; expected: buffer, got: Uint8Array");
  }
  if (isResizable(buffer)) {
    throw misuse("serde_v8 error: can't create slice from resizable ArrayBuffer");
  }
  const length = viewBytes(value, false);
  if (length > bytesMax) throw valueTooLarge(bytesMax, length);
  writer.ensure(length);
  // As in Deno, a view of a detached buffer has no bytes.
  if (length > 0) writer.buf.set(value, writer.pos);
  writer.pos += length;
}

/** Whether these keys of an array of that length are its indices: those come first and in order, so the last one tells. */
function hasAll(keys: readonly string[], length: number): boolean {
  return keys.length === length && (length === 0 || keys[length - 1] === INDICES[length - 1]);
}

/** The keys that an array had before the getters among its first `read` elements ran, and its length was another. */
function keysBefore(array: readonly unknown[], length: number, read: number): string[] {
  const keys = objectKeys(array);
  if (keys.length < read) return Array.from({ length: read }, (_, i) => String(i));
  if (array.length <= length) return keys;
  return keys.filter((key) => !(Number(key) >= length && INDEX.test(key)));
}

class ValueEncoder extends Encoder {
  /** The last writer at each level; and, once it was the same twice, the one that is tried first. */
  readonly #last: (ShapeWriter | null)[] = new Array(SHAPED_DEPTH_MAX).fill(null);
  readonly #likely: (ShapeWriter | null)[] = new Array(SHAPED_DEPTH_MAX).fill(null);

  run(writer: Writer, value: unknown, bytesMax: number, known: boolean): void {
    this.begin(writer, bytesMax);
    if (!known) this.value(value);
    else if (isArray(value)) this.#array(value);
    else this.#known(value as object);
    this.finish(writer);
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
    // Before its keys are read, because a value can contain one large object many times.
    if (this.met(value)) return;
    const level = this.depth;
    const likely = level < SHAPED_DEPTH_MAX ? this.#likely[level] : null;
    if (likely !== null) {
      if (likely(this, value, false)) return;
      this.#likely[level] = null;
    }
    const tag = toStringOf.call(value);
    if (tag !== "[object Object]") return writeSpecial(this, value, tag);
    const keys = objectKeys(value);
    // Objects with hidden state have no own properties.
    if (keys.length === 0) return writeSpecial(this, value, tag);
    const shape = level < SHAPED_DEPTH_MAX ? shapeWriter(value, keys, level > 0) : null;
    if (shape !== null) {
      if (this.#last[level] === shape) this.#likely[level] = shape;
      else this.#last[level] = shape;
      if (shape(this, value, true)) return;
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
   * V8. `read` are the first of them, if they were read.
   */
  entries(
    value: Record<string, unknown>,
    keys: string[],
    read: readonly unknown[] = NOTHING,
  ): void {
    const at = this.pos;
    const count = keys.length;
    this.head(5, count);
    const behind = this.pos;
    let left = count;
    for (let i = 0; i < count; i++) {
      const key = keys[i];
      const item = i < read.length ? read[i] : value[key];
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
    const { length } = value;
    if (length > KEYED_ARRAY_ITEMS_MAX) {
      if (this.met(value)) return;
      this.enter();
      this.#long(value, length);
    } else {
      if (this.hasLeaves && length > 0) return this.#leaf(value, length);
      if (this.met(value)) return;
      this.enter();
      const keys = objectKeys(value);
      if (hasAll(keys, length)) {
        const at = this.pos;
        this.head(4, length);
        this.#rest(value, value, at, this.pos, 0, length);
      } else this.#sparse(value, length, NOTHING, keys);
    }
    this.leave();
  }

  /** A short array, which is found again by its bytes if all items are numbers. Its elements are read once. */
  #leaf(value: unknown[], length: number): void {
    const at = this.pos;
    const keys = objectKeys(value);
    const isFull = hasAll(keys, length);
    let item: unknown;
    let i = 0;
    if (isFull) {
      item = value[0];
      if (typeof item === "number") {
        this.enter();
        this.head(4, length);
        for (; typeof item === "number"; item = value[i]) {
          this.number(item);
          if (++i === length) {
            this.leave();
            return this.metLeaf(value, at);
          }
        }
        this.leave();
      }
    }
    const behind = this.pos;
    this.pos = at;
    if (this.met(value)) return;
    this.enter();
    if (!isFull) this.#sparse(value, length, NOTHING, keys);
    else {
      this.head(4, length);
      const first = this.pos;
      if (i > 0) this.pos = behind;
      let holes: Holes | null = null;
      if (isMissing(value, value, i, item)) (holes = new Holes()).add(this, i);
      else this.value(item);
      this.#rest(value, value, at, first, i + 1, length, holes);
    }
    this.leave();
  }

  /** An array that is longer. Its elements are read once. */
  #long(value: unknown[], length: number): void {
    const copy = copyOfElements(value, length);
    if (
      copy !== null
        ? copy.length !== length || !isFull(value, length)
        : !hasOnlyElements(value, length)
    )
      return this.#sparse(value, length, copy ?? NOTHING);
    const items = copy ?? value;
    const first = items[0];
    const isNumber = typeof first === "number";
    let read: readonly unknown[] | null = null;
    if (isNumber && length >= PACKED_ITEMS_MIN && this.packs) {
      read = writeNumbers(this, items, length, first);
      if (read === null) return;
    }
    if (copy === null && !isFull(value, length)) {
      // What was read of a hole is no property.
      return this.#sparse(
        value,
        length,
        (read ?? [first]).filter((item, i) => item !== undefined || hasOwn.call(value, i)),
      );
    }
    const at = this.pos;
    this.head(4, length);
    const start = this.pos;
    if (!isNumber) {
      this.value(first);
      return this.#rest(items, value, at, start, 1, length);
    }
    let from = 1;
    if (read !== null) {
      this.items(read, 0, read.length, read);
      from = read.length;
    } else this.number(first);
    this.items(items, from, length, value)?.finish(this, at, start, length);
  }

  /**
   * The elements from index `from` on, of an array that begins at `at` with its elements at `first`. `source` is the
   * array itself, where `items` is a copy.
   */
  #rest(
    items: readonly unknown[],
    source: readonly unknown[],
    at: number,
    first: number,
    from: number,
    length: number,
    holes: Holes | null = null,
  ): void {
    for (let i = from; i < length; i++) {
      const item = items[i];
      if ((item === undefined || i >= source.length) && isMissing(items, source, i, item)) {
        (holes ??= new Holes()).add(this, i);
      } else this.value(item);
    }
    holes?.finish(this, at, first, length);
  }

  /**
   * An array with holes or with properties beside its elements. `read` are those of its properties, from the first
   * on, that were read; `length` is the one before.
   */
  #sparse(
    value: unknown[],
    length: number,
    read: readonly unknown[],
    keys: string[] = keysBefore(value, length, read.length),
  ): void {
    this.object("Array", 3);
    this.number(length);
    this.entries(value as unknown as Record<string, unknown>, keys, read);
  }
}
