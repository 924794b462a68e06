// The codec against node:v8's serializer, in one run: operations per second, and the ratio of the
// medians.
//
//     npm run build:ts && node bench/codec.mjs [name…]

import { createRequire } from "node:module";
import { deserialize, serialize } from "node:v8";

const require = createRequire(import.meta.url);
const dist = process.env.OPENKV_BENCH_DIST ?? "../dist";
const { Writer } = require(`${dist}/codec/writer.js`);
const { encodeValue } = require(`${dist}/codec/value/encode.js`);
const { decodeValue } = require(`${dist}/codec/value/decode.js`);
const { encodeKey, decodeKey } = require(`${dist}/codec/key.js`);

const ROUNDS = 9;
const ROUND_MS = 60;

/** Several of each, so that no object is measured repeatedly without a change. */
const workloads = {
  "small object": (i) => ({
    id: i,
    name: `user ${i}`,
    email: `user${i}@example.com`,
    age: 20 + (i % 60),
    active: i % 2 === 0,
  }),
  "300 rows, 24 KB": (i) => ({
    rows: Array.from({ length: 300 }, (_, j) => ({
      id: i * 300 + j,
      name: `name ${j}`,
      email: `u${j}@example.com`,
      score: j * 1.5,
      active: j % 3 === 0,
      tags: ["a", `t${j % 10}`],
    })),
  }),
  "Map Set bigint Date": (i) => ({
    map: new Map([
      ["a", i],
      ["b", 2],
    ]),
    set: new Set([1, 2, `s${i}`]),
    big: 2n ** 70n + BigInt(i),
    at: new Date(1.7e12 + i),
  }),
  "60 KB bytes": (i) => new Uint8Array(60 * 1024).fill(i),
  "10 KB ASCII string": (i) => `${i}`.padEnd(10 * 1024, "lorem ipsum "),
  "non-ASCII object": (i) => ({
    id: i,
    name: `Zoë Müller ${i}`,
    city: "Kraków",
    note: "naïve café über",
  }),
  "10k integers": (i) => Array.from({ length: 10_000 }, (_, j) => j * (i + 1)),
};

const SAMPLES = 16;

function median(numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}

/**
 * Runs the functions in turns, so that a disturbance affects all of them. Returns operations per
 * second.
 */
function compare(functions) {
  const rates = functions.map(() => []);
  for (let round = -2; round < ROUNDS; round++) {
    functions.forEach((run, which) => {
      const start = performance.now();
      let count = 0;
      let took = 0;
      do {
        for (let i = 0; i < SAMPLES; i++) run(i);
        count += SAMPLES;
        took = performance.now() - start;
      } while (took < ROUND_MS);
      if (round >= 0) rates[which].push((count / took) * 1000);
    });
  }
  return rates.map(median);
}

const si = (rate) =>
  (rate >= 1e6 ? `${(rate / 1e6).toFixed(2)}M` : `${(rate / 1e3).toFixed(1)}k`).padStart(8);

const wanted = process.argv.slice(2);
let sink;
const row = (...cells) =>
  console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(22) : cell.padStart(8))).join(" "));
const ratio = (a, b) => (a / b).toFixed(2);

row("", "encode", "node:v8", "ratio", "decode", "node:v8", "ratio");
for (const [name, make] of Object.entries(workloads)) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
  const values = Array.from({ length: SAMPLES }, (_, i) => make(i));
  const writer = new Writer(1 << 20);
  const ours = values.map((value) => {
    writer.pos = 0;
    const encoding = encodeValue(writer, value);
    return { encoding, bytes: writer.copy() };
  });
  const theirs = values.map((value) => serialize(value));
  const [encode, v8encode, decode, v8decode] = compare([
    (i) => {
      writer.pos = 0;
      sink = encodeValue(writer, values[i]);
    },
    (i) => (sink = serialize(values[i])),
    (i) => {
      const { encoding, bytes } = ours[i];
      sink = decodeValue(encoding, bytes, 0, bytes.length);
    },
    (i) => (sink = deserialize(theirs[i])),
  ]);
  row(
    name,
    si(encode),
    si(v8encode),
    ratio(encode, v8encode),
    si(decode),
    si(v8decode),
    ratio(decode, v8decode),
  );
}

if (wanted.length === 0 || wanted.includes("key")) {
  const keys = Array.from({ length: SAMPLES }, (_, i) => ["users", `user${i}`, i]);
  const writer = new Writer();
  const encoded = keys.map((key) => {
    writer.pos = 0;
    encodeKey(writer, key);
    return writer.copy();
  });
  const [encode, decode] = compare([
    (i) => {
      writer.pos = 0;
      sink = encodeKey(writer, keys[i]);
    },
    (i) => (sink = decodeKey(encoded[i], 0, encoded[i].length)),
  ]);
  row("key [text, text, n]", si(encode), "", "", si(decode));
}
void sink;
