// The codecs that codec.mjs compares: each encodes a value to bytes of its own and back.
//
// The buffers of the peers are used as they are handed out, which is the fast way for them:
// msgpackr and cbor-x hand out slices of a buffer that they share.

import { createRequire } from "node:module";
import { deserialize, serialize } from "node:v8";
import { installPeers } from "./install.mjs";

const require = createRequire(import.meta.url);

/** openkv's codec out of a compiled folder: bytes are written into one writer and copied out of it. */
export function openkvCodec(name, dist) {
  const { Writer } = require(`${dist}/codec/writer.js`);
  const { encodeValue } = require(`${dist}/codec/value/encode.js`);
  const { decodeValue } = require(`${dist}/codec/value/decode.js`);
  const writer = new Writer(1 << 20);
  // As for a file.
  writer.packs = true;
  return {
    name,
    /** Leaves the bytes in the writer, as a set does: its record is sent from there. */
    encode(value) {
      writer.pos = 0;
      return encodeValue(writer, value);
    },
    /** The bytes for `decode`. */
    bytesOf(value) {
      writer.pos = 0;
      const encoding = encodeValue(writer, value);
      return { encoding, bytes: writer.copy() };
    },
    decode: ({ encoding, bytes }) => decodeValue(encoding, bytes, 0, bytes.length),
  };
}

const json = {
  name: "JSON",
  encode: (value) => JSON.stringify(value),
  bytesOf: (value) => Buffer.from(JSON.stringify(value)),
  decode: (bytes) => JSON.parse(bytes.toString()),
};

const v8 = { name: "node:v8", encode: serialize, bytesOf: serialize, decode: deserialize };

/** cbor-x and msgpackr have one interface. Their buffers are pooled, so the bytes are copied. */
function packer(name, pack, unpack) {
  return { name, encode: pack, bytesOf: (value) => Buffer.from(pack(value)), decode: unpack };
}

/** All codecs, openkv's first. */
export function codecs(dist, beside) {
  const own = [openkvCodec("openkv", dist)];
  if (beside) own.push(openkvCodec("beside", beside));
  let peers = load();
  if (peers === undefined) {
    installPeers();
    peers = load();
  }
  if (peers === undefined) throw new Error("cbor-x and msgpackr are installed, but do not load");
  const { cbor, msgpack } = peers;
  const encoder = new cbor.Encoder({
    useRecords: false,
    mapsAsObjects: true,
    tagUint8Array: false,
  });
  const packr = new msgpack.Packr({ useRecords: false, moreTypes: true, mapsAsObjects: true });
  // Structures that are shared by all values of a program, as lmdb does it for a database.
  const shared = new msgpack.Packr({ useRecords: true, moreTypes: true, structures: [] });
  return [
    ...own,
    json,
    v8,
    packer(
      "cbor-x",
      (value) => encoder.encode(value),
      (bytes) => encoder.decode(bytes),
    ),
    packer(
      "msgpackr",
      (value) => packr.pack(value),
      (bytes) => packr.unpack(bytes),
    ),
    packer(
      "msgpackr+r",
      (value) => shared.pack(value),
      (bytes) => shared.unpack(bytes),
    ),
  ];
}

/** By `require`, which finds them in Deno too. */
function load() {
  try {
    return { cbor: require("cbor-x"), msgpack: require("msgpackr") };
  } catch {
    return undefined;
  }
}
