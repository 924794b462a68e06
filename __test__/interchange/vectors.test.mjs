// Duty: the golden texts of keys and values, which crates/core/src/interchange reads and writes too, are those of
// the JavaScript side.

import assert from "node:assert/strict";
import { test } from "node:test";
import { encode, vectors } from "../codec/codec.mjs";
import { interchangeVectors, readTyped, refusal } from "./make-vectors.mjs";

const file = vectors("interchange");

test("the file of vectors is what the JavaScript side says", async () => {
  const made = JSON.parse(JSON.stringify(await interchangeVectors()));
  assert.ok(file.values.length > 150, `only ${file.values.length} values`);
  assert.deepEqual(file, made, "run node __test__/interchange/make-vectors.mjs");
});

test("typed JSON gives the same bytes again", () => {
  for (const { name, note, encoding, hex, typed } of file.values) {
    if (note === "blob") continue; // Its contents are read later.
    const again = encode(readTyped(typed));
    assert.equal(again.encoding, encoding, name);
    assert.equal(again.bytes.toString("hex"), hex, name);
  }
});

test("what is no typed JSON is refused", () => {
  for (const text of file.refused)
    assert.ok(
      refusal(() => readTyped(text)),
      text,
    );
});
