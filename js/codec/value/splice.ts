/**
 * The second pass over an encoded value: it inserts marks, references and corrections that the first
 * pass did not know.
 *
 * While a value is written, an object that occurs again leaves a placeholder of known width and an edit.
 * Only when there are edits is the value copied once more, with the tag 28 marks and the final
 * indices put in. Most values have none.
 */

import { Buffer } from "node:buffer";
import { TAG_OBJECT, TAG_SHAREABLE, TAG_SHARED } from "./tags";

/** A replacement of the `drop` bytes at `at`. */
export type Edit =
  /** A reference to the object with this number in order of first meeting. */
  | { kind: "reference"; at: number; drop: number; object: number }
  /** A map's head, when some of its keys vanished while it was written. */
  | { kind: "head"; at: number; drop: number; count: number }
  /** An array's head, when some of its elements vanished: `count` of `length` are left. */
  | { kind: "array"; at: number; drop: number; length: number; count: number }
  /** The index of an element that is left, before it. */
  | { kind: "key"; at: number; drop: number; index: number }
  /** What is in the place of an element that has vanished. */
  | { kind: "nothing"; at: number; drop: number }
  /** A view's own bytes, when its buffer turned out to be shared; the buffer is that object. */
  | { kind: "view"; at: number; drop: number; object: number; view: SharedView };

export interface SharedView {
  name: string;
  bytes: Uint8Array;
  byteOffset: number;
  length: number;
}

/**
 * Bytes of the placeholder that stands for a reference: any width works, because it is removed.
 */
export const PLACEHOLDER_BYTES = 1;

/** A head, or an index as text. */
const HEAD_BYTES_MAX = 11;
const ARRAY_OVERHEAD_BYTES = 32;
const VIEW_OVERHEAD_BYTES = 64;

/**
 * Numbers an object that is written inside a view's edit: it has no place of its own to be marked
 * at.
 */
export const INSIDE_EDIT = -1;

/**
 * The value at [start, end) of `buf` with all edits made, in a buffer of its own. `starts` has the
 * place of every object by its number. `fills`, and whatever else has an offset, in order, are moved
 * along.
 */
export function splice(
  buf: Buffer,
  start: number,
  end: number,
  edits: Edit[],
  starts: readonly number[],
  fills: { offset: number }[] | null,
): Buffer {
  const shared = new Set<number>();
  for (const edit of edits) if (edit.kind === "reference") shared.add(edit.object);

  // Steps in the order of the bytes; a key comes before its element, a mark before its object.
  const steps: { at: number; edit: Edit | null; object: number }[] = [];
  for (const object of shared) {
    if (starts[object] !== INSIDE_EDIT) steps.push({ at: starts[object], edit: null, object });
  }
  for (const edit of edits) steps.push({ at: edit.at, edit, object: -1 });
  steps.sort((a, b) => a.at - b.at || rankOf(a.edit) - rankOf(b.edit));

  let room = end - start + steps.length * HEAD_BYTES_MAX;
  for (const edit of edits) {
    if (edit.kind === "view") room += edit.view.bytes.length + VIEW_OVERHEAD_BYTES;
    else if (edit.kind === "array") room += ARRAY_OVERHEAD_BYTES;
  }
  const out = Buffer.allocUnsafeSlow(room);
  const ranks = new Map<number, number>();
  let from = start;
  let to = 0;
  let nextFill = 0;

  const copy = (until: number): void => {
    if (fills !== null) {
      // A fill's bytes are never inside an edit, so the distance is the same for all of it.
      while (nextFill < fills.length && fills[nextFill].offset < until) {
        fills[nextFill].offset += to - from;
        nextFill++;
      }
    }
    out.set(buf.subarray(from, until), to);
    to += until - from;
    from = until;
  };
  const mark = (object: number): void => {
    ranks.set(object, ranks.size);
    to = writeHead(out, to, 6, TAG_SHAREABLE);
  };

  for (const step of steps) {
    copy(step.at);
    const edit = step.edit;
    if (edit === null) {
      mark(step.object);
      continue;
    }
    from += edit.drop;
    if (edit.kind === "reference") {
      to = writeHead(out, to, 6, TAG_SHARED);
      to = writeHead(out, to, 0, ranks.get(edit.object)!);
    } else if (edit.kind === "head") {
      to = writeHead(out, to, 5, edit.count);
    } else if (edit.kind === "key") {
      to = writeAscii(out, to, String(edit.index));
    } else if (edit.kind === "array") {
      to = writeHead(out, to, 6, TAG_OBJECT);
      to = writeHead(out, to, 4, 3);
      to = writeAscii(out, to, "Array");
      to = writeHead(out, to, 0, edit.length);
      to = writeHead(out, to, 5, edit.count);
    } else if (edit.kind === "view") {
      const { name, bytes, byteOffset, length } = edit.view;
      to = writeHead(out, to, 6, TAG_OBJECT);
      to = writeHead(out, to, 4, 5);
      to = writeAscii(out, to, "View");
      to = writeAscii(out, to, name);
      if (shared.has(edit.object)) mark(edit.object);
      to = writeHead(out, to, 6, TAG_OBJECT);
      to = writeHead(out, to, 4, 2);
      to = writeAscii(out, to, "ArrayBuffer");
      to = writeHead(out, to, 2, bytes.length);
      out.set(bytes, to);
      to += bytes.length;
      to = writeHead(out, to, 0, byteOffset);
      to = writeHead(out, to, 0, length);
    }
  }
  copy(end);
  return out.subarray(0, to) as Buffer;
}

/** The order of steps at one place. */
function rankOf(edit: Edit | null): number {
  if (edit === null) return 1;
  return edit.kind === "key" ? 0 : 2;
}

/**
 * Writes a CBOR head at `at`, shortest form; the room must be there. Returns the position behind
 * it.
 */
export function writeHead(buf: Buffer, at: number, major: number, value: number): number {
  const type = major << 5;
  if (value < 24) {
    buf[at] = type | value;
    return at + 1;
  }
  if (value < 0x100) {
    buf[at] = type | 24;
    buf[at + 1] = value;
    return at + 2;
  }
  if (value < 0x10000) {
    buf[at] = type | 25;
    buf[at + 1] = value >>> 8;
    buf[at + 2] = value;
    return at + 3;
  }
  let low = value;
  if (value < 0x1_0000_0000) {
    buf[at++] = type | 26;
  } else {
    buf[at++] = type | 27;
    const high = Math.floor(value / 0x1_0000_0000);
    buf[at++] = high >>> 24;
    buf[at++] = high >>> 16;
    buf[at++] = high >>> 8;
    buf[at++] = high;
    low = value % 0x1_0000_0000;
  }
  buf[at] = low >>> 24;
  buf[at + 1] = low >>> 16;
  buf[at + 2] = low >>> 8;
  buf[at + 3] = low;
  return at + 4;
}

function writeAscii(buf: Buffer, at: number, text: string): number {
  let to = writeHead(buf, at, 3, text.length);
  for (let i = 0; i < text.length; i++) buf[to++] = text.charCodeAt(i);
  return to;
}
