// The codec's parts as they were built, and the shortest way to use them in a test.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { runInThisContext } from "node:vm";

const require = createRequire(import.meta.url);

export const { Writer } = require("../../build/codec/writer.js");
export const { encodeValue, encodeCbor } = require("../../build/codec/value/encode.js");
export const { decodeValue } = require("../../build/codec/value/decode.js");
export const { fillBlobs } = require("../../build/codec/value/blob.js");
export const { encodeKey, encodeKeyParts, decodeKey } = require("../../build/codec/key.js");
export const { encodeCursor, decodeCursor, commonLength } = require("../../build/codec/cursor.js");
export const { KvU64 } = require("../../build/codec/u64.js");
export const { VALUE_DEPTH_MAX } = require("../../build/model/limits.js");

export const CBOR = 67;

/** One of the golden files. */
export function vectors(name) {
  return JSON.parse(
    readFileSync(new URL(`../../tests/vectors/${name}.json`, import.meta.url), "utf8"),
  );
}

/** The value of a vector's JavaScript expression; also where code from strings is forbidden. */
export function evaluate(js) {
  return runInThisContext(`(KvU64) => (${js})`)(KvU64);
}

/** The encoding id and a copy of the bytes; `packs`: with packed arrays, as in files. */
export function encode(value, packs = false) {
  const writer = new Writer(64);
  writer.packs = packs;
  const encoding = encodeValue(writer, value);
  return { encoding, bytes: writer.copy() };
}

export function hexOf(value, packs = false) {
  return encode(value, packs).bytes.toString("hex");
}

/** The value of CBOR in hex. */
export function fromHex(hex) {
  const bytes = Buffer.from(hex, "hex");
  return decodeValue(CBOR, bytes, 0, bytes.length);
}

/** Encoded and decoded again, out of a larger buffer whose other bytes are garbage. */
export function roundTrip(value, packs = false) {
  const { encoding, bytes } = encode(value, packs);
  const around = Buffer.alloc(bytes.length + 32, 0xa5);
  around.set(bytes, 16);
  return decodeValue(encoding, around, 16, 16 + bytes.length);
}

export function keyHex(key) {
  const writer = new Writer(8);
  encodeKey(writer, key);
  return writer.copy().toString("hex");
}
