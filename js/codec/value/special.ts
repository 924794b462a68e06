/**
 * Objects that are neither plain nor arrays nor views, in (docs/format.md §2.1).
 */

import { types } from "node:util";
import { writeBlob } from "./blob";
import { Kind, kindOf } from "./classify";
import type { Encoder } from "./encoder";
import { ERROR_NAMES, TAG_DATE, TAG_MAP, TAG_SET } from "./tags";
import { KvUuidV7, NIL_UUID } from "../uuid";
import { writeBuffer } from "./views";

const sourceOf = Object.getOwnPropertyDescriptor(RegExp.prototype, "source")!.get!;
/** Each flag by its slot: `flags` asks the properties, which a subclass can redefine. */
const flagGetters = Object.entries({
  d: "hasIndices",
  g: "global",
  i: "ignoreCase",
  m: "multiline",
  s: "dotAll",
  u: "unicode",
  v: "unicodeSets",
  y: "sticky",
}).flatMap(([letter, name]) => {
  const get = Object.getOwnPropertyDescriptor(RegExp.prototype, name)?.get;
  return get === undefined ? [] : [{ letter, get }];
});
const eachEntry = Map.prototype.forEach;
const eachItem = Set.prototype.forEach;
const timeOf = Date.prototype.getTime;

/**
 * Writes an object of its kind; `tag` is its `Object.prototype.toString`. Throws for what
 * cannot be stored.
 */
export function writeSpecial(encoder: Encoder, value: object, tag: string): void {
  const kind = claimedKind(value, tag) ?? kindOf(value);
  switch (kind) {
    case Kind.Plain:
      return encoder.plain(value);
    case Kind.ArrayBuffer:
      // It can be in the value already without having been met as an object.
      encoder.forget(value);
      return writeBuffer(encoder, value as ArrayBuffer);
    case Kind.Placeholder:
      encoder.forget(value);
      return writePlaceholder(encoder, value);
    case Kind.Map:
      return writeMap(encoder, value as Map<unknown, unknown>);
    case Kind.Set:
      return writeSet(encoder, value as Set<unknown>);
    case Kind.Date:
      encoder.head(6, TAG_DATE);
      return encoder.float(timeOf.call(value) / 1000);
    case Kind.RegExp:
      encoder.object("RegExp", 3);
      encoder.text(sourceOf.call(value) as string);
      return encoder.text(flagsOf(value));
    case Kind.Boxed:
      return writeBoxed(encoder, value);
    case Kind.Error:
      return writeError(encoder, value as Error);
    case Kind.Blob:
      return writeBlob(encoder, value as Blob);
    case Kind.DOMException:
      return writeDOMException(encoder, value as Error);
  }
}

/** The kind that the tag claims, if the claim is true; the shortest way for the common ones. */
function claimedKind(value: object, tag: string): Kind | null {
  switch (tag) {
    case "[object Date]":
      return types.isDate(value) ? Kind.Date : null;
    case "[object Map]":
      return types.isMap(value) ? Kind.Map : null;
    case "[object Set]":
      return types.isSet(value) ? Kind.Set : null;
    case "[object KvUuidV7]":
      return KvUuidV7.numberOf(value) === undefined ? null : Kind.Placeholder;
    default:
      return null;
  }
}

/** The text of a UUID that the commit makes. A string has no identity to keep. */
function writePlaceholder(encoder: Encoder, value: object): void {
  encoder.text(NIL_UUID);
  encoder.mark(KvUuidV7.numberOf(value)!, encoder.pos - NIL_UUID.length);
}

function writeMap(encoder: Encoder, value: Map<unknown, unknown>): void {
  // Collected first: a getter run while the entries are written may change the map.
  const flat: unknown[] = [];
  eachEntry.call(value, (item: unknown, key: unknown) => flat.push(key, item));
  encoder.enter();
  encoder.head(6, TAG_MAP);
  encoder.head(5, flat.length / 2);
  for (let i = 0; i < flat.length; i++) encoder.value(flat[i]);
  encoder.leave();
}

function writeSet(encoder: Encoder, value: Set<unknown>): void {
  const items: unknown[] = [];
  eachItem.call(value, (item: unknown) => items.push(item));
  encoder.enter();
  encoder.head(6, TAG_SET);
  encoder.head(4, items.length);
  for (let i = 0; i < items.length; i++) encoder.value(items[i]);
  encoder.leave();
}

function flagsOf(regexp: object): string {
  let flags = "";
  for (const { letter, get } of flagGetters) if (get.call(regexp) === true) flags += letter;
  return flags;
}

/** The primitive inside a boxed one, by its internal slot. */
const unboxers = [
  ["Number", Number.prototype.valueOf],
  ["String", String.prototype.valueOf],
  ["Boolean", Boolean.prototype.valueOf],
  ["BigInt", BigInt.prototype.valueOf],
] as const;

function writeBoxed(encoder: Encoder, value: object): void {
  for (const [name, valueOf] of unboxers) {
    let primitive: unknown;
    try {
      primitive = (valueOf as (this: unknown) => unknown).call(value);
    } catch {
      continue;
    }
    encoder.object(name, 2);
    return encoder.value(primitive);
  }
}

/** Only own data properties, as in V8; results of getters are not stored. */
function ownData(value: object, name: string): { value: unknown } | null {
  const property = Object.getOwnPropertyDescriptor(value, name);
  return property !== undefined && Object.hasOwn(property, "value")
    ? { value: property.value }
    : null;
}

function writeError(encoder: Encoder, error: Error): void {
  const message = ownData(error, "message");
  const cause = ownData(error, "cause");
  const name = String(error.name);
  const text = message === null ? null : String(message.value);
  const { stack } = error;
  const hasStack = typeof stack === "string";
  encoder.enter();
  encoder.object((ERROR_NAMES as readonly string[]).includes(name) ? name : "Error", 2);
  encoder.head(5, (text === null ? 0 : 1) + (hasStack ? 1 : 0) + (cause === null ? 0 : 1));
  if (text !== null) {
    encoder.text("message");
    encoder.text(text);
  }
  if (hasStack) {
    encoder.text("stack");
    encoder.text(stack);
  }
  if (cause !== null) {
    encoder.text("cause");
    encoder.value(cause.value);
  }
  encoder.leave();
}

function writeDOMException(encoder: Encoder, error: Error): void {
  // A subclass may redefine them.
  const message = String(error.message);
  const name = String(error.name);
  const { stack } = error;
  const hasStack = typeof stack === "string";
  encoder.object("DOMException", hasStack ? 4 : 3);
  encoder.text(message);
  encoder.text(name);
  if (hasStack) encoder.text(stack);
}
