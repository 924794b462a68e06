// Duty: keys and values as they are typed on a command line.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { assertSame } from "../codec/graph.mjs";

const require = createRequire(import.meta.url);
const { parseKey, parseLiteral } = require("../../dist/cli/literal.js");
const { KvU64 } = require("../../dist/codec/u64.js");

test("literals are JavaScript's, and some more", () => {
  const cases = [
    ["1", 1],
    ["-0", -0],
    [" +1.5e3 ", 1500],
    [".5", 0.5],
    ["0xff", 255],
    ["42n", 42n],
    ["-0x10n", -16n],
    ["NaN", Number.NaN],
    ["-Infinity", -Infinity],
    ["true", true],
    ["null", null],
    ["undefined", undefined],
    ['"a\\n\\u00e9\\u{1F600}\\x41\\"\\0"', 'a\né😀A"\0'],
    ["'it\\'s'", "it's"],
    ['u8"00fF"', new Uint8Array([0, 255])],
    ["u64(42)", new KvU64(42n)],
    ["u64(42n)", new KvU64(42n)],
    ['date("2026-01-01")', new Date("2026-01-01")],
    ["date(0)", new Date(0)],
    ["[]", []],
    ["[1, [2,], {a: 1, 'b c': [3], 5: null,},]", [1, [2], { a: 1, "b c": [3], 5: null }]],
    ["/* of */ { // these\n a: /**/ 1 /* last */ } // end", { a: 1 }],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}')],
  ];
  for (const [text, value] of cases) assertSame(parseLiteral(text), value, text);
});

test("a word alone is a key of one string", () => {
  assert.deepEqual(parseKey("users"), ["users"]);
  assert.deepEqual(parseKey("user-list"), ["user-list"]);
  assert.deepEqual(parseKey("42"), [42]);
  assert.deepEqual(parseKey("true"), [true]);
  assert.deepEqual(parseKey('["users", 42, 1n, true, u8"00ff"]'), [
    "users",
    42,
    1n,
    true,
    new Uint8Array([0, 255]),
  ]);
});

test("what is no literal is refused where it goes wrong", () => {
  const cases = [
    ["", 1],
    ["[1", 3],
    ["[1 2]", 4],
    ["{a 1}", 4],
    ['"open', 1],
    ["1 2", 3],
    ["1 /* open", 3],
    ["/ 1", 1],
    ["1.5n", 1],
    ["alert(1)", 1],
    ['u8"0"', 3],
    ["u64(-1)", 1],
    ['date("soon")', 1],
    ['"\\u12"', 3],
    ["[".repeat(101), 101],
  ];
  for (const [text, at] of cases) {
    assert.throws(
      () => parseLiteral(text),
      (error) => error.name === "LiteralError" && error.message.includes(`at character ${at} `),
      text,
    );
  }
});
