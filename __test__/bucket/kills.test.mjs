// Duty: faults of leaders on a folder that is used as an object store. run.mjs has them on a real server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { killLeaders } from "./kills.mjs";

/** Of leaders that get to write before they lose it, on a busy machine too. */
const LEASE_MS = 1_500;

test("leaders are killed and stopped, and nothing acknowledged is lost or done twice", async () => {
  const folder = newFolder("bucket-kills");
  const url = `${bucketUrl(join(folder, "bucket"))}?lease=${LEASE_MS}ms`;
  const { acked } = await killLeaders({ url, folder, leaseMs: LEASE_MS, kills: 3 });
  assert.ok(acked >= 15, `${acked}`);
});
