// Duty: moments of the past equal a model. `node __test__/archive/moments.mjs --restores 1000` restores more of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compare } from "./moments.mjs";

test("random versions are read and restored as a model has them", async () => {
  const wanted = { versions: 1000, restores: 10 };
  assert.deepEqual(await compare({ ...wanted, seed: String(Date.now()) }), wanted);
});
