// Duty: OPENKV_LOG: what it makes the addon tell, and that without it nothing is told.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { argumentsFor } from "../kit/program.mjs";
import { freshPath } from "./databases.mjs";

const entry = new URL("../../index.mjs", import.meta.url).href;

/** What a program that opens, writes and closes tells on standard error. */
function told(filter) {
  const env = { ...process.env, OPENKV_LOG: filter };
  if (filter === undefined) delete env.OPENKV_LOG;
  const program = `import { openKv } from "${entry}";
    const kv = await openKv(${JSON.stringify(freshPath())});
    await kv.set(["k"], 1);
    await kv.checkpoint();
    kv.close();`;
  const options = { env, encoding: "utf8" };
  const { status, stderr } = spawnSync(process.execPath, argumentsFor(program), options);
  assert.equal(status, 0, stderr);
  return stderr;
}

test("spans of what happens are told to those who ask", () => {
  const lines = told("openkv=debug");
  assert.match(lines, /open: .*close/);
  assert.match(lines, /commit\{writes=1 durable=true\}: .*close time\.busy=/);
  assert.match(lines, /migrate: /);
  assert.match(lines, /checkpoint: /);
});

test("a filter that leaves nothing, an empty one and none tell nothing", () => {
  for (const filter of ["off", "", undefined]) assert.equal(told(filter), "", String(filter));
});

test("what is no filter is said, and the program runs", () => {
  assert.match(told("openkv=nonsense=1"), /^openkv: OPENKV_LOG is no filter/);
});
