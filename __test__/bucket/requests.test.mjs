// Duty: the requests of a database in an object store: how many there are, and what a commit is answered whose request
// may have happened.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { openKv } from "../../index.mjs";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { startObjectStore } from "../kit/object-store.mjs";
import { environment } from "../kit/s3.mjs";
import { sleep, until } from "../kit/time.mjs";

const folder = newFolder("bucket-requests");
const COMMITS = 40;
const LEASE_MS = 1000;

/** Objects of the log. */
const logOf = (path) => readdirSync(join(path, "log")).length;

/**
 * The client of the store repeats a request by itself after a 500. The 403 that came then was taken for proof that
 * nothing had been stored, and the commit was answered as refused.
 */
test("a commit is unknown if the store refuses it after an attempt that it has stored", async () => {
  const faults = [];
  const store = await startObjectStore((method, key) =>
    method === "PUT" && key.startsWith("shop/log/") ? faults.shift() : undefined,
  );
  const { AWS_ENDPOINT_URL: endpoint, ...credentials } = environment(store.port);
  Object.assign(process.env, credentials);
  const kv = await openKv(`s3://bucket/shop?region=us-east-1&lease=60s&endpoint=${endpoint}`);
  await kv.set(["a"], 1);
  faults.push({ status: 500, after: true }, 403);
  await assert.rejects(kv.set(["a"], 2), { code: "OUTCOME_UNKNOWN" });
  assert.deepEqual(faults, []);
  assert.equal((await kv.get(["a"])).value, 2);
  // Refused at once, nothing has happened.
  await until(() => kv.set(["a"], 3).then(Boolean, () => false), "the process leads again");
  faults.push(403);
  await assert.rejects(kv.set(["a"], 4), { code: "DENIED" });
  assert.equal((await kv.get(["a"])).value, 3);
  await kv.close();
  store.close();
});

test("metrics are answered while the store fails", async () => {
  let fails = false;
  const store = await startObjectStore(() => (fails ? 503 : undefined));
  const { AWS_ENDPOINT_URL: endpoint, ...credentials } = environment(store.port);
  Object.assign(process.env, credentials);
  const lease = `lease=${LEASE_MS}ms`;
  const kv = await openKv(`s3://bucket/fails?region=us-east-1&${lease}&endpoint=${endpoint}`);
  await kv.set(["a"], 1);
  fails = true;
  await sleep(LEASE_MS * 2);
  // A read that has to be current waits for the store, and metrics once waited behind it.
  let isRead = false;
  const read = kv.get(["a"]).finally(() => (isRead = true));
  await turn();
  const { operations } = await kv.metrics();
  assert.deepEqual([operations.set.count, isRead], [1, false]);
  fails = false;
  assert.equal((await read).value, 1);
  await kv.close();
  store.close();
});

test("commits that linger share an object of the log", async () => {
  const path = join(folder, "lingers");
  const kv = await openKv(`${bucketUrl(path)}?lease=60s&linger=1s`);
  const commits = [];
  for (let n = 0; n < COMMITS; n++) {
    commits.push(kv.atomic().sum(["n"], 1n).commit());
    await turn();
  }
  await Promise.all(commits);
  assert.equal((await kv.get(["n"])).value.value ?? 0n, BigInt(COMMITS));
  // The beginning of the lead, the first commit, and those that came within a second, of which there are many.
  assert.ok(logOf(path) < COMMITS / 2, `${logOf(path)} objects`);
  await kv.close();

  const apart = join(folder, "apart");
  const other = await openKv(`${bucketUrl(apart)}?lease=60s&linger=0ms`);
  for (let n = 0; n < COMMITS; n++) await other.atomic().sum(["n"], 1n).commit();
  assert.equal(logOf(apart), COMMITS + 1);
  await other.close();
});

test("closing does not wait for commits that linger", async () => {
  const path = join(folder, "closed");
  const kv = await openKv(`${bucketUrl(path)}?lease=60s&linger=1s`);
  await kv.set(["a"], 1);
  const last = kv.set(["a"], 2);
  await kv.close();
  assert.equal((await last).ok, true);
});

test("the log of a busy leader is merged, and openings read the copies", async () => {
  const path = join(folder, "merged");
  const url = `${bucketUrl(path)}?lease=60s&linger=0ms`;
  const kv = await openKv(url);
  for (let n = 0; n < 100; n++) await kv.set(["n", n], n);
  await until(() => readdirSync(path).includes("merged"), "merged objects");
  const copies = () => readdirSync(join(path, "merged")).length;
  await until(() => copies() > 0, "merged objects");
  const reader = await openKv(url, { lead: "never" });
  assert.equal((await reader.get(["n", 99])).value, 99);
  const { requests } = (await reader.metrics()).bucket;
  assert.ok(requests.get < 100, `${requests.get} objects were read`);
  await Promise.all([kv.close(), reader.close()]);
});
