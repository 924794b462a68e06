// Duty: faults of leaders on a folder that is used as an object store. run.mjs has them on a real server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { newFolder } from "../kit/folder.mjs";
import { killLeaders } from "./kills.mjs";

test("leaders are killed and stopped, and nothing acknowledged is lost or done twice", async () => {
  const folder = newFolder("bucket-kills");
  const leaseMs = 600;
  const url = `bucket+${pathToFileURL(join(folder, "bucket")).href}?lease=${leaseMs}ms`;
  const { acked } = await killLeaders({ url, folder, leaseMs, kills: 3 });
  assert.ok(acked >= 15, `${acked}`);
});
