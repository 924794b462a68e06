// Duty: what openkv writes in V8's format is read by this runtime's own V8, and means the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize } from "node:v8";
import { evaluate, vectors } from "./codec.mjs";
import { assertSame } from "./graph.mjs";

const withoutFloat16 = typeof Float16Array === "undefined";
/**
 * A DOMException is a record that Deno alone knows; and Node 20 does not read an error that is its
 * own cause, not even from its own bytes.
 */
const UNREADABLE = ["DOMException", "error that is its own cause"];
/** What is stored is what the runtime shows of them, and that differs. */
const NOT_COMPARED = ["plain", "bytes", "blob"];

test("golden bytes in V8's format are read by V8", () => {
  let read = 0;
  for (const { name, js, written, note } of vectors("v8").values) {
    if (UNREADABLE.includes(name) || NOT_COMPARED.includes(note)) continue;
    if (withoutFloat16 && note === "float16") continue;
    const value = deserialize(Buffer.from(written, "hex"));
    if (name !== "view of a part stands alone") assertSame(value, evaluate(js), name);
    read++;
  }
  assert.ok(read > 120, `only ${read}`);
});
