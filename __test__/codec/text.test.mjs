// Text out of bytes: the same as the strict TextDecoder gives, for text of every length and script,
// whole, cut and damaged.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { decodeKey, encodeKey, Writer } from "./codec.mjs";

const require = createRequire(import.meta.url);
const { readUtf8 } = require("../../build/codec/text.js");
const { ASCII, LATIN1, shortText } = require("../../build/codec/short-text.js");

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function expected(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** Characters at the ends of what one, two, three and four bytes hold, and scripts. */
const ALPHABETS = [
  "abc",
  "éüÿ\x80",
  "ÿĀ\u07ff",
  "日本語",
  "🙂\u{10ffff}\u{10000}",
  "\ud7ff\ue000\uffff\u0800\ufeff\ufffd",
  "aé日🙂",
].map((text) => [...text]);
/** Around every bound of text.ts. */
const LENGTHS = [0, 1, 2, 7, 8, 9, 23, 24, 25, 64, 65, 191, 192, 193, 500, 5461, 5462, 16_384];

test("text of every length, from within a buffer", () => {
  for (const alphabet of ALPHABETS) {
    for (const length of LENGTHS) {
      const text = Array.from({ length }, (_, i) => alphabet[i % alphabet.length]).join("");
      const bytes = Buffer.from(`\u00e9${text}\u00e9`);
      assert.equal(readUtf8(bytes, 2, bytes.length - 2), text);
    }
  }
});

test("damaged and cut text", () => {
  let seed = 1;
  const below = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % n;
  };
  let refused = 0;
  for (let round = 0; round < 30_000; round++) {
    const alphabet = ALPHABETS[below(ALPHABETS.length)];
    const length = below(round % 50 === 0 ? 2000 : 40);
    const text = Array.from({ length }, () => alphabet[below(alphabet.length)]).join("");
    const bytes = Buffer.from(`xx${text}yy`);
    if (length > 0) bytes[2 + below(bytes.length - 4)] = below(256);
    const end = Math.max(2, bytes.length - 2 - below(4));
    const want = expected(bytes.subarray(2, end));
    assert.equal(readUtf8(bytes, 2, end), want, bytes.toString("hex"));
    if (want === null) refused++;
  }
  assert.ok(refused > 1000);
});

/** The longest text that shortText makes; more is never asked for. */
const LENGTH_MAX = 24;

test("short text of every length, with one byte beyond the bound at every place", () => {
  for (let length = 0; length <= LENGTH_MAX + 1; length++) {
    const bytes = Buffer.from(Array.from({ length: length + 4 }, (_, i) => 0x61 + (i % 26)));
    const text = bytes.toString("latin1", 2, 2 + length);
    const want = length > LENGTH_MAX ? null : text;
    assert.equal(shortText(bytes, 2, length, ASCII), want);
    for (let at = 2; at < 2 + length; at++) {
      const other = Buffer.from(bytes);
      other[at] = 0xff;
      assert.equal(shortText(other, 2, length, ASCII), null);
      if (want !== null)
        assert.equal(shortText(other, 2, length, LATIN1), other.toString("latin1", 2, 2 + length));
    }
  }
});

test("keys of text of every length", () => {
  const writer = new Writer();
  for (const alphabet of ALPHABETS) {
    for (const length of LENGTHS) {
      const text = Array.from({ length }, (_, i) => alphabet[i % alphabet.length]).join("");
      for (const part of [text, `\0${text}\0`]) {
        writer.pos = 0;
        encodeKey(writer, [part, 1]);
        assert.deepEqual(decodeKey(writer.buf, 0, writer.pos), [part, 1]);
      }
    }
  }
});
