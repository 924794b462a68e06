// Duty: makes tests/vectors/interchange.json from the JavaScript side: what typed JSON, plain JSON and
// literals say about the golden values and keys. vectors.test.mjs compares the file with this, and
// crates/core/src/interchange/tests.rs the Rust side with the file.
//
//   node __test__/interchange/make-vectors.mjs

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import {
  CBOR,
  Writer,
  decodeKey,
  decodeValue,
  encode,
  encodeKey,
  vectors,
} from "../codec/codec.mjs";

const require = createRequire(import.meta.url);
const {
  encodeKey: typedKey,
  encodeValue: typedValue,
} = require("../../build/interchange/encode.js");
const { decodeLine } = require("../../build/interchange/decode.js");
const { plainValue } = require("../../build/cli/plain-json.js");
const { parseKey, parseLiteral } = require("../../build/cli/literal.js");

/** Values of the other encodings, and numbers as text. */
const MORE = [
  ["a KvU64", 2, "ffffffffffffffff"],
  ["a small KvU64", 2, "2a00000000000000"],
  ["top-level bytes", 3, "00fffe"],
  ["no top-level bytes", 3, ""],
  ...[1e21, 1e-7, 123456789012345680000, 0.1, 5e-324, -1.7976931348623157e308, 2 ** 53, 1e15].map(
    (n) => [`the number ${n}`, CBOR, encode(n).bytes.toString("hex")],
  ),
  ...[
    ["control characters", '\0\b\t\n\v\f\r\u001f\u007f"\\/\u2028'],
    ["surrogates beside text", "a\ud800b😀\udc00\ud83d"],
    ["a lone surrogate in a name", { "\ud800": 1 }],
    ["properties that are undefined", { a: undefined, b: [undefined] }],
    ["indexes among names", { b: 1, 1: 2, a: 3, 0: 4 }],
    [
      "a Map with indexes",
      new Map([
        ["b", 1],
        ["1", 2],
        ["0", undefined],
      ]),
    ],
    ["a safe bigint", 9007199254740991n],
    ["an unsafe bigint", -9007199254740992n],
    ["a year beyond 9999", new Date(253402300800000)],
    ["a year before 0", new Date(-62167219200001)],
    ["floats beside", new Float32Array([1.5, NaN, -Infinity, 0.1])],
    ["signed elements", new Int16Array([-1, -32768, 32767])],
    ["large elements", new BigUint64Array([1n, 2n ** 64n - 1n])],
    ["signed large elements", new BigInt64Array([-1n, -(2n ** 63n)])],
  ].map(([name, value]) => [name, CBOR, encode(value).bytes.toString("hex")]),
];

/** Typed JSON that no writer writes, and that is accepted. */
const ACCEPTED = [
  '{"value":1,"type":"number"}',
  '{"type":"string","value":1,"type":"number"}',
  ' { "type" : "number" , "value" : 1e400 } ',
  '{"type":"number","value":"-0"}',
  '{"type":"number","value":-0}',
  '{"type":"bigint","value":"-007"}',
  '{"type":"null"}',
  '{"type":"undefined","value":5}',
  '{"type":"string","value":"\\ud83d\\ude00\\ud800"}',
  '{"type":"Set","value":[{"type":"number","value":"-0"},{"type":"number","value":0},{"type":"number","value":"NaN"},{"type":"number","value":"NaN"},{"type":"Array","value":[]},{"type":"Array","value":[]}]}',
  '{"type":"Map","value":[[{"type":"string","value":"a"},{"type":"number","value":1}],[{"type":"string","value":"b"},{"type":"number","value":2}],[{"type":"string","value":"a"},{"type":"number","value":3}]]}',
  '{"type":"object","value":{"b":{"type":"null"},"1":{"type":"null"},"0":{"type":"null"},"b":{"type":"boolean","value":true}}}',
  '{"type":"object","value":{"__proto__":{"type":"number","value":1}}}',
  '{"type":"Uint8Array","value":"AP8+_w==","byteLength":9}',
  '{"type":"Uint8Array","value":""}',
  '{"type":"Array","value":[{"type":"Uint8Array","value":"AQ"},{"type":"CBOR","value":"gvYB"}]}',
  '{"type":"CBOR","value":"QQE"}',
  '{"type":"Date","value":"2026-02-03"}',
  '{"type":"Date","value":"2026-02-03T04:05:06.1239+02:30"}',
  '{"type":"Date","value":"-000001-12-31T23:59:59.999Z"}',
  '{"type":"RegExp","value":"//"}',
  '{"type":"RegExp","value":"/a/b[/]\\\\//yg"}',
  '{"type":"RegExp","value":"/a\\nb\\u2028/"}',
  '{"type":"Error","value":{}}',
  '{"type":"URIError","value":{"cause":{"type":"Error","value":{"message":"m"}},"stack":"S","other":1}}',
  '{"type":"KvU64","value":"007"}',
];

