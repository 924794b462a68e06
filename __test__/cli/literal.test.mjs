// Duty: keys and values as they are typed on a command line.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { assertSame } from "../codec/graph.mjs";

const require = createRequire(import.meta.url);
const { parseKey, parseLiteral, parseWord } = require("../../build/cli/literal.js");
const { printLiteral } = require("../../build/cli/print-literal.js");
const { KvU64 } = require("../../build/codec/u64.js");

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
    ['date("2000-02-29")', new Date("2000-02-29")],
    ['date("0000-02-29T10:00:00Z")', new Date("0000-02-29T10:00:00Z")],
    ['date("2026-01")', new Date("2026-01")],
    ['date("+010000-01-01T00:00:00.000Z")', new Date("+010000-01-01")],
    ['date("-000004-02-29T00:00:00.000Z")', new Date("-000004-02-29")],
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
  for (const none of ["", " "]) {
    assert.throws(() => parseLiteral(none), { name: "LiteralError", message: /the text is empty/ });
  }
  const cases = [
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
    ['date("5")', 1],
    ['date("foo 1")', 1],
    ["date(true)", 1],
    ['date("2026-02-30")', 1],
    ['date("1900-02-29T00:00:00Z")', 1],
    ['"\\u12"', 3],
    ["[".repeat(201), 201],
  ];
  for (const [text, at] of cases) {
    assert.throws(
      () => parseLiteral(text),
      (error) => error.name === "LiteralError" && error.message.includes(`at character ${at} `),
      text,
    );
  }
});

/** A small generator of numbers from 0 to 2^32 - 1. */
function numbersOf(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
}

const TEXTS = [
  "",
  "a",
  "it's",
  '"',
  "\\",
  "\u001b[31m",
  "\u200b\u202e",
  "\ud800",
  "😀",
  "*/",
  "__proto__",
];
const NUMBERS = [0, -0, 1, -1.5, 1e21, 5e-324, Number.NaN, Infinity, -Infinity];

function randomValue(next, depth) {
  const of = (list) => list[next() % list.length];
  const inner = () => randomValue(next, depth - 1);
  const some = () => Array.from({ length: next() % 5 }, inner);
  const bytes = () => Uint8Array.from({ length: (next() % 4) * 8 }, next);
  const error = () => {
    const made = new (of([Error, TypeError, RangeError]))(of(TEXTS));
    if (next() % 2) {
      Object.defineProperty(made, "cause", { value: inner(), writable: true, configurable: true });
    }
    return made;
  };
  const leaves = [
    () => of(TEXTS),
    () => of(NUMBERS),
    () => BigInt(next()) ** 3n * -1n,
    () => new KvU64(BigInt(next())),
    () => of([true, false, null, undefined]),
    () => new Date(of([0, 1e12, -1e13, Number.NaN])),
    () => of([/a\/b/g, /"\u{1f600}/u, /(?:)/]),
    bytes,
    () => new (of([Int8Array, Float64Array, BigUint64Array, DataView]))(bytes().buffer),
    () => bytes().buffer,
  ];
  const branches = [
    some,
    () => Object.fromEntries(some().map((item) => [`${of(TEXTS)}${next() % 9}`, item])),
    () => new Set(some()),
    () => new Map(some().map((item) => [inner(), item])),
    error,
  ];
  return of(depth > 0 ? [...leaves, ...branches, ...branches] : leaves)();
}

// util.inspect() printed values: u64 as KvU64 { … }, bytes as Uint8Array(2) [ 0, 255 ], none of which
// set could read.
test("what is printed is read to the same value", async () => {
  const next = numbersOf(7);
  for (let i = 0; i < 2000; i++) {
    const value = randomValue(next, 3);
    const text = await printLiteral(value, false);
    assert.doesNotMatch(text, /[\0-\x09\x0b-\x1f\x7f-\x9f]/);
    if (text.includes("/* the first")) continue;
    assertSame(parseWord(text), value, text);
  }
});

test("a value without a literal is its CBOR, behind a comment", async () => {
  const cycle = { name: "*/" };
  cycle.self = cycle;
  for (const value of [cycle, [1, , 3], Object(1n)]) {
    const text = await printLiteral(value, false);
    assert.match(text, /^\/\* [^]* \*\/ cbor\(u8"/);
    assertSame(parseWord(text), value, text);
  }
});

test("long bytes are cut, and not read as others", async () => {
  const text = await printLiteral({ logo: new Uint8Array(1000) }, false);
  assert.match(text, /the first 512 of 1000 bytes/);
  assert.throws(() => parseWord(text), /the bytes are cut/);
});

test("colours change no character", async () => {
  const value = { a: [1, "b", 2n, null, undefined, true, new Date(0), /a/] };
  const text = await printLiteral(value, true);
  assert.equal(text.replace(/\u001b\[\d+m/g, ""), await printLiteral(value, false));
});
