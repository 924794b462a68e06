// Duty: `openkv mcp` without its optional package: its error, and its tools alone.
// __test__/integrations/mcp.spec.mjs has the command with it.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { folderOfTests, openkv } from "./running.mjs";

const { READING } = createRequire(import.meta.url)("../../build/cli/mcp/tools.js");
const path = folderOfTests();

test("without the package of the protocol the command says how to install it", async () => {
  const cwd = path("empty");
  mkdirSync(cwd);
  const { code, out, err } = await openkv("mcp", ":memory:", { cwd });
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(
    err,
    /needs the package @modelcontextprotocol\/sdk: npm install @modelcontextprotocol/,
  );
});

// The cursor was that of the whole page: a model that went on from it never saw the results in between.
test("a search goes on behind the last result that had room", async () => {
  const kv = await openKv(":memory:");
  const text = `word ${"x".repeat(30_000)}`;
  for (let n = 0; n < 7; n++) await kv.set(["docs", n], { text });
  await (await kv.createIndex({ prefix: ["docs"], fields: ["text"] })).ready();
  const { run } = READING.find(({ name }) => name === "search");
  const given = { prefix: ["docs"], query: "word", limit: 5 };
  const found = [];
  for (let cursor; ; ) {
    const page = await run(kv, { ...given, ...(cursor && { cursor }) });
    found.push(...page.entries.map(({ key }) => key[1]));
    cursor = page.cursor;
    if (cursor == null) break;
  }
  await kv.close();
  assert.deepEqual(found, [0, 1, 2, 3, 4, 5, 6]);
});
