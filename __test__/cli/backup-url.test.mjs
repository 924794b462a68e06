// Duty: openkv backup of a database behind a URL, and its interruption.

import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { cutting } from "../remote/cutting.mjs";
import { contents, ended, folderOfTests, openkv, start } from "./running.mjs";

const path = folderOfTests();
const accessToken = "an access token".replaceAll(" ", "-");
const env = { OPENKV_ACCESS_TOKEN: accessToken };

async function filled(name) {
  const server = await startServer({ path: path(name), accessToken });
  const kv = await open(server.url, { accessToken, limits: "wide" });
  for (let n = 0; n < 8; n++) await kv.set(["big", n], new Uint8Array(1_000_000).fill(n));
  return { server, kv };
}

test("a backup of a URL is made, and tells what it holds", async () => {
  const { server } = await filled("a.sqlite3");
  const copy = path("a-copy.sqlite3");
  const { code, out, err } = await openkv("--json", "backup", server.url, copy, { env });
  assert.equal(code, 0, err);
  assert.deepEqual([JSON.parse(out).file, JSON.parse(out).entries], [copy, 8]);
  assert.equal((await contents(copy)).length, 8);
  assert.equal((await openkv("-d", copy, "check")).code, 0);
});

test("an interrupted download removes its file", {
  skip: process.platform === "win32",
}, async () => {
  const { server } = await filled("b.sqlite3");
  const link = await cutting(server.url, (_, answer) => {
    let sum = 0;
    answer.on("data", (piece) => {
      sum += piece.length;
      if (sum > 2_000_000) answer.pause();
    });
    return Number.POSITIVE_INFINITY;
  });
  const copy = path("b-copy.sqlite3");
  const unfinished = () => readdirSync(dirname(copy)).filter((name) => /b-copy.*unfin/.test(name));
  const child = start(["-d", link.url, "backup", copy], env);
  const begun = () => unfinished().some((name) => statSync(join(dirname(copy), name)).size > 0);
  await until(begun, "bytes of the copy");
  assert.equal(await ended(child, "SIGINT"), 130);
  assert.deepEqual(unfinished(), []);
  assert.equal(existsSync(copy), false);
});
