/**
 * The internal slots of buffers and views. A subclass, or a property defined on one object, can
 * return other values for `length`, `buffer` and the like, and writing by those would use the wrong
 * memory. Nothing here runs code of the caller.
 */

type Getter = (this: unknown) => unknown;

function getterOf(prototype: object, name: PropertyKey): Getter | undefined {
  return Object.getOwnPropertyDescriptor(prototype, name)?.get;
}

const arrays = Object.getPrototypeOf(Uint8Array.prototype) as object;
const arrayKindOf = getterOf(arrays, Symbol.toStringTag)!;
const arrayBufferOf = getterOf(arrays, "buffer")!;
const arrayOffsetOf = getterOf(arrays, "byteOffset")!;
const arrayBytesOf = getterOf(arrays, "byteLength")!;
const arrayLengthOf = getterOf(arrays, "length")!;
const dataBufferOf = getterOf(DataView.prototype, "buffer")!;
const dataOffsetOf = getterOf(DataView.prototype, "byteOffset")!;
const dataBytesOf = getterOf(DataView.prototype, "byteLength")!;
const bufferBytesOf = getterOf(ArrayBuffer.prototype, "byteLength")!;
/** Throws TypeError for a typed array whose buffer is detached, or ends before it. */
const firstItemOf = (arrays as { at: (this: unknown, index: number) => unknown }).at;
/** Absent in runtimes without resizable buffers. */
const resizableOf = getterOf(ArrayBuffer.prototype, "resizable");
const maxBytesOf = getterOf(ArrayBuffer.prototype, "maxByteLength");
const resizeOf = (ArrayBuffer.prototype as { resize?: (this: unknown, bytes: number) => void })
  .resize;

/** The class of a typed array, "Uint8Array" for its subclasses too; undefined for a DataView. */
export function arrayKind(view: ArrayBufferView): string | undefined {
  return arrayKindOf.call(view) as string | undefined;
}

/** Items of a typed array. */
export function arrayLength(view: ArrayBufferView): number {
  return arrayLengthOf.call(view) as number;
}

/** Whether a view is a DataView. The functions below take the result. */
function isDataView(view: ArrayBufferView): boolean {
  return arrayKindOf.call(view) === undefined;
}

export function viewBuffer(view: ArrayBufferView, isData = isDataView(view)): ArrayBufferLike {
  return (isData ? dataBufferOf : arrayBufferOf).call(view) as ArrayBufferLike;
}

/** Throws TypeError for a DataView beyond the end of its shrunken buffer. */
export function viewOffset(view: ArrayBufferView, isData = isDataView(view)): number {
  return (isData ? dataOffsetOf : arrayOffsetOf).call(view) as number;
}

/** Bytes under a view. Throws as {@link viewOffset}. */
export function viewBytes(view: ArrayBufferView, isData = isDataView(view)): number {
  return (isData ? dataBytesOf : arrayBytesOf).call(view) as number;
}

/** Whether the buffer of a typed array is detached, or has shrunk so that it ends before the array. */
export function isArrayGone(view: ArrayBufferView): boolean {
  try {
    firstItemOf.call(view, 0);
    return false;
  } catch {
    return true;
  }
}

/** The same of a DataView. */
export function isDataGone(view: ArrayBufferView): boolean {
  try {
    viewBytes(view, true);
    return false;
  } catch {
    return true;
  }
}

/** Bytes of a buffer that is not shared. */
export function bufferBytes(buffer: ArrayBuffer): number {
  return bufferBytesOf.call(buffer) as number;
}

/** Whether a buffer that is not shared can change its size. */
export function isResizable(buffer: ArrayBuffer): boolean {
  return resizableOf !== undefined && resizableOf.call(buffer) === true;
}

export function maxBytes(buffer: ArrayBuffer): number {
  return maxBytesOf!.call(buffer) as number;
}

export function resize(buffer: ArrayBuffer, bytes: number): void {
  resizeOf!.call(buffer, bytes);
}