const REFUSED = [
  "",
  "1",
  "{}",
  "[]",
  '{"type":"Symbol"}',
  '{"type":1}',
  '{"type":"string"}',
  '{"type":"string","value":"a}',
  '{"type":"string","value":"\\x"}',
  '{"type":"number","value":"1"}',
  '{"type":"number","value":01}',
  '{"type":"bigint","value":1}',
  '{"type":"bigint","value":"1.0"}',
  '{"type":"bigint","value":""}',
  '{"type":"boolean","value":"true"}',
  '{"type":"KvU64","value":"-1"}',
  '{"type":"KvU64","value":"18446744073709551616"}',
  '{"type":"object","value":[]}',
  '{"type":"object","value":{"a":1}}',
  '{"type":"Array","value":{}}',
  '{"type":"Map","value":[[{"type":"null"}]]}',
  '{"type":"Map","value":[1]}',
  '{"type":"Date","value":"never"}',
  '{"type":"Date","value":5}',
  '{"type":"RegExp","value":"a"}',
  '{"type":"RegExp","value":"/a/x"}',
  '{"type":"RegExp","value":"/a/gg"}',
  '{"type":"Uint16Array","value":"AQ"}',
  '{"type":"Uint8Array","value":"A*"}',
  '{"type":"Uint8Array","value":"AA==="}',
  '{"type":"Error","value":{"message":1}}',
  '{"type":"CBOR","value":"_w"}',
];

/** Plain JSON, as JSON.parse reads it. */
const PLAIN = [
  "null",
  " [1, -0, 1.50, 1E3, true, false] ",
  '{"b":1,"a":{"10":1,"9":2},"b":[]}',
  '"\\ud83d\\ude00\\ud800\\u0000"',
  "9007199254740994",
  '{"":{"__proto__":null}}',
];

const LITERALS = [
  ...["1.5n", "1e3n", "1 2", "-", ".", "--1", "/* 1", "*", "/tmp/x", "1.2.3", "2026-01-01"],
  ...["hello world", "01a21a03-1faa", "f(x)"],
  "users",
  "ada@example.com",
  "$x-1",
  "42",
  "-42n",
  "0xffn",
  "+.5e3",
  "5.",
  "0x1fffffffffffff8",
  "-Infinity",
  "NaN",
  "[]",
  "[ ]",
  '["users",42,42n,u8"00ff",true]',
  "['it\\'s', \"\\x41\\u0042\\u{1f600}\\n\\0\\q\", false,]",
  "[/* a */ 1, // b\n 2]",
  "[\u00a0\ufeff1]",
  '"\\ud83d\\ude00"',
  "'\\ud800'",
  "u8''",
  "-0",
  '"a"',
  "truex",
  "ünïcode",
  "-0x10",
  "1e400",
  'u8"00 fF"',
  "-1e400",
  "1e21",
  "+491701234567",
  "00501",
  "-007",
  "00.5",
  "007n",
  "0.5",
  "9007199254740992",
  "9007199254740993",
  "12345678901234567890",
  "-12345678901234567890",
  "12345678901234567890n",
  "123456789012345680000",
  "1000000000000000000001",
  "0x20000000000000",
  "0x20000000000001",
];

const BAD_LITERALS = [
  "",
  "[",
  "[1",
  "[1,",
  '["a"',
  "[1 2]",
  "[,]",
  "[1,,2]",
  '["a',
  "[1n.5]",
  "[user]",
  "[😀]",
  '["😀", x]',
  'u8"0"',
  'u8"zz"',
  '"\\u12"',
  '"\\u{110000}"',
  " ",
  "[007]",
  "[0, 01n]",
  "[9007199254740993]",
  "[-0x20000000000001]",
  "[1e400]",
];

/** Values that are literals. */
const VALUE_LITERALS = [
  "[1, [2,], {a: 1, 'b c': [3], 5: null,},]",
  "/* of */ { // these\n a: /**/ 1 /* last */ } // end",
  '{"__proto__": 1}',
  'u8"00 fF"',
  "u64(42)",
  "u64( 42n, )",
  'date("2026-01-01")',
  "date(null)",
  "date(0)",
  'set([1, "a", undefined])',
  'map([["a", 1], [[1n], { b: date(0) }]])',
  'regexp("/a\\\\/b/g")',
  'view("Float32Array", u8"0000c03f")',
  'view("ArrayBuffer", u8"00")',
  'error("TypeError", { message: "a", cause: [1] })',
  'cbor(u8"f6")',
  'typed("{\\"type\\":\\"bigint\\",\\"value\\":\\"7\\"}")',
  "NaN",
  "-Infinity",
  "-0",
  "undefined",
  `${"[".repeat(200)}${"]".repeat(200)}`,
];

