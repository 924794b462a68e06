/**
 * Plain objects, out.
 */

import type { Decoder } from "./decode";

/** The object of the `count` entries that follow. */
export function readRecord(decoder: Decoder, count: number): object {
  return decoder.entries({}, count);
}
