// Duty: `openkv mcp` without its optional package. __test__/integrations/mcp.spec.mjs has the command with it.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { folderOfTests, openkv } from "./running.mjs";

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
