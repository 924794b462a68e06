// Short runs of index-kill.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { killBuilders, killWriters } from "./index-kill.mjs";
import { newPath } from "./peer/file.mjs";

const seed = `index ${Date.now()}`;

test("indexes are exact and unique after kills of several writers", async () => {
  const { entries } = await killWriters(newPath(), 1_000, seed);
  assert.ok(entries > 10, `only ${entries} entries`);
});

test("an index whose builders are killed has all entries in the end", async () => {
  await killBuilders(newPath(), 5, seed);
});
