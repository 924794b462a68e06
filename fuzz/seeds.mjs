// Duty: writes a seed corpus for every fuzz target: the golden vectors, each as one input in the
// target's format, in fuzz/corpus/<target>/. Inputs that a fuzzer has added are kept.
//
//   node fuzz/seeds.mjs

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const vectors = (name) =>
  JSON.parse(readFileSync(join(here, "..", "tests", "vectors", `${name}.json`)));
const bytes = (text) => Buffer.from(text.replaceAll(" ", ""), "hex");
const sized = (...parts) => parts.map((part) => Buffer.concat([Buffer.of(part.length), part]));

/** Larger vectors only slow down the fuzzer. */
const SEED_BYTES_MAX = 1024;

/**
 * The length of the first key, then two neighbouring keys of the list, so that their order is
 * compared.
 */
function keySeeds() {
  const { keys, invalid } = vectors("keys");
  const all = [...keys, ...invalid].map(({ hex }) => bytes(hex)).filter((key) => key.length < 256);
  return all.map((key, at) => Buffer.concat([...sized(key), all[(at + 1) % all.length]]));
}

function cborSeeds() {
  const { values, invalid, notShortest } = vectors("values");
  return [...values, ...invalid, ...notShortest].map(({ hex }) => bytes(hex));
}

/** The kind of the frame, its count in two bytes, then a frame of js/native/contract.md. */
function frameSeeds() {
  const key = "03000000 026100";
  const stamp = Buffer.from("0000000000000f460000").toString("hex");
  const value = "43 01000000 f6";
  const time = "0000000000408f40";
  return [
    `00 02 00 ${key} 01000000 14`,
    `01 03 00 01 0a000000 ${key} 01000000 27 00 01000000 00000000 ${key} 02 01000000 ${key} 00000000`,
    `02 02 00 01 01 ${stamp} ${key} 01 00 ${key} 03 ${key} 00 00`,
    `02 01 00 02 00 ${key} ${value} 02 01 ${time} ${key} ${value} 02 02 ${key} 03 00000000 00`,
    `02 01 00 04 ${key} 02 08000000 0100000000000000 05 ${key} ${value} 06 ${key} ${value} 00`,
    `02 01 00 82 01 ${time} ${key} ${value} 8a 01 ${time} ${key} 88 00 08 ${time} ${key} ${value} 00`,
    `02 01 00 89 03 ${time} ${key} 01000000 80 87 ${time} 00 0000 01000000 f6 00`,
    `02 01 00 07 ${time} 02 64000000 e8030000 0100 ${key} 01000000 f6 00`,
    `03 ff 00 ${"0102030405060708".repeat(8)}`,
  ].map(bytes);
}

/** The command in one byte (0: a write), then its frame. */
function callSeeds() {
  const key = "03000000 026100";
  const range = "00000000 01000000 ff";
  const now = "000000000000f87f";
  const where = Buffer.concat(sized(cbor({ n: { $gt: 1 } }))).toString("hex");
  const queue = "01000000 71";
  const zero = "0000000000000000";
  const seeds = [
    `0a 00 00000000 ${now} ${range}`,
    `0b 1f 0a000000 ${now} ${range} 00000000 02000000 ${where}`,
    "0c 026100",
    `0d 0a ffffffff ${where} ${range}`,
    `0d 03 ffffffff 01000000 ${key}`,
    `0e ${key} ${key}`,
    `13 00 02 00 ${key} 43 01000000 f6 00`,
    `1e 000000000000f03f ${zero} 01 ${zero} 01000000 45 01000000 6d`,
    `1f 000000000000f03f ${zero} ${zero}`,
    `20 ${queue}`,
    `21 ${queue} 0a000000 ${zero} ${zero}`,
    `23 ${queue} ${zero}`,
    `25 ${queue} ${zero}`,
    `32 01000000 6e ${key} 00 01 02 0100 01000000 74`,
    `33 01 01000000 6e`,
    "34 01",
    `35 06 0a000000 00000000 ${key} 01000000 78 08 01000000 3c 01000000 3e 00000000 ${where}`,
  ];
  return [
    ...seeds.map(bytes),
    ...frameSeeds()
      .filter(([kind]) => kind === 2)
      .map((seed) => Buffer.concat([Buffer.of(0), seed.subarray(1)])),
  ];
}

