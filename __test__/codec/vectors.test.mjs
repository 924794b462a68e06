// The golden files, which the Rust codec is held to as well.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CBOR,
  commonLength,
  decodeCursor,
  decodeKey,
  encode,
  encodeCursor,
  evaluate,
  fromHex,
  hexOf,
  keyHex,
  roundTrip,
  vectors,
} from "./codec.mjs";
import { assertSame } from "./graph.mjs";

const keys = vectors("keys");
const values = vectors("values");
const cursors = vectors("cursors");

test("keys have their golden bytes and come back from them", () => {
  for (const { name, js, hex, note } of keys.keys) {
    const key = evaluate(js);
    if (note === "nan-sign") assert.ok([hex, "21fff8000000000000"].includes(keyHex(key)), name);
    else assert.equal(keyHex(key), hex, name);
    const bytes = Buffer.from(hex, "hex");
    const decoded = decodeKey(bytes, 0, bytes.length);
    if (note !== "lossy") assert.deepEqual(decoded, key, name);
    if (note !== "nan-sign") assert.equal(keyHex(decoded), hex, name);
  }
});

test("bytes that are no key are refused", () => {
  for (const { name, hex } of keys.invalid) {
    const bytes = Buffer.from(hex, "hex");
    assert.throws(() => decodeKey(bytes, 0, bytes.length), RangeError, name);
  }
});

const withoutFloat16 = typeof Float16Array === "undefined";

test("values have their golden bytes", () => {
  for (const { name, js, hex, note } of values.values) {
    if (note === "blob" || (note === "float16" && withoutFloat16)) continue;
    const { encoding, bytes } = encode(evaluate(js));
    assert.equal(encoding, CBOR, name);
    assert.equal(bytes.toString("hex"), hex, name);
  }
});

test("golden bytes give equal values, which have the same bytes", () => {
  for (const { name, js, hex, note } of values.values) {
    if (note === "blob" || (note === "float16" && withoutFloat16)) continue;
    const value = fromHex(hex);
    assert.equal(hexOf(value), hex, name);
    const expected = evaluate(js);
    if (note === "plain" || note === "bytes" || name === "view of a part stands alone") continue;
    assertSame(value, expected, name);
    assertSame(roundTrip(expected), expected, name);
  }
});

test("values with packed arrays have their golden bytes, and are read like plain ones", () => {
  for (const { name, js, hex, plain } of values.packed) {
    assert.equal(hexOf(evaluate(js), true), hex, name);
    assert.equal(hexOf(evaluate(js)), plain, name);
    assertSame(fromHex(hex), evaluate(js), name);
    assertSame(fromHex(plain), evaluate(js), name);
    assert.ok(hex.length <= plain.length, name);
    for (let length = 0; length < hex.length; length += 2)
      assert.throws(() => fromHex(hex.slice(0, length)), RangeError, name);
    assert.throws(() => fromHex(`${hex}00`), RangeError, name);
  }
});

test("the deepest nesting allowed is read", () => {
  let value = fromHex(values.deepest.hex);
  let depth = 0;
  for (; Array.isArray(value); depth++) value = value[0];
  assert.equal(depth, 1000);
});

test("bytes that are no value are refused", () => {
  for (const { name, hex } of [...values.invalid, ...values.notShortest]) {
    assert.throws(
      () => fromHex(hex),
      { name: "RangeError", message: "could not deserialize value" },
      name,
    );
  }
});

test("every golden value is refused when it is cut short, and when a byte follows", () => {
  for (const { name, hex } of values.values) {
    for (let length = 0; length < hex.length; length += 2) {
      assert.throws(
        () => fromHex(hex.slice(0, length)),
        RangeError,
        `${name} cut to ${length / 2}`,
      );
    }
    assert.throws(() => fromHex(`${hex}00`), RangeError, name);
  }
});

test("cursors are Deno's", () => {
  for (const { name, key, common, cursor } of cursors.cursors) {
    const bytes = Buffer.from(key, "hex");
    assert.equal(encodeCursor(bytes, 0, bytes.length, common), cursor, name);
    assert.equal(decodeCursor(cursor).toString("hex"), key.slice(common * 2), name);
  }
  for (const { name, cursor } of cursors.invalid) {
    assert.throws(
      () => decodeCursor(cursor),
      { name: "TypeError", message: /^invalid cursor: received / },
      name,
    );
  }
  assert.throws(() => decodeCursor(1), {
    name: "TypeError",
    message: /expected: string, got: Number: the cursor is 1; pass on that of an earlier page/,
  });
  assert.equal(
    commonLength(Buffer.from("026100026200", "hex"), Buffer.from("026100027a00", "hex")),
    4,
  );
});
