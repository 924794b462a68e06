// Duty: turns a selector and a cursor into the bytes of a start and an end.

import { invalid, misuse } from "../model/errors.js";
import { commonLength, decodeCursor, isOfStart } from "../codec/cursor.js";
import { encodeKey, type KeyPart } from "../codec/key.js";
import { borrowWriter, returnWriter } from "../codec/writer.js";
import { nameOf, overLimit } from "../arguments/check.js";
import { printGiven, printKey, quote } from "../codec/key-text.js";
import { refuseUnknownBounds } from "../arguments/names.js";
import type { KvKey } from "../model/types.js";

/** A selector read once, with its shape checked and its arrays copied. */
export interface Selector {
  readonly prefix: KvKey | undefined;
  readonly start: KvKey | undefined;
  readonly end: KvKey | undefined;
}

/** The keys from `start` (included) to `end` (excluded), in bytes. */
export interface Bounds {
  start: Buffer;
  end: Buffer;
  /** Bytes that cursors leave out: those of the prefix, or that both bounds have in common. */
  readonly common: number;
  /** The parts of the prefix, when they may be put in front of every key as they are. */
  readonly prefix: KeyPart[] | null;
  /** Bytes of {@link prefix}. */
  readonly prefixBytes: number;
}

const BOUND_NAMES = ["prefix", "start", "end"] as const;
const { hasOwn } = Object;

/**
 * Throws TypeError for an invalid combination of bounds, a bound that is not an array, and any
 * other property. `options` are the names of the options of the method.
 */
export function checkSelector(
  method: string,
  selector: unknown,
  options: readonly string[],
): Selector {
  if (selector === undefined || selector === null) {
    throw misuse(
      `Cannot convert undefined or null to object: ${method} needs a selector, ` +
        `as in ${method}({ prefix: [] }) for all entries`,
    );
  }
  if (typeof selector !== "object" || Array.isArray(selector)) throw noBounds(method, selector);
  refuseUnknownBounds(method, selector, options);
  const given = selector as { readonly [N in (typeof BOUND_NAMES)[number]]?: unknown };
  const prefix = hasOwn(given, "prefix") ? copied(method, "prefix", given.prefix) : undefined;
  const start = hasOwn(given, "start") ? copied(method, "start", given.start) : undefined;
  const end = hasOwn(given, "end") ? copied(method, "end", given.end) : undefined;
  if (prefix !== undefined) {
    if (start !== undefined && end !== undefined) {
      throw invalid(
        "Selector can not specify both 'start' and 'end' key when specifying 'prefix': " +
          `${method} takes a prefix with one of them, or start and end without a prefix`,
      );
    }
  } else if (start === undefined || end === undefined) {
    throw noBounds(method, selector);
  }
  return { prefix, start, end };
}

/**
 * As {@link checkSelector}, for a deletion: a bound that is `undefined` is refused, because the
 * deletion would reach further than meant.
 */
export function checkDeletion(
  method: string,
  selector: object,
  options: readonly string[],
): Selector {
  for (const name of BOUND_NAMES) refuseUndefined(method, selector, name);
  return checkSelector(method, selector, options);
}

/** Refuses an option that restricts a deletion and is `undefined`. */
export function refuseUndefined(method: string, given: object, name: string): void {
  if (!Object.hasOwn(given, name) || (given as Record<string, unknown>)[name] !== undefined) return;
  throw invalid(
    `${method}: ${name} is undefined, and more would be deleted than with it: ` +
      `leave ${name} out if that is meant`,
  );
}

/** Deno's text for an invalid selector, and the advice. */
function noBounds(method: string, selector: unknown): TypeError {
  const text = typeof selector === "string" ? quote(selector) : undefined;
  const key = Array.isArray(selector) ? printKey(selector) : text && `[${text}]`;
  const given = key === undefined ? Object.keys(selector as object).join(", ") : (text ?? key);
  return invalid(
    "Selector must specify either 'prefix' or both 'start' and 'end' key: " +
      `${method} was given ${given || nameOf(selector)}; write { prefix: ${key ?? "[]"} }`,
  );
}

/** A bound, copied so that later changes of the array have no effect. */
function copied(method: string, name: string, key: unknown): KvKey | undefined {
  if (key === undefined) return undefined;
  if (Array.isArray(key)) return key.slice();
  const text = typeof key === "string" ? `: write ${name}: [${quote(key)}]` : "";
  throw invalid(
    `invalid type; expected: array, got: ${nameOf(key)}: ${method}: ${name} is a key${text}`,
  );
}

