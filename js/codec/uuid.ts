/**
 * `KvUuidV7`: a placeholder for a UUID that the commit makes. In encoded keys and values it is the
 * text of the nil UUID; the writer records the offset, and the commit overwrites the text.
 */

import { defineProperty } from "../model/define";
import { misuse } from "../model/errors";
import type { Writer } from "./writer";

/** The text in place of a UUID until the commit. */
export const NIL_UUID = "00000000-0000-0000-0000-000000000000";

/** Known to this module and to `kv.uuidv7()`: only they make placeholders. */
export const MAKES_UUID = Symbol("makes a KvUuidV7");

/** Placeholders that this thread has made. */
let made = 0;

/** The UUIDs of a commit, by the result that it gave. */
const resolved = new WeakMap<object, ReadonlyMap<number, string>>();

/** Keeps the UUIDs of a commit for {@link KvUuidV7.uuidIn}. */
export function keepUuids(result: object, uuids: ReadonlyMap<number, string>): void {
  resolved.set(result, uuids);
}

export class KvUuidV7 {
  readonly #number: number;

  constructor(token: symbol) {
    if (token !== MAKES_UUID) {
      throw misuse("KvUuidV7 can not be constructed: use kv.uuidv7() instead");
    }
    this.#number = ++made;
    Object.freeze(this);
  }

  /** The placeholder's number; undefined for anything else. Runs no code of the value's. */
  static numberOf(value: object): number | undefined {
    return #number in value ? value.#number : undefined;
  }

  uuidIn(result: object): string {
    const uuid = resolved.get(result)?.get(this.#number);
    if (uuid !== undefined) return uuid;
    throw misuse("This placeholder was not used in the commit of that result");
  }

  toString(): string {
    return `KvUuidV7(#${this.#number})`;
  }

  /** A placeholder has no text before its commit, so a text made of it would be wrong. */
  toJSON(): never {
    throw misuse(NO_TEXT);
  }

  [Symbol.toPrimitive](): never {
    throw misuse(NO_TEXT);
  }

  get [Symbol.toStringTag](): string {
    return "KvUuidV7";
  }
}

const NO_TEXT =
  "A KvUuidV7 has no text before its commit: use it as a whole key part or value, " +
  "and read the UUID with its uuidIn(result) afterwards";

for (const name of ["nodejs.util.inspect.custom", "Deno.customInspect"]) {
  defineProperty(KvUuidV7.prototype, Symbol.for(name), {
    value: KvUuidV7.prototype.toString,
    enumerable: false,
    configurable: true,
    writable: true,
  });
}

/** Remembers a placeholder whose text begins at `offset`. Throws where no commit fills it in. */
export function markUuid(writer: Writer, placeholder: number, offset: number): void {
  if (!writer.resolves) {
    throw misuse("A KvUuidV7 stands for nothing here: only a commit can fill it in");
  }
  (writer.marks ??= []).push({ offset, placeholder });
}
