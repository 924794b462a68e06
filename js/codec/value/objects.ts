/**
 * Tag 27 and the typed arrays, out (docs/format.md §2.1).
 */

import { types } from "node:util";
import { bufferBytes, resize } from "../slots";
import { type Decoder, define, malformed } from "./decoder";
import { readPacked } from "./packed";
import { ERROR_NAMES, VIEW_TAGS } from "./tags";
import { defineProperty } from "../../model/define";

type ViewConstructor = new (
  buffer: ArrayBuffer,
  byteOffset?: number,
  length?: number,
) => ArrayBufferView;
type ResizableConstructor = new (bytes: number, options: { maxByteLength: number }) => ArrayBuffer;

const scope = globalThis as unknown as Record<string, unknown>;

/** View classes by name; Float16Array is not in every runtime. */
const viewClasses = new Map<string, ViewConstructor>();
const viewsByTag = new Map<number, ViewConstructor & { BYTES_PER_ELEMENT: number }>();
for (const name of ["Uint8Array", "DataView", ...Object.keys(VIEW_TAGS)]) {
  const constructor = scope[name] as (ViewConstructor & { BYTES_PER_ELEMENT: number }) | undefined;
  if (constructor === undefined) continue;
  viewClasses.set(name, constructor);
  if (Object.hasOwn(VIEW_TAGS, name)) viewsByTag.set(VIEW_TAGS[name], constructor);
}

const errorClasses = new Map<string, ErrorConstructor>();
for (const name of ERROR_NAMES) errorClasses.set(name, scope[name] as ErrorConstructor);

/** RFC 8746: the bytes of a view that stands alone. */
export function readTypedArray(decoder: Decoder, tag: number): ArrayBufferView {
  const View = viewsByTag.get(tag);
  if (View === undefined) return malformed();
  const bytes = decoder.bytes();
  if (bytes.length % View.BYTES_PER_ELEMENT !== 0) malformed();
  return new View(bytes.buffer as ArrayBuffer);
}

/** Tag 27: `[name, …]`. */
export function readObject(decoder: Decoder, slot: number): unknown {
  const byte = decoder.next();
  if (byte >> 5 !== 4) malformed();
  const items = decoder.argument(byte) - 1;
  const name = decoder.string();
  if (errorClasses.has(name)) return readError(decoder, name, items, slot);
  if (name === "Array")
    return items === 1 ? readPacked(decoder, slot) : readSparse(decoder, items, slot);
  return decoder.fill(slot, readAtom(decoder, name, items));
}

/** Objects that cannot refer to themselves. */
function readAtom(decoder: Decoder, name: string, items: number): object {
  switch (name) {
    case "RegExp": {
      if (items !== 2) malformed();
      const source = decoder.string();
      return new RegExp(source, decoder.string());
    }
    case "Boolean":
    case "Number":
    case "String":
    case "BigInt": {
      if (items !== 1) malformed();
      const primitive = decoder.value();
      if (typeof primitive !== name.toLowerCase()) malformed();
      return Object(primitive) as object;
    }
    case "ArrayBuffer": {
      if (items !== 1 && items !== 2) malformed();
      const bytes = decoder.bytes();
      if (items === 1) return bytes.buffer;
      const maxByteLength = decoder.index();
      const buffer = new (ArrayBuffer as unknown as ResizableConstructor)(bytes.length, {
        maxByteLength,
      });
      new Uint8Array(buffer).set(bytes);
      return buffer;
    }
    case "DataView":
      if (items !== 1) malformed();
      return new DataView(decoder.bytes().buffer);
    case "View":
      return readView(decoder, items);
    case "Blob": {
      if (items !== 2) malformed();
      const bytes = decoder.bytes() as Uint8Array<ArrayBuffer>;
      return new Blob([bytes], { type: decoder.string() });
    }
    case "File": {
      if (items !== 4) malformed();
      const bytes = decoder.bytes() as Uint8Array<ArrayBuffer>;
      const type = decoder.string();
      const name = decoder.string();
      const lastModified = decoder.value();
      return Number.isSafeInteger(lastModified)
        ? new File([bytes], name, { type, lastModified: lastModified as number })
        : malformed();
    }
    case "DOMException": {
      if (items !== 2 && items !== 3) malformed();
      const message = decoder.string();
      const exception = new DOMException(message, decoder.string());
      if (items === 3) hide(exception, "stack", decoder.string());
      return exception;
    }
    default:
      return malformed();
  }
}

