// Duty: js/ takes an object of another realm (a vm context, Jest, Electron) for what it is, and does
// not enumerate what a program has put on Object.prototype: no `instanceof` with a built-in class,
// and no `for … in`. js/model/brands.ts has the checks that hold in every realm.

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
