/**
 * Finds the part of a value that cannot be stored. The search runs only after encoding has failed,
 * so it costs nothing for other values.
 */

import { misuse } from "../../model/errors";
import { types } from "node:util";
import { quote } from "../key-text";
import { blamedBy } from "./reject";

/** Most objects that the search visits. */
const LOOKED_AT_MAX = 100_000;
/** Most characters of a path in a message. */
const PATH_CHARS_MAX = 200;

const NAME = /^[\p{L}_$][\p{L}\p{N}_$]*$/u;
const eachEntry = Map.prototype.forEach;
const eachItem = Set.prototype.forEach;

/** The error with the path of the part; unchanged if the part is the whole value. */
export function placed(error: unknown, root: unknown): unknown {
  const blamed = blamedBy(error);
  if (blamed === undefined) return error;
  const { remedy } = blamed;
  const wrong = error as Error;
  const words = wrong.message;
  if (blamed.value === root) {
    if (remedy === undefined) return error;
    return retold(wrong, `${words.replace(/\.$/, "")}: ${remedy}`);
  }
  const path = pathTo(root, blamed.value);
  if (path === null) return error;
  const shown = path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}…` : path;
  const advice = remedy ?? "leave it out, or store plain data in its place";
  const end = words.endsWith(".") ? "" : ".";
  return retold(wrong, `${words}${end} It is at ${shown}: ${advice}`);
}

/** An error of the same class: shared memory is a plain Error, as in Deno. */
function retold(error: Error, message: string): Error {
  return error.name === "TypeError" ? misuse(message) : new Error(message);
}

interface Place {
  readonly object: object;
  readonly path: string;
}

/** Runs no getter and no trap; null when the part is behind one, or too far away. */
function pathTo(root: unknown, part: unknown): string | null {
  if (typeof root !== "object" || root === null) return null;
  const seen = new Set<object>([root]);
  const places: Place[] = [{ object: root, path: "" }];
  for (let i = 0; i < places.length && places.length < LOOKED_AT_MAX; i++) {
    const { object, path } = places[i];
    let found: string | null = null;
    visit(object, (value, step) => {
      if (value === part) found ??= path + step;
      if (typeof value !== "object" || value === null || seen.has(value)) return;
      if (types.isProxy(value)) return;
      seen.add(value);
      places.push({ object: value, path: path + step });
    });
    if (found !== null) return found;
  }
  return null;
}

/** All parts of the object, each with its step in the path. */
function visit(object: object, each: (value: unknown, step: string) => void): void {
  const inArray = Array.isArray(object);
  for (const name of Object.getOwnPropertyNames(object)) {
    const property = Object.getOwnPropertyDescriptor(object, name);
    if (property === undefined || !Object.hasOwn(property, "value")) continue;
    const isIndex = inArray && /^\d/.test(name);
    each(property.value, isIndex ? `[${name}]` : NAME.test(name) ? `.${name}` : `[${quote(name)}]`);
  }
  let count = 0;
  if (types.isMap(object)) {
    eachEntry.call(object, (value: unknown, key: unknown) => {
      each(key, `.keys[${count}]`);
      each(value, typeof key === "string" ? `.get(${quote(key)})` : `.values[${count}]`);
      count++;
    });
  } else if (types.isSet(object)) {
    eachItem.call(object, (value: unknown) => each(value, `.values[${count++}]`));
  }
}
