// A short run of many-kill.mjs, with fewer files.

import assert from "node:assert/strict";
import { test } from "node:test";

import { killMany } from "./many-kill.mjs";

test("processes with many files open are killed, and nothing acknowledged is lost", async () => {
  assert.deepEqual(await killMany({ files: 150, kills: 3, commits: 300 }), []);
});
