/**
 * ArrayBuffers and their views, in (docs/format.md §2.1).
 *
 * A view that stands alone is written as its own bytes. Only when a second view or the buffer
 * itself turns up in the same value are they written as views of one buffer; the first view is then
 * rewritten by an edit.
 */

import { Buffer } from "node:buffer";
import { types } from "node:util";
import type { Encoder } from "./encode";
import { INSIDE_EDIT } from "./splice";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

/** A buffer that the value holds, or holds a view of. */
interface Seen {
  buffer: ArrayBuffer;
  /** The view written as its own bytes at [at, end), as long as nothing else uses the buffer. */
  alone: { name: string; at: number; end: number; byteOffset: number; length: number } | null;
  /** Its number among the value's objects, once it is written. */
  object: number;
}

export type SeenBuffers = Seen[];

type Resizable = ArrayBuffer & {
  resizable?: boolean;
  maxByteLength: number;
  resize(bytes: number): void;
};

const get = (prototype: object, name: PropertyKey) => {
  const getter = Object.getOwnPropertyDescriptor(prototype, name)!.get as (
    this: unknown,
  ) => unknown;
  return (view: unknown) => getter.call(view);
};
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const arrayName = get(typedArray, Symbol.toStringTag) as (view: unknown) => string | undefined;
const arrayBuffer = get(typedArray, "buffer") as (view: unknown) => ArrayBuffer;
const arrayOffset = get(typedArray, "byteOffset") as (view: unknown) => number;
const arrayBytes = get(typedArray, "byteLength") as (view: unknown) => number;
const arrayLength = get(typedArray, "length") as (view: unknown) => number;
const dataBuffer = get(DataView.prototype, "buffer") as (view: unknown) => ArrayBuffer;
const dataOffset = get(DataView.prototype, "byteOffset") as (view: unknown) => number;
const dataBytes = get(DataView.prototype, "byteLength") as (view: unknown) => number;

/** The class of a view: "Uint8Array" for its subclasses too. */
export function viewName(view: ArrayBufferView): string {
  return arrayName(view) ?? "DataView";
}

export function writeView(encoder: Encoder, view: ArrayBufferView): void {
  if (encoder.met(view)) return;
  const name = arrayName(view) ?? "DataView";
  const isData = name === "DataView";
  const buffer = isData ? dataBuffer(view) : arrayBuffer(view);
  if (types.isSharedArrayBuffer(buffer))
    throw new Error("#<SharedArrayBuffer> could not be cloned.");
  refuseDetached(buffer);
  const byteLength = isData ? dataBytes(view) : arrayBytes(view);
  if (view instanceof Buffer) {
    // Buffers share one pool; they are bytes and nothing else.
    encoder.bytes(new Uint8Array(buffer, arrayOffset(view), byteLength));
    return;
  }
  const byteOffset = isData ? dataOffset(view) : arrayOffset(view);
  const length = isData ? byteLength : arrayLength(view);
  const seen = find(encoder, buffer);
  if (seen === null && (buffer as Resizable).resizable !== true) {
    const at = encoder.pos;
    writeAlone(encoder, name, new Uint8Array(buffer, byteOffset, byteLength));
    encoder.buffers.push({
      buffer,
      object: -1,
      alone: { name, at, end: encoder.pos, byteOffset, length },
    });
    return;
  }
  encoder.object("View", 5);
  encoder.text(name);
  writeBuffer(encoder, buffer);
  encoder.number(byteOffset);
  if (tracksLength(view, buffer, byteOffset, byteLength, isData)) encoder.nil();
  else encoder.number(length);
}

function writeAlone(encoder: Encoder, name: string, bytes: Uint8Array): void {
  if (name === "DataView") encoder.object("DataView", 2);
  else if (name !== "Uint8Array") encoder.head(6, VIEW_TAGS[name]);
  encoder.bytes(bytes);
}

/** Writes an ArrayBuffer as an object of its own, or a reference when the value already has it. */
export function writeBuffer(encoder: Encoder, buffer: ArrayBuffer): void {
  const seen = find(encoder, buffer);
  if (seen !== null) {
    if (seen.alone !== null) share(encoder, seen);
    encoder.reference(seen.object);
    return;
  }
  refuseDetached(buffer);
  encoder.buffers.push({ buffer, object: encoder.number_of(buffer, encoder.pos), alone: null });
  const resizable = (buffer as Resizable).resizable === true;
  encoder.object("ArrayBuffer", resizable ? 3 : 2);
  encoder.bytes(new Uint8Array(buffer));
  if (resizable) encoder.number((buffer as Resizable).maxByteLength);
}

/** The buffer is not the first view's alone: that view's bytes become a view of it. */
function share(encoder: Encoder, seen: Seen): void {
  const { name, at, end, byteOffset, length } = seen.alone!;
  refuseDetached(seen.buffer);
  seen.object = encoder.number_of(seen.buffer, INSIDE_EDIT);
  seen.alone = null;
  encoder.edit({
    kind: "view",
    at,
    drop: end - at,
    object: seen.object,
    view: { name, bytes: new Uint8Array(seen.buffer), byteOffset, length },
  });
}

function find(encoder: Encoder, buffer: ArrayBuffer): Seen | null {
  const { buffers } = encoder;
  for (let i = 0; i < buffers.length; i++) if (buffers[i].buffer === buffer) return buffers[i];
  return null;
}

function refuseDetached(buffer: ArrayBuffer): void {
  if (buffer.byteLength !== 0) return;
  try {
    new Uint8Array(buffer);
  } catch {
    throw new TypeError("An ArrayBuffer is detached and could not be cloned.");
  }
}

/**
 * Whether the view's length follows its buffer's. No property tells; resizing the buffer does, and
 * back again it is as it was. No code but this runs in between.
 */
function tracksLength(
  view: ArrayBufferView,
  buffer: ArrayBuffer,
  byteOffset: number,
  byteLength: number,
  isData: boolean,
): boolean {
  const resizable = buffer as Resizable;
  if (resizable.resizable !== true) return false;
  const bytes = buffer.byteLength;
  const step = VIEW_BYTES[viewName(view)];
  if (bytes - byteOffset - byteLength >= step) return false;
  const measure = () => (isData ? dataBytes(view) : arrayBytes(view));
  if (bytes + step <= resizable.maxByteLength) {
    resizable.resize(bytes + step);
    const tracks = measure() !== byteLength;
    resizable.resize(bytes);
    return tracks;
  }
  if (byteLength < step) return false;
  const kept = new Uint8Array(buffer.slice(0));
  resizable.resize(bytes - step);
  let tracks = true;
  try {
    // A view of fixed length is out of bounds now: an array measures 0, a DataView throws.
    tracks =
      measure() === byteLength - step &&
      (byteLength !== step || isData || arrayOffset(view) === byteOffset);
  } catch {
    tracks = false;
  }
  resizable.resize(bytes);
  new Uint8Array(buffer).set(kept);
  return tracks;
}
