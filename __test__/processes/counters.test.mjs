// Two processes that run transactions on the same counters lose nothing (counters.mjs repeats it).

import assert from "node:assert/strict";
import { test } from "node:test";

import { round } from "./counters.mjs";
import { isOracle } from "./target.mjs";

test("transactions of two processes are exact", { skip: isOracle }, async () => {
  assert.deepEqual(await round({ processes: 2, transactions: 60 }), []);
});
