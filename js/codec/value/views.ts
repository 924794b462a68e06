/**
 * ArrayBuffers and their views, in (docs/format.md §2.1).
 *
 * A view is written as its own bytes. If a second view of its buffer, or the buffer itself, occurs in
 * the same value, both are written as views of one buffer, and an edit rewrites the first view.
 */

import { misuse } from "../../model/errors";
import { Buffer } from "node:buffer";
import { types } from "node:util";
import {
  arrayKind,
  arrayLength,
  bufferBytes,
  isArrayGone,
  isDataGone,
  isResizable,
  maxBytes,
  resize,
  viewBuffer,
  viewBytes,
  viewOffset,
} from "../slots";
import type { Encoder, SeenBuffer } from "./encoder";
import { blame, notCloneable } from "./reject";
import { INSIDE_EDIT } from "./splice";
import { VIEW_BYTES, VIEW_TAGS } from "./tags";

const isBuffer = Buffer.isBuffer;

/** The class of a view: "Uint8Array" for its subclasses too. */
export function viewName(view: ArrayBufferView): string {
  return arrayKind(view) ?? "DataView";
}

export function writeView(encoder: Encoder, view: ArrayBufferView): void {
  if (encoder.met(view)) return;
  const name = viewName(view);
  const isData = name === "DataView";
  const buffer = viewBuffer(view, isData);
  if (types.isSharedArrayBuffer(buffer))
    throw blame(new Error("#<SharedArrayBuffer> could not be cloned."), view);
  if (isData) refuseDetached(buffer, view);
  if (isData ? isDataGone(view) : viewBytes(view, false) === 0) refuseGone(view, buffer);
  const byteOffset = viewOffset(view, isData);
  const byteLength = viewBytes(view, isData);
  if (isBuffer(view)) {
    // Buffers share one pool; they are bytes and nothing else.
    encoder.bytes(new Uint8Array(buffer, byteOffset, byteLength));
    return;
  }
  const length = isData ? byteLength : arrayLength(view);
  const seen = find(encoder, buffer);
  if (seen === null && !isResizable(buffer)) {
    const at = encoder.pos;
    writeAlone(encoder, name, new Uint8Array(buffer, byteOffset, byteLength));
    const isWhole = byteLength === bufferBytes(buffer);
    encoder.buffers.push({
      buffer,
      bytes: Number.POSITIVE_INFINITY,
      object: -1,
      alone: { name, at, end: encoder.pos, byteOffset, length, isWhole },
    });
    return;
  }
  encoder.object("View", 5);
  encoder.text(name);
  writeBuffer(encoder, buffer);
  const tracks = tracksLength(view, buffer, byteOffset, byteLength);
  if ((tracks ? byteOffset : byteOffset + byteLength) > find(encoder, buffer)!.bytes) {
    throw misuse("An ArrayBuffer changed its size while it was being stored");
  }
  encoder.number(byteOffset);
  if (tracks) encoder.nil();
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
  const bytes = bufferBytes(buffer);
  const object = encoder.number_of(buffer, encoder.pos);
  encoder.buffers.push({ buffer, bytes, object, alone: null });
  const resizable = isResizable(buffer);
  encoder.object("ArrayBuffer", resizable ? 3 : 2);
  encoder.bytes(new Uint8Array(buffer));
  if (resizable) encoder.number(maxBytes(buffer));
}

/** A second view uses the buffer: the bytes of the first one become a view of the buffer. */
function share(encoder: Encoder, seen: SeenBuffer): void {
  const { name, at, end, byteOffset, length, isWhole } = seen.alone!;
  // As V8, which writes a buffer with its first view: a getter may have changed it since.
  const written = isWhole ? encoder.copyBefore(end, length * (VIEW_BYTES[name] ?? 1)) : null;
  if (written === null) refuseDetached(seen.buffer);
  seen.object = encoder.number_of(seen.buffer, INSIDE_EDIT);
  seen.alone = null;
  encoder.edit({
    kind: "view",
    at,
    drop: end - at,
    object: seen.object,
    view: { name, bytes: written ?? new Uint8Array(seen.buffer), byteOffset, length },
  });
}

function find(encoder: Encoder, buffer: ArrayBuffer): SeenBuffer | null {
  const { buffers } = encoder;
  for (let i = 0; i < buffers.length; i++) if (buffers[i].buffer === buffer) return buffers[i];
  return null;
}

function refuseDetached(buffer: ArrayBuffer, part: object = buffer): void {
  if (bufferBytes(buffer) !== 0) return;
  try {
    new Uint8Array(buffer);
  } catch {
    throw blame(misuse("An ArrayBuffer is detached and could not be cloned."), part);
  }
}

/** Refuses a view without bytes whose buffer is detached, or has shrunk so that it ends before the view. */
function refuseGone(view: ArrayBufferView, buffer: ArrayBuffer): void {
  refuseDetached(buffer, view);
  if (arrayKind(view) === undefined) throw notCloneable(view);
  // As V8 names it.
  if (isArrayGone(view)) throw blame(misuse("[object Object] could not be cloned."), view);
}

/**
 * Whether the length of the view follows that of its buffer. No property tells; the function resizes
 * the buffer, compares and restores the size. No other code runs in between.
 */
function tracksLength(
  view: ArrayBufferView,
  buffer: ArrayBuffer,
  byteOffset: number,
  byteLength: number,
): boolean {
  if (!isResizable(buffer)) return false;
  const isData = arrayKind(view) === undefined;
  const bytes = bufferBytes(buffer);
  const step = VIEW_BYTES[viewName(view)];
  if (bytes - byteOffset - byteLength >= step) return false;
  if (bytes + step <= maxBytes(buffer)) {
    resize(buffer, bytes + step);
    const tracks = viewBytes(view) !== byteLength;
    resize(buffer, bytes);
    return tracks;
  }
  if (byteLength < step) return false;
  const kept = new Uint8Array(new Uint8Array(buffer));
  resize(buffer, bytes - step);
  let tracks = true;
  try {
    // A view of fixed length is out of bounds now: an array measures 0, a DataView throws.
    tracks =
      viewBytes(view) === byteLength - step &&
      (byteLength !== step || isData || viewOffset(view) === byteOffset);
  } catch {
    tracks = false;
  }
  resize(buffer, bytes);
  new Uint8Array(buffer).set(kept);
  return tracks;
}