/** The first byte after every part's tag: ends the keys of a prefix. */
const AFTER_PREFIX = 0xff;

/**
 * The bounds of a checked selector. Throws TypeError for a bad key part, a bound outside the prefix
 * or the wrong way round, and a bound that is too long.
 */
export function boundsOf({ prefix, start, end }: Selector, keyBytesMax: number): Bounds {
  const known = latest;
  if (known !== null && start === undefined && end === undefined && isPrefixOf(known, prefix)) {
    if (known.prefixBytes < keyBytesMax) return { ...known };
  }
  if (prefix === undefined) {
    const first = keyBytes(start!, keyBytesMax);
    const last = keyBytes(end!, keyBytesMax);
    if (first.compare(last) > 0) {
      throw invalid(
        `Start key is greater than end key: start ${printKey(start)}, end ${printKey(end)}`,
      );
    }
    const common = commonLength(first, last);
    return { start: first, end: last, common, prefix: null, prefixBytes: 0 };
  }
  const writer = borrowWriter();
  const plain = encodeKey(writer, prefix);
  const length = writer.pos;
  if (length >= keyBytesMax) throw keyTooLarge(keyBytesMax, length + 1, prefix);
  writer.u8(0);
  const first = writer.copy();
  writer.buf[length] = AFTER_PREFIX;
  const last = writer.copy();
  returnWriter(writer);
  const inside = (key: KvKey, name: string): Buffer => {
    const bound = keyBytes(key, keyBytesMax);
    if (bound.length <= length || commonLength(bound, first.subarray(0, length)) < length) {
      throw invalid(
        `${name} key is not in the keyspace defined by prefix: ${printKey(key)}, prefix ${printKey(prefix)}`,
      );
    }
    return bound;
  };
  const bounds = {
    start: start === undefined ? first : inside(start, "Start"),
    end: end === undefined ? last : inside(end, "End"),
    common: length,
    prefix: plain && prefix.length > 0 ? (prefix as KeyPart[]) : null,
    prefixBytes: length,
  };
  if (bounds.prefix !== null && start === undefined && end === undefined) latest = { ...bounds };
  return bounds;
}

/** The bounds of the latest selector that is a prefix of primitives: most lists of a program have one of a few. */
let latest: Bounds | null = null;

function isPrefixOf({ prefix: known }: Bounds, prefix: KvKey | undefined): boolean {
  if (known === null || prefix === undefined || prefix.length !== known.length) return false;
  for (let i = 0; i < known.length; i++) if (!Object.is(known[i], prefix[i])) return false;
  return true;
}

function outOfBounds(cursor: unknown): TypeError {
  return invalid(
    `cursor out of bounds: received ${printGiven(cursor)}; it is one of a list of another selector`,
  );
}

/** Replaces a bound by the cursor. Throws TypeError for a cursor of another list. */
export function resume(bounds: Bounds, cursor: unknown, reverse: boolean, explicit: boolean): void {
  const rest = decodeCursor(cursor);
  const common = bounds.start.subarray(0, bounds.common);
  // If the common bytes are the whole start, they are a complete key.
  const isStart = isOfStart(rest) && common.length === bounds.start.length;
  const key = isStart ? common : Buffer.concat([common, rest]);
  if (reverse) {
    if (explicit && key.compare(bounds.end) > 0) throw outOfBounds(cursor);
    bounds.end = key;
  } else {
    const start = extended(key, 0);
    if (explicit && start.compare(bounds.start) < 0) throw outOfBounds(cursor);
    bounds.start = start;
  }
}

function keyBytes(key: KvKey, most: number): Buffer {
  const writer = borrowWriter();
  encodeKey(writer, key);
  if (writer.pos > most) throw keyTooLarge(most, writer.pos, key);
  const bytes = writer.copy();
  returnWriter(writer);
  return bytes;
}

/** The bytes with one more appended. */
export function extended(bytes: Uint8Array, last: number): Buffer {
  const longer = Buffer.allocUnsafe(bytes.length + 1);
  longer.set(bytes);
  longer[bytes.length] = last;
  return longer;
}

function keyTooLarge(rangeKeyBytesMax: number, given: number, key: KvKey): TypeError {
  const limits = { rangeKeyBytesMax };
  return overLimit("Key too large for read", "rangeKeyBytesMax", limits, given, key);
}
