// Duty: no text of a database becomes markup or code: the source has no way to do that.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const FORBIDDEN = [
  "dangerouslySetInnerHTML",
  "innerHTML",
  "outerHTML",
  "insertAdjacentHTML",
  "document.write",
  "createContextualFragment",
  "DOMParser",
  "eval(",
  "new Function",
  "sessionStorage",
];

test("the source makes no markup from text", () => {
  const folder = fileURLToPath(new URL("../src/", import.meta.url));
  const names = readdirSync(folder, { recursive: true }).filter((name) => /\.tsx?$/.test(name));
  assert.ok(names.length > 20);
  for (const name of names) {
    const text = readFileSync(folder + name, "utf8");
    for (const word of FORBIDDEN) assert.ok(!text.includes(word), `${name}: ${word}`);
  }
});
