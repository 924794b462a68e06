// Duty: notes where openkv reads or assigns a name that its objects do not have: every name of js/
// becomes an accessor on Object.prototype.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
/** The compiled files that programs import. */
const LEFT_OUT = /^(?:cli|esm|studio)\b/;
/** The readers of callers' objects, which leave out what Object.prototype has, by their functions. */
const READERS = /\bat (?:option|checkListOptions) /;
/**
 * Names of the language's own protocols, which it reads in its objects: `then` of each result, `return`
 * of each iterator, and the fields of descriptors.
 */
const OF_THE_LANGUAGE = new Set([
  ...["then", "return", "toJSON", "__esModule"],
  ...["get", "set", "value", "writable", "enumerable", "configurable"],
]);

/** The uses from now on, each with its place. */
export function record() {
  const used = new Set();
  const note = (use, name) => {
    const [, , , place = ""] = new Error().stack.split("\n");
    if (place.includes("dist") && !READERS.test(place)) used.add(`${use} ${name}${place}`);
  };
  const define = (object, name, descriptor) =>
    Object.defineProperty(object, name, { __proto__: null, configurable: true, ...descriptor });
  for (const name of names()) {
    if (name in Object.prototype || OF_THE_LANGUAGE.has(name)) continue;
    define(Object.prototype, name, {
      get() {
        note("reads", name);
      },
      set(value) {
        note("assigns", name);
        define(this, name, { value, writable: true, enumerable: true });
      },
    });
  }
  return used;
}

function names() {
  const files = readdirSync(dist, { recursive: true }).map(String);
  const compiled = files.filter((name) => name.endsWith(".js") && !LEFT_OUT.test(name));
  const texts = compiled.map((name) => readFileSync(join(dist, name), "utf8"));
  return new Set(texts.flatMap((text) => text.match(/[A-Za-z_$][\w$]*/g)));
}