/** Values that Deno, Node and openkv have written, and nested maps without an end. */
function v8Seeds() {
  const { values } = vectors("v8");
  const nested = [300, 600, 1100].map((depth) =>
    Buffer.from([0xff, 0x0f, ...Array(depth).fill(0x3b)]),
  );
  return [
    ...values.flatMap(({ deno, node, written }) => [deno, node ?? deno, written].map(bytes)),
    ...nested,
  ];
}

/** The kind of the message in one byte, then its body, as Deno and its server have sent it. */
function connectSeeds() {
  const text = (value) => Buffer.from(JSON.stringify(value)).toString("hex");
  const metadata = {
    version: 3,
    databaseId: "00000000-0000-0000-0000-000000000000",
    endpoints: [{ url: "/v2", consistency: "strong" }],
    token: "t",
    expiresAt: "2026-11-21T04:45:59.123456789Z",
  };
  const stamp = Buffer.from("00000000000000070000").toString("hex");
  return [
    "00 0a0d 0a03026100 120402610000 1801",
    "01 1215 0a03026100 1208 0a04ff104902 1001 1801 2080897a",
    "01 0a11 0a03026100 120a 00000000000000070000 1a08 0a04ff0f4902 1000 2202 0102",
    "02 0a05 0a03026100",
    "03 0a00 0a1d 0a1b 0a03026100 1204ff0f4902 1801 220a00000000000000070000 2001 4001",
    "04 0801 120a00000000000000070000",
    "04 0802 22020002",
    "05 0801 12020801 12020801 12020800",
    `06 ${text({ supportedVersions: [1, 2, 3] })}`,
    `07 ${text(metadata)}`,
    `08 01 ${stamp} 01000000 14 01000000 15`,
    `09 00 ${stamp} 02000000 00 ${stamp} 01000000 14 43 01000000 01 01 ${stamp} 01000000 14`,
    "09 0b 03000000 676170",
    "0a 01 02000000 01000000 14 02000000 1501",
    `0b 00 00000000 00 01000000 00 00000000 ${stamp} 43 01000000 f6 00000000 00`,
    `0b 00 ${stamp} 01 02 06 01000000 78`,
    `0b ${Buffer.from("valueBytesMax=65536,checksMax=7").toString("hex")}`,
    "0c 000000000088b340 0a000000 03000000 04000000 6d61696c",
    "0d 0700000000000000 000000000088b340 05000000 04000000 6d61696c",
    "0e 01000000 0200000000000000 000000000000f03f 0000000000001440 01000000 01000000 07",
    "0f 03 00000000 04000000 08010801 02000000 0801",
  ].map(bytes);
}

/** JSON as CBOR, for small values. */
function cbor(value) {
  const head = (major, count) =>
    count < 24 ? Buffer.of((major << 5) | count) : Buffer.of((major << 5) | 24, count);
  if (value === null) return Buffer.of(0xf6);
  if (typeof value === "boolean") return Buffer.of(value ? 0xf5 : 0xf4);
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") {
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  }
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  const entries = Object.entries(value);
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(cbor)]);
}

/** The length of a filter, the filter in CBOR, then a value. */
function filterSeeds() {
  // biome-ignore format: operators in rows
  const operands = {
    $eq: 1, $ne: null, $gt: 1, $gte: 1, $lt: "b", $lte: "b", $between: [1, 5], $in: [1, "a"],
    $nin: [1, "a"], $contains: "a", $notContains: "a", $startsWith: "a", $endsWith: "a", $eqi: "A",
    $nei: "A", $containsi: "A", $notContainsi: "A", $startsWithi: "A", $endsWithi: "A",
    $null: true, $empty: true, $notEmpty: true, $exists: false,
  };
  const single = Object.entries(operands).map(([name, operand]) => ({ [name]: operand }));
  const filters = [
    ...single,
    ...single.map((condition) => ({ "a.0": condition })),
    { a: 1, "a\\.b": 2, "\\$c": 3 },
    { $and: [{ a: 1 }, { $not: { b: { $gt: 1 } } }], $or: [{ a: 1 }, { b: 2 }] },
    { a: { $and: [{ $gte: 1 }, { $not: { $gt: 5 } }] } },
    { a: { $gte: { $now: true, $offset: -5 } }, b: { $lt: { $now: { $offset: 5 } } } },
    { $like: 1 },
    { a: { $between: 1 } },
    { $and: 5 },
    {},
    [],
  ].map(cbor);
  const values = vectors("values").values.map(({ hex }) => bytes(hex));
  const own = [{ a: [1, "abc"], b: 2 }, { a: { 0: "A" } }, [{ a: 1 }], "abc", 3].map(cbor);
  return [
    ...values.map((value, at) => Buffer.concat([...sized(filters[at % filters.length]), value])),
    ...filters.map((filter, at) => Buffer.concat([...sized(filter), own[at % own.length]])),
  ];
}

