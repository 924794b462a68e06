// Duty: a long log gets a snapshot, and what it contains is deleted; openings and readers find the same database.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

const PATIENCE_MS = 60_000;

async function until(what, holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => setTimeout(done, 50));
  }
}

test("a snapshot takes the place of the log that it contains", async () => {
  const folder = newFolder("bucket-snapshots");
  const path = join(folder, "bucket");
  const url = `bucket+${pathToFileURL(path).href}?lease=500ms`;
  const names = (of) => (existsSync(join(path, of)) ? readdirSync(join(path, of)) : []);
  const kv = await openKv(url, { limits: "wide" });
  const reader = await openKv(url, { lead: "never" });
  // Random bytes, so that the copy is large too.
  const value = (n) =>
    Uint8Array.from({ length: 2_000_000 }, (_, at) => (at * 7919 * (n + 1)) % 251);
  for (let n = 0; n < 10; n++) await kv.set(["n", n], value(n));
  await until("a snapshot", () => names("snapshots").length > 0);
  await kv.set(["behind"], 1);
  const first = "0".repeat(16);
  await until("the log is shortened", async () => {
    await kv.set(["beat"], Date.now());
    return !names("log").includes(first);
  });
  const { value: beat } = await kv.get(["beat"]);
  assert.equal((await reader.get(["beat"])).value, beat);
  const fresh = await openKv(url, { lead: "never" });
  assert.equal((await fresh.get(["beat"])).value, beat);
  assert.equal((await fresh.get(["behind"])).value, 1);
  assert.deepEqual((await fresh.get(["n", 9])).value, value(9));
  await Promise.all([kv.close(), reader.close(), fresh.close()]);
  const again = await openKv(url, { limits: "wide" });
  assert.equal((await again.get(["beat"])).value, beat);
  await again.set(["again"], 1);
  await again.close();
});
