// Duty: the placeholders of the record that is being written, and the PATCHES record after it that
// lists them.

import type { Writer } from "../codec/writer.js";
import { OP_PATCHES } from "../native/contract.js";
import { readU32 } from "../native/frame.js";

/** The part of the record that a placeholder is in. */
export const IN_KEY = 0;
export const IN_VALUE = 1;
export const IN_MESSAGE = 2;

/** Size of one entry of a PATCHES record: place, offset, placeholder. */
const PATCH_BYTES = 1 + 4 + 8;

/** One placeholder of the record that is being written. */
export interface Patch {
  readonly place: number;
  readonly offset: number;
  readonly placeholder: number;
}

/** Ends the key or value that was just written: its marks become patches. */
export function endPlace(writer: Writer, place: number): void {
  const patches = (writer.patches ??= []);
  for (const { offset, placeholder } of writer.marks!) patches.push({ place, offset, placeholder });
  writer.marks = null;
}

const U32 = 2 ** 32;

/** Writes the PATCHES of the record that was just written. */
export function putPatches(writer: Writer): void {
  const patches = writer.patches!;
  writer.patches = null;
  writer.u8(OP_PATCHES);
  writer.u32(patches.length);
  for (const { place, offset, placeholder } of patches) {
    writer.u8(place);
    writer.u32(offset);
    writer.u32(placeholder % U32);
    writer.u32(Math.floor(placeholder / U32));
  }
}

/** No patch is in the key. */
export const NONE = -1;

/** The offset of the first patch in a key, of the patches at `at`: their number, then each. */
export function firstInKey(buf: Buffer, at: number): number {
  let first = NONE;
  let patch = at + 4;
  for (let left = readU32(buf, at); left > 0; left--, patch += PATCH_BYTES) {
    if (buf[patch] !== IN_KEY) continue;
    const offset = readU32(buf, patch + 1);
    if (first === NONE || offset < first) first = offset;
  }
  return first;
}

/** Discards the placeholders of a record that is removed. */
export function forgetPatches(writer: Writer): void {
  writer.marks = null;
  writer.patches = null;
}
