// Run by shapes.test.mjs with code generation forbidden: writes the bytes of a value that it has
// read back.

import assert from "node:assert/strict";
import { hexOf, roundTrip } from "./codec.mjs";

assert.throws(() => new Function("return 1"), EvalError);
const list = Array.from({ length: 50 }, (_, i) => ({
  id: i,
  name: `n${i}`,
  nested: { a: [i], b: null },
}));
let back = list;
for (let i = 0; i < 20; i++) back = roundTrip(back);
assert.deepEqual(back, list);
process.stdout.write(hexOf(back));
