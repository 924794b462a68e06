// Duty: the declarations, the implementation and the uses in this folder agree with each other.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Without these a deletion would reach further than meant, so their absence is written by leaving them out. */
const NARROWING = ["KvDeleteManyOptions.where", "KvDeleteManyOptions.limit"];

// A program with exactOptionalPropertyTypes could not pass `limit: undefined`.
test("every option may be undefined", () => {
  const text = readFileSync(`${root}index.d.ts`, "utf8").replace(/\/\*\*.*?\*\//gs, "");
  const found = [];
  const look = (where, body) => {
    for (const [whole, name] of body.matchAll(/(\w+)\?:(?:[^;{}]|\{[^{}]*\})*/g)) {
      const type = whole.replace(/\{[^{}]*\}/g, "");
      if (!/\| undefined|\?: unknown/.test(type)) found.push(`${where}.${name}`);
    }
  };
  const interfaces = [...text.matchAll(/interface (\w*(?:Options|Quotas))\b.*?\{\n(.*?)\n\}/gs)];
  for (const [, name, body] of interfaces) look(name, body);
  for (const [, body] of text.matchAll(/options\??: \{([^{}]*)\}/g)) look("options", body);
  assert.ok(interfaces.length > 15, "the search for options finds too few");
  assert.deepEqual(found, NARROWING);
});

test("the type tests compile", () => {
  const { status, stdout } = spawnSync(
    process.execPath,
    ["node_modules/typescript/bin/tsc", "-p", "__test__/types/tsconfig.json"],
    { cwd: root, encoding: "utf8" },
  );
  assert.equal(status, 0, stdout);
});
