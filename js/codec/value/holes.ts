/**
 * Arrays that lose elements while they are written: a getter inside of an element has made the array
 * shorter, or has deleted elements. As in V8, the others are stored under their indices.
 *
 * The array is written as one without holes, with a byte for each missing element. Then edits turn
 * it into the form of arrays with holes.
 */

import type { Buffer } from "node:buffer";
import type { Edit } from "./splice";

/** What is in the place of a missing element until the edits are made. */
const ABSENT = 0xf7;

/** Whether an element of an array is missing; `items` is the array, or a copy of it made before. */
export function isMissing(
  items: readonly unknown[],
  array: readonly unknown[],
  index: number,
  item: unknown,
): boolean {
  if (item !== undefined && (items === array || index < array.length)) return false;
  return !Object.hasOwn(array, index);
}

/** What an encoder has for this. */
interface Output {
  readonly buf: Buffer;
  pos: number;
  room(bytes: number): void;
  edit(edit: Edit): void;
  /** The counts of the maps whose heads are edited, by position. */
  changedHeads(): ReadonlyMap<number, number>;
}

/** The elements of the array that is being written that are missing, in order. */
export class Holes {
  readonly #indices: number[] = [];

  /** Writes nothing in the place of element `index`. */
  add(encoder: Output, index: number): void {
    encoder.room(1);
    encoder.buf[encoder.pos++] = ABSENT;
    this.#indices.push(index);
  }

  /** The array of that length begins at `at`, its first element at `first`; all are written. */
  finish(encoder: Output, at: number, first: number, length: number): void {
    const count = length - this.#indices.length;
    encoder.edit({ kind: "array", at, drop: first - at, length, count });
    const counts = encoder.changedHeads();
    let next = 0;
    for (let index = 0, start = first; index < length; index++) {
      if (this.#indices[next] === index) {
        next++;
        encoder.edit({ kind: "nothing", at: start, drop: 1 });
        start++;
      } else {
        encoder.edit({ kind: "key", at: start, drop: 0, index });
        start = skip(encoder.buf, start, counts);
      }
    }
  }
}

/** The position behind the item at `at`. The counts of maps whose keys have vanished are in `counts`, by position. */
function skip(buf: Buffer, at: number, counts: ReadonlyMap<number, number>): number {
  let end = at;
  for (let left = 1; left > 0; left--) {
    const start = end;
    const major = buf[start] >> 5;
    const info = buf[start] & 31;
    const width = info < 24 ? 0 : 1 << (info - 24);
    end += 1 + width;
    if (major === 0 || major === 1 || major === 7) continue;
    let argument = info;
    if (width > 0) {
      argument = 0;
      for (let i = start + 1; i < end; i++) argument = argument * 256 + buf[i];
    }
    if (major === 2 || major === 3) end += argument;
    else if (major === 4) left += argument;
    else if (major === 5) left += 2 * (counts.get(start) ?? argument);
    else left++;
  }
  return end;
}

/** Those of the edits that change the head of a map. */
export function headsOf(edits: readonly Edit[]): Map<number, number> {
  const heads = new Map<number, number>();
  for (const edit of edits) if (edit.kind === "head") heads.set(edit.at, edit.count);
  return heads;
}
