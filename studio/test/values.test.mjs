// Duty: literals: every node is read back as it was printed, and as the command line reads it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "vite";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const { parseLiteral } = require("../../build/cli/literal.js");
const { encodeValue } = require("../../build/interchange/encode.js");
const { decodeLine } = require("../../build/interchange/decode.js");
const { encodeKey } = require("../../build/codec/key.js");
const { Writer } = require("../../build/codec/writer.js");

/** A module of the studio, compiled. */
async function load(name) {
  const folder = mkdtempSync(join(tmpdir(), "openkv-values-"));
  const entry = fileURLToPath(new URL(`../src/values/${name}.ts`, import.meta.url));
  const lib = { entry, formats: ["es"], fileName: () => `${name}.mjs` };
  await build({
    configFile: false,
    logLevel: "error",
    build: { lib, outDir: folder, emptyOutDir: true },
  });
  const module = await import(join(folder, `${name}.mjs`));
  rmSync(folder, { recursive: true });
  return module;
}

const { inLine, printNode } = await load("print");
const { parseNode, parseKey } = await load("parse");

const VALUES = [
  undefined,
  null,
  true,
  0,
  -1.5,
  Number.NaN,
  Number.NEGATIVE_INFINITY,
  1e300,
  "",
  'a\n"quoted" \u202e \u0000 ü 🙂',
  "\ud800",
  10n ** 40n,
  -1n,
  new Date(0),
  new Date(Number.NaN),
  /a\/b/gi,
  [],
  [1, [2, [3]], undefined],
  {},
  { a: 1, "b c": { __proto__x: 2 }, constructor: 3 },
  JSON.parse('{"__proto__": {"polluted": true}}'),
  new Map([[{ a: 1 }, new Set([1, "x", 2n])]]),
  new Set(),
  new Uint8Array([0, 1, 255]),
  new Float64Array([1.5, 2]),
  new DataView(new Uint8Array([1, 2]).buffer),
  new Uint8Array([5, 6]).buffer,
  Object.assign(new TypeError("no"), { stack: "TypeError: no\n  at x" }),
  new Error("outer", { cause: new RangeError("inner") }),
  [-0],
  [new Date(5), new Array(2)],
  Array.from({ length: 60 }, (_, i) => ({ name: `number ${i}`, list: [i, i, i] })),
];

test("a value is read back as it was printed, in one line and in several", async () => {
  for (const value of VALUES) {
    const node = JSON.parse(await encodeValue(value));
    assert.deepEqual(parseNode(inLine(node)), node, inLine(node));
    assert.deepEqual(parseNode(printNode(node)), node, printNode(node));
  }
});

test("the command line reads the same literals", () => {
  const literals = [
    "{ a: 1, 'b': [0x1f, +2, .5, 1e3], /* c */ c: 12n, // end\n d: \"\\x41\\u{1f642}\" }",
    '[u8"00ff", u64(42), date("2026-01-01"), undefined, NaN, -Infinity, -0]',
    '{ "__proto__": 1, 5: true }',
  ];
  for (const literal of literals) {
    const node = JSON.stringify(parseNode(literal));
    const read = decodeLine(`{"key":[{"type":"string","value":"k"}],"value":${node}}`).value;
    assert.deepEqual(read, parseLiteral(literal), literal);
  }
});

test("what the command line refuses is refused, with a place", () => {
  for (const literal of ["", "[1", "{a}", "alice", "1.5n", 'u8"0"', "u64(-1)", "[1] 2", '"a']) {
    assert.throws(() => parseLiteral(literal), literal);
    assert.throws(() => parseNode(literal), /line 1, character \d+|not a valid/, literal);
  }
});

test("a key is an array, or one word", () => {
  assert.deepEqual(parseKey("users"), [{ type: "string", value: "users" }]);
  assert.deepEqual(parseKey("[42, 42n]"), [
    { type: "number", value: 42 },
    { type: "bigint", value: "42" },
  ]);
  assert.throws(() => parseKey("[null]"), /cannot be a part/);
});

/** A part in front, because a line has a key. */
const K = { type: "string", value: "k" };

const vectors = JSON.parse(
  readFileSync(new URL("../../tests/vectors/interchange.json", import.meta.url), "utf8"),
);

test("the literals of keys are those of the command line and of the server", () => {
  for (const { text, hex } of vectors.literals) {
    const line = { key: [K, ...parseKey(text)], value: { type: "null", value: null } };
    const writer = new Writer(64);
    encodeKey(writer, decodeLine(JSON.stringify(line)).key);
    assert.equal(writer.copy().toString("hex"), `026b00${hex}`, text);
  }
});

test("the literals of values are those of the command line", async () => {
  for (const { text, typed } of vectors.valueLiterals) {
    const line = { key: [K], value: parseNode(text) };
    const { value } = decodeLine(JSON.stringify(line));
    assert.equal(await encodeValue(value), typed, text);
  }
  for (const { text, what, character } of vectors.badValueLiterals) {
    const message = `${what} (line 1, character ${character})`;
    assert.throws(() => parseNode(text), { message }, text);
  }
});
