/**
 * The byte writer that encoders append to.
 *
 * A writer is a buffer with a position. Encoders write at `pos` after `ensure(n)`, and leave `pos`
 * where it was if they throw. Encoding can run user code (getters), which can call `get` and `set`,
 * which encode too: they must use another writer. `busy` says that a value is being encoded here;
 * encoding a second one throws.
 */

import { Buffer } from "node:buffer";

/** The position of a placeholder's text, from the first byte of its key or value. */
export interface Mark {
  offset: number;
  readonly placeholder: number;
}

/** Room left in an encoded value for the contents of a Blob. */
export interface Fill {
  /** From the value's first byte, in bytes. */
  offset: number;
  /** In bytes; the blob's size when it was encoded. */
  size: number;
  blob: Blob;
}

/** Initial size of a writer, in bytes. */
export const WRITER_BYTES_MIN = 4096;

export class Writer {
  /**
   * The bytes; [0, pos) are written. Replaced by a larger one when it grows, so do not keep it over
   * `ensure`.
   */
  buf: Buffer;
  /** Over the same memory as `buf`. */
  view: DataView;
  /** The position of the next byte. */
  pos = 0;
  /**
   * The room for the contents of Blobs and Files in the last value, or null. The caller reads and
   * clears it.
   */
  fills: Fill[] | null = null;
  /** Whether the bytes are for a commit, which replaces placeholders. */
  resolves = false;
  /** Whether all who may read the values know packed arrays (docs/format.md §2.1). */
  packs = false;
  /** The placeholders of the last key or value, or null. Read and cleared by the caller. */
  marks: Mark[] | null = null;
  /** The placeholders of the record that is being written, or null (js/records/patches.ts). */
  patches: { place: number; offset: number; placeholder: number }[] | null = null;
  /** An encoder is writing here; a second one must not. */
  busy = false;

  /** @param bytes first capacity, in bytes */
  constructor(bytes: number = WRITER_BYTES_MIN) {
    this.buf = Buffer.allocUnsafeSlow(bytes);
    this.view = new DataView(this.buf.buffer, this.buf.byteOffset, this.buf.byteLength);
  }

  /** Makes room for `bytes` more at `pos`. Capacity doubles, so appending is linear. */
  ensure(bytes: number): void {
    if (this.pos + bytes > this.buf.length) this.grow(this.pos, bytes);
  }

  /** Keeps [0, used), and makes the capacity at least `used + bytes`. */
  grow(used: number, bytes: number): void {
    const next = Buffer.allocUnsafeSlow(Math.max(this.buf.length * 2, used + bytes));
    next.set(this.buf.subarray(0, used), 0);
    this.buf = next;
    this.view = new DataView(next.buffer, next.byteOffset, next.byteLength);
  }

  /** Appends one byte. */
  u8(value: number): void {
    this.ensure(1);
    this.buf[this.pos++] = value;
  }

  /** Appends two bytes, little-endian. */
  u16(value: number): void {
    this.ensure(2);
    this.view.setUint16(this.pos, value, true);
    this.pos += 2;
  }

  /** Appends four bytes, little-endian. */
  u32(value: number): void {
    this.ensure(4);
    this.view.setUint32(this.pos, value, true);
    this.pos += 4;
  }

  /** Overwrites four bytes at `at`, little-endian: a length that is known only afterwards. */
  patchU32(at: number, value: number): void {
    this.view.setUint32(at, value, true);
  }

  /** Appends a float64, little-endian. */
  f64(value: number): void {
    this.ensure(8);
    this.view.setFloat64(this.pos, value, true);
    this.pos += 8;
  }

  /** Appends bytes as they are. */
  bytes(bytes: Uint8Array): void {
    const { length } = bytes;
    this.ensure(length);
    if (length > LOOP_BYTES_MAX) this.buf.set(bytes, this.pos);
    else for (let i = 0; i < length; i++) this.buf[this.pos + i] = bytes[i];
    this.pos += length;
  }

  /** Appends `text`, which must be ASCII. */
  ascii(text: string): void {
    this.ensure(text.length);
    for (let i = 0; i < text.length; i++) this.buf[this.pos++] = text.charCodeAt(i);
  }

  /** A copy of [start, pos). A short one is a part of Node's pool: memory of its own costs more than all bytes of a key. */
  copy(start = 0): Buffer {
    return copyOf(this.buf, start, this.pos);
  }
}

/** Up to this many bytes a loop is faster than a call of `set` or `copy`. */
export const LOOP_BYTES_MAX = 64;

/** A copy of [start, end). A view of a part, for `set`, would cost as much as the copy. */
export function copyOf(buf: Buffer, start: number, end: number): Buffer {
  const length = end - start;
  const out = Buffer.allocUnsafe(length);
  if (length > LOOP_BYTES_MAX) buf.copy(out, 0, start, end);
  else for (let i = 0; i < length; i++) out[i] = buf[start + i];
  return out;
}

/** A writer larger than this is not kept. */
const SPARE_BYTES_MAX = 64 * 1024;

let spare: Writer | null = null;

/** A writer of one's own, for bytes that are copied from it, until {@link returnWriter}. Making one costs more than a key. */
export function borrowWriter(): Writer {
  const writer = spare ?? new Writer();
  spare = null;
  writer.pos = 0;
  return writer;
}

/** Gives a writer back; one whose encoder has thrown is not. */
export function returnWriter(writer: Writer): void {
  const isPlain = writer.fills === null && writer.marks === null && !writer.busy;
  if (isPlain && writer.buf.length <= SPARE_BYTES_MAX) spare = writer;
}