/** The kind of an index, the length of its path, the path, then a value. */
function pathSeeds() {
  // biome-ignore format: paths in a row
  const paths = ["a", "a.b", "0", "a.0", "0.a", "1", "-1.5", "a\\.b", "\\$c", "", "..", "a.b.c.d"];
  const own = [
    { a: 1, "a.b": 2, $c: 3 },
    { a: { b: "text", 0: null } },
    { a: [{ b: 1 }, { b: 2 }, [], "abc"] },
    { a: ["abc", 1, 1, true, null] },
    [{ a: 1 }, { b: [1, 2] }, 3],
    { a: { b: { c: { d: -1 } } } },
  ].map(cbor);
  // A Map with a text, a number, and both under one name.
  own.push(bytes("d90103 a4 6161 01 01 02 6131 03 fbbff8000000000000 04"));
  const seed = (flags, path, value) =>
    Buffer.concat([Buffer.of(flags), ...sized(Buffer.from(path)), value]);
  const values = vectors("values").values.map(({ hex }) => bytes(hex));
  return [
    ...own.flatMap((value) => paths.flatMap((path) => [0, 1, 6].map((n) => seed(n, path, value)))),
    ...values.flatMap((value, at) => [0, 3].map((n) => seed(n, paths[at % paths.length], value))),
  ];
}

/** Valid queries, and invalid ones. */
function querySeeds() {
  // biome-ignore format: queries in rows
  return [
    "red bike", '"red bike"', "bik*", '"red b" *', "a OR b", "a NOT b", "a AND (b OR c)", "a + b",
    "NEAR(a b)", "NEAR(a b + c, 5)", "^a", "name: ^a", "name:red", "details.maker:volvo",
    "{name details.maker}: (a OR b)", "-name:red", "- {name}: a", "((((a))))", "réd Straße 東京 😀",
    '"say ""hi"""', "a_1 42", "", "red AND", "(a", "a)", '"open', "nothing:a", "NEAR(a, )", "OR OR",
    "{name:a", "*", "a'b", "a;--", "\0",
  ].map((text) => Buffer.from(text));
}

/** The kind of the text in one byte, then the text, or stored bytes. */
function interchangeSeeds() {
  const { values, accepted, refused, plain, keys, literals, badLiterals } = vectors("interchange");
  const wheres = [
    '{"a":{"$gt":{"type":"bigint","value":"5"}},"b":[1],"$or":[{"a":1},{"b":{"$in":[null]}}]}',
    '{"a.b":{"$not":{"$lt":{"$now":true,"$offset":5}}},"$and":[],"c":{"type":"Date","value":null}}',
    '{"a":{"$like":1}}',
  ];
  const texts = [
    [2, [...values.map(({ typed }) => typed), ...accepted.map(({ text }) => text), ...refused]],
    [3, [...values.map(({ plain: text }) => text), ...plain.map(({ text }) => text)]],
    [4, [...literals, ...badLiterals].map(({ text }) => text)],
    [5, keys.map(({ typed }) => typed)],
    [6, wheres],
  ];
  const seed = (kind, rest) => Buffer.concat([Buffer.of(kind), rest]);
  return [
    ...cborSeeds().map((value) => seed(0, value)),
    ...v8Seeds().map((value) => seed(1, value)),
    ...texts.flatMap(([kind, all]) => all.map((text) => seed(kind, Buffer.from(text)))),
    ...keys.map(({ hex }) => seed(7, bytes(hex))),
  ];
}

const corpora = {
  interchange: interchangeSeeds(),
  filter: filterSeeds(),
  paths: pathSeeds(),
  query: querySeeds(),
  key: keySeeds(),
  cbor: cborSeeds(),
  frame: frameSeeds(),
  v8: v8Seeds(),
  connect: connectSeeds(),
  call: callSeeds(),
};
for (const [target, all] of Object.entries(corpora)) {
  const folder = join(here, "corpus", target);
  mkdirSync(folder, { recursive: true });
  const seeds = all.filter((seed) => seed.length <= SEED_BYTES_MAX);
  seeds.forEach((seed, at) => writeFileSync(join(folder, `vector-${at}`), seed));
  console.log(`fuzz ${target}: ${seeds.length} seeds`);
}
