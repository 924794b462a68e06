// Duty: js/ takes an object of another realm (a vm context, Jest, Electron) for what it is, and does
// not meet what a program has put on Object.prototype or in the place of Promise: no `instanceof` with a
// built-in class, no `for … in`, no descriptor that inherits, no promise of the global class.
// js/model has what it uses in place of these: brands.ts, define.ts, native-promise.ts.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join, sep } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../js/", import.meta.url));
/** The command line and its texts of values meet only objects that this process has decoded itself. */
const OWN_REALM = /^(?:cli|interchange)\//;
/** The generated code in it compares inherited properties and leaves an object with any to the encoder. */
const ENUMERATES = new Set(["codec/value/shapes.ts"]);

const files = readdirSync(folder, { recursive: true })
  .map((name) => String(name).replaceAll(sep, "/"))
  .filter((name) => name.endsWith(".ts") && !OWN_REALM.test(name));

test("no file of js/ asks instanceof of a built-in class, or enumerates with for … in", () => {
  const builtins = new Set(
    Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name)),
  );
  const found = [];
  for (const name of files) {
    const lines = readFileSync(join(folder, name), "utf8").split("\n");
    lines.forEach((line, index) => {
      const place = `js/${name}:${index + 1}: ${line.trim()}`;
      for (const [, type] of line.matchAll(/\binstanceof (\w+)/g)) {
        if (builtins.has(type)) found.push(place);
      }
      if (/\bfor \((?:const|let|var) \w+ in\b/.test(line) && !ENUMERATES.has(name)) {
        found.push(place);
      }
    });
  }
  assert.deepEqual(found, []);
});

/** Loaded for the command line only, or beside a library that uses the global class itself. */
const GLOBAL_PROMISES = /^(?:cli|drivers|testing)\//;

test("no file of js/ makes a promise of the global class, or gives Object.defineProperty a descriptor", () => {
  const uses = /\bnew Promise\b|(?<![\w.])Promise\.|Object\.definePropert/;
  const found = readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll(sep, "/"))
    .filter(
      (name) => name.endsWith(".ts") && !GLOBAL_PROMISES.test(name) && name !== "model/define.ts",
    )
    .flatMap((name) => {
      const lines = readFileSync(join(folder, name), "utf8").split("\n");
      const code = lines.filter((line) => uses.test(line) && !/^\s*(?:\/\/|\*|\/\*)/.test(line));
      return code.map((line) => `js/${name}: ${line.trim()}`);
    });
  assert.deepEqual(found, []);
});