/** Texts that are no values: the fault, and its character. */
const BAD_VALUE_LITERALS = [
  ...[
    "",
    "[1",
    "[1 2]",
    "{a 1}",
    "{1.5: 1}",
    '"open',
    "1 2",
    "1 /* open",
    "/ 1",
    "1.5n",
    "alert(1)",
  ],
  ...[
    "user",
    'u8"0"',
    "set(1)",
    "map([[1]])",
    'view("Date", u8"")',
    "cbor(1)",
    "set([1]",
    "[".repeat(201),
  ],
];

/** What vectors.test.mjs compares with the file. */
export async function interchangeVectors() {
  // Not every runtime has Float16Array.
  const golden = vectors("values").values.filter(({ note }) => note !== "float16");
  const values = [...golden.map(({ name, hex, note }) => [name, CBOR, hex, note]), ...MORE];
  const keys = vectors("keys").keys.filter(({ note }) => note !== "nan-sign");
  return {
    about: [
      "Made by __test__/interchange/make-vectors.mjs. values: encoding id and bytes of a stored value, its typed JSON, its plain JSON, and whether plain JSON simplifies it.",
      "accepted, plain: texts and the stored value that they give. refused: typed JSON that every reader refuses.",
      "keys: bytes and typed JSON. literals: texts and the bytes of the key. badLiterals: texts and the error. valueLiterals: texts and the typed JSON of the value. badValueLiterals: texts, the fault and its character. The command line, the studio and the server share these.",
    ],
    values: await Promise.all(
      values.map(async ([name, encoding, hex, note]) => {
        const bytes = Buffer.from(hex, "hex");
        const value = decodeValue(encoding, bytes, 0, bytes.length);
        const plain = await plainValue(value);
        const again = encode(JSON.parse(plain));
        const simplified = again.encoding !== encoding || again.bytes.toString("hex") !== hex;
        return { name, note, encoding, hex, typed: await typedValue(value), plain, simplified };
      }),
    ),
    accepted: ACCEPTED.map((text) => ({ text, ...stored(readTyped(text)) })),
    refused: REFUSED,
    plain: PLAIN.map((text) => ({ text, ...stored(JSON.parse(text)) })),
    keys: keys.map(({ name, hex }) => {
      const bytes = Buffer.from(hex, "hex");
      return { name, hex, typed: typedKey(decodeKey(bytes, 0, bytes.length)) };
    }),
    literals: LITERALS.map((text) => ({ text, hex: keyOf(text) })),
    badLiterals: BAD_LITERALS.map((text) => ({ text, message: refusal(() => parseKey(text)) })),
    valueLiterals: await Promise.all(
      VALUE_LITERALS.map(async (text) => ({ text, typed: await typedValue(parseLiteral(text)) })),
    ),
    badValueLiterals: BAD_VALUE_LITERALS.map((text) => {
      const { what, at } = faultOf(text);
      return { text, what, character: at };
    }),
  };
}

/** The fault of a text that is no value, and its character. */
export function faultOf(text) {
  const message = refusal(() => parseLiteral(text));
  const [, ofEmpty] = /^(.*): the text is empty /.exec(message) ?? [];
  if (ofEmpty !== undefined) return { what: ofEmpty, at: text.length + 1 };
  const [, what, at] = / at character (\d+) of /.test(message)
    ? /^(.*) at character (\d+) of /s.exec(message)
    : [];
  return { what, at: Number(at) };
}

function stored(value) {
  const { encoding, bytes } = encode(value);
  return { encoding, hex: bytes.toString("hex") };
}

function keyOf(text) {
  const writer = new Writer(64);
  encodeKey(writer, parseKey(text));
  return writer.copy().toString("hex");
}

/** The message of the error that a call throws. */
export function refusal(call) {
  try {
    call();
  } catch (error) {
    return error.message;
  }
  throw new Error(`${call} throws nothing`);
}

/** Reads typed JSON, as the value of a line. */
export function readTyped(text) {
  return decodeLine(`{"key":[{"type":"string","value":""}],"value":${text}}`).value;
}

/** A row for each vector. */
export function fileOf(made) {
  const lists = Object.entries(made).map(([name, rows]) => {
    const lines = rows.map((row) => `    ${JSON.stringify(row)}`);
    return `  ${JSON.stringify(name)}: [\n${lines.join(",\n")}\n  ]`;
  });
  return `{\n${lists.join(",\n")}\n}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = new URL("../../tests/vectors/interchange.json", import.meta.url);
  writeFileSync(file, fileOf(await interchangeVectors()));
}
