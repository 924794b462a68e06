// Duty: a server without tokens is opened without one, and a server with tokens says what to set.
//
// `openKv(url)` asked for a token before it asked the server, so a server of this machine that needs none was
// opened with an invented one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { open } from "../kit/server.mjs";
import { freshPath, serveFile, start } from "../server/serving.mjs";

const VARIABLES = ["OPENKV_ACCESS_TOKEN", "DENO_KV_ACCESS_TOKEN"];
const kept = VARIABLES.map((name) => [name, process.env[name]]);

before(() => {
  for (const name of VARIABLES) delete process.env[name];
});

after(() => {
  for (const [name, value] of kept) if (value !== undefined) process.env[name] = value;
});

test("a server without tokens is opened without one", async () => {
  const server = await start({ path: freshPath() });
  const kv = await open(server.url);
  await kv.set(["a"], 1);
  assert.equal((await kv.get(["a"])).value, 1);
  assert.equal(await kv.count({ prefix: [] }), 1);
});

test("a server with tokens says which option and variables to set", async () => {
  const server = await serveFile();
  await assert.rejects(openKv(server.url), (error) => {
    assert.ok(error instanceof TypeError);
    assert.match(error.message, /asks for an access token: pass the option accessToken/);
    for (const name of VARIABLES) assert.ok(error.message.includes(name), name);
    return true;
  });
});