function readView(decoder: Decoder, items: number): object {
  if (items !== 4) malformed();
  const View = viewClasses.get(decoder.string());
  const buffer = decoder.value();
  const byteOffset = decoder.index();
  const length = decoder.value();
  if (View === undefined || !types.isArrayBuffer(buffer)) return malformed();
  if (length === null) {
    if ((buffer as { resizable?: boolean }).resizable !== true) malformed();
    return trackingView(View, buffer, byteOffset);
  }
  if (typeof length !== "number") malformed();
  return new View(buffer, byteOffset, length as number);
}

/**
 * A view whose length follows that of its buffer. Some engines make one only while the buffer holds
 * whole items, which it need not do later.
 */
function trackingView(View: ViewConstructor, buffer: ArrayBuffer, byteOffset: number): object {
  const step = (View as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
  const size = bufferBytes(buffer);
  const rest = (size - byteOffset) % step;
  if (rest <= 0) return new View(buffer, byteOffset);
  const kept = new Uint8Array(new Uint8Array(buffer));
  resize(buffer, size - rest);
  const view = new View(buffer, byteOffset);
  resize(buffer, size);
  new Uint8Array(buffer).set(kept);
  return view;
}

function readError(decoder: Decoder, name: string, items: number, slot: number): Error {
  if (items !== 1) malformed();
  const byte = decoder.next();
  if (byte >> 5 !== 5) malformed();
  const count = decoder.argument(byte);
  decoder.enter();
  const error = decoder.fill(slot, new (errorClasses.get(name)!)());
  let hasStack = false;
  let seen = "";
  for (let i = 0; i < count; i++) {
    const key = decoder.string();
    if (seen.includes(key)) malformed();
    seen += key;
    if (key === "cause") hide(error, "cause", decoder.value());
    else if (key === "message") hide(error, "message", decoder.string());
    else if (key === "stack") {
      hide(error, "stack", decoder.string());
      hasStack = true;
    } else malformed();
  }
  decoder.depth--;
  // Not the stack of this place.
  if (!hasStack) hide(error, "stack", undefined);
  return error;
}

/** A property as errors have them: not enumerable. */
function hide(object: object, name: string, value: unknown): void {
  defineProperty(object, name, {
    value,
    enumerable: false,
    configurable: true,
    writable: true,
  });
}

/** Array indices, as property names: "0" … "4294967294". */
const INDEX = /^(?:0|[1-9][0-9]{0,9})$/;
const ARRAY_LENGTH_MAX = 2 ** 32 - 1;

function readSparse(decoder: Decoder, items: number, slot: number): unknown[] {
  if (items !== 2) malformed();
  const length = decoder.index();
  if (length > ARRAY_LENGTH_MAX) malformed();
  const byte = decoder.next();
  if (byte >> 5 !== 5) malformed();
  const count = decoder.argument(byte);
  decoder.enter();
  const array = decoder.fill(slot, [] as unknown[]);
  // The engine keeps an array that is mostly holes as a table: the length allocates nothing.
  array.length = length;
  for (let i = 0; i < count; i++) {
    const key = decoder.string();
    if (
      key === "length" ||
      (INDEX.test(key) && Number(key) < ARRAY_LENGTH_MAX && Number(key) >= length)
    )
      malformed();
    define(array, key, decoder.value());
  }
  decoder.depth--;
  return array;
}
