// Duty: how a write would have broken unique indexes: read from its outcome, and as an error.

import { decodeKey } from "../codec/key.js";
import { printKey } from "../codec/key-text.js";
import { KvUniqueError } from "../model/errors.js";
import { readU32 } from "../native/frame.js";
import type { KvViolation } from "../model/types.js";

export class Violations {
  private constructor(
    readonly all: KvViolation[],
    /** Their end in the frame. */
    readonly end: number,
  ) {}

  /** Their count, then of each the name of the index and both keys, each behind its length. */
  static read(data: Buffer, start: number): Violations {
    let at = start + 4;
    const span = (): [number, number] => {
      const from = at + 4;
      at = from + readU32(data, at);
      return [from, at];
    };
    const all = Array.from({ length: readU32(data, start) }, () => {
      const index = data.toString("utf8", ...span());
      const key = decodeKey(data, ...span());
      return { index, key, other: decodeKey(data, ...span()) };
    });
    return new Violations(all, at);
  }
}

/** The error of a write that breaks unique indexes. */
export function notUnique(violations: KvViolation[]): KvUniqueError {
  const texts = violations.map(
    ({ index, key, other }) =>
      `the unique index '${index}' has the value of ${printKey(key)} for ${printKey(other)} already`,
  );
  return new KvUniqueError(`${texts.join("; ")}; nothing was written`, violations);
}
