// Duty: a long log gets a snapshot, and what it contains is deleted; openings and readers find the same database.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { until } from "../kit/time.mjs";

/** Four of these go by before the log is shortened. A reader that is behind is refused after two without a look. */
const LEASE = "1s";

test("a snapshot takes the place of the log that it contains", async () => {
  const folder = newFolder("bucket-snapshots");
  const path = join(folder, "bucket");
  const url = `${bucketUrl(path)}?lease=${LEASE}`;
  const names = (of) => (existsSync(join(path, of)) ? readdirSync(join(path, of)) : []);
  const kv = await openKv(url, { limits: "wide" });
  const reader = await openKv(url, { lead: "never" });
  // Random bytes, so that the copy is large too.
  const value = (n) =>
    Uint8Array.from({ length: 2_000_000 }, (_, at) => (at * 7919 * (n + 1)) % 251);
  for (let n = 0; n < 10; n++) await kv.set(["n", n], value(n));
  await until(() => names("snapshots").length > 0, "a snapshot");
  await kv.set(["behind"], 1);
  const first = "0".repeat(16);
  await until(async () => {
    await kv.set(["beat"], Date.now());
    return !names("log").includes(first);
  }, "the log is shortened");
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
