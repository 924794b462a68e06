// Duty: indexes, paused queues and kept metrics of a database in an object store are the same under every leader.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { open as openAt } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";

const folder = newFolder("bucket-indexes");
let places = 0;

/** Longer than any test, so that another process leads only because the leader closes. */
const fresh = () => `${bucketUrl(join(folder, `bucket-${places++}`))}?lease=60s`;

/** Each has a cache of its own, so each is as another process. */
const open = (url, options) =>
  openAt(url, { cache: join(folder, `cache-${places++}`), ...options });

const keys = async (kv, options) => {
  const entries = await kv.list({ prefix: ["users"] }, options).toArray();
  return entries.map(({ key }) => key[1]);
};
const hits = async (kv, query) => {
  const { entries: found } = await kv.search(["users"], query);
  return found.map(({ key }) => key[1]).sort();
};

test("search and value indexes are there for readers and for the next leader", async () => {
  const url = fresh();
  const first = await open(url);
  // Two steps of building.
  const users = Array.from({ length: 600 }, (_, n) => n);
  let batch = first.atomic();
  for (const n of users) {
    batch.set(["users", n], { name: `user${n}`, rank: 1000 - n });
    if (n % 100 === 99) {
      await batch.commit();
      batch = first.atomic();
    }
  }
  const rank = { type: "value", prefix: ["users"], on: "rank", unique: true };
  const names = { prefix: ["users"], fields: ["name"] };
  const made = [await first.createIndex(rank), await first.createIndex(names)];
  for (const index of made) await index.ready();
  const reader = await open(url, { lead: "never" });
  for (const kv of [first, reader]) {
    assert.deepEqual(await keys(kv, { where: { rank: 700 } }), [300]);
    assert.deepEqual(await keys(kv, { orderBy: "rank", limit: 2 }), [599, 598]);
    assert.deepEqual(await hits(kv, "user42"), [42]);
    const { method } = await kv.explain({ prefix: ["users"] }, { where: { rank: 700 } });
    assert.equal(method, "index");
  }
  // The same definitions are no change.
  await (await reader.createIndex(rank)).ready();
  await reader.createIndex(names);
  const other = { ...rank, on: "name" };
  await assert.rejects(reader.createIndex(other), { code: "DENIED" });
  await first.close();
  const second = await open(url);
  await assert.rejects(second.set(["users", "x"], { rank: 700 }), { name: "KvUniqueError" });
  await second.set(["users", "x"], { name: "x", rank: 1 });
  assert.deepEqual(await hits(second, "x"), ["x"]);
  assert.deepEqual(await keys(reader, { where: { rank: 1 } }), ["x"]);
  for (const { name } of await second.listIndexes()) await second.dropIndex(name);
  assert.deepEqual(await reader.listIndexes(), []);
});

test("a collection with indexes is read by a process that does not lead", async () => {
  const url = fresh();
  const declared = {
    schema: (user) => user,
    id: "id",
    indexes: { email: { unique: true } },
  };
  const leader = await open(url);
  const written = leader.collection(["users"], declared);
  await written.insert({ id: "ada", email: "ada@example.com" });
  const reader = (await open(url, { lead: "never" })).collection(["users"], declared);
  assert.equal((await reader.find({ email: "ada@example.com" })).id, "ada");
  const twice = written.insert({ id: "bob", email: "ada@example.com" });
  await assert.rejects(twice, { name: "KvUniqueError" });
});

test("a paused queue and kept metrics are there under the next leader", async () => {
  const url = fresh();
  const metrics = { persistent: true, flushInterval: 100 };
  await assert.rejects(open(url, { metrics, lead: "never" }), TypeError);
  const first = await open(url, { metrics });
  await first.queue("mail").enqueue({ n: 1 });
  await first.queue("mail").pause();
  const { enqueue } = (await first.metrics()).operations;
  await first.close();
  const second = await open(url, { metrics });
  assert.equal((await second.queue("mail").stats()).paused, true);
  const { operations, bucket } = await second.metrics();
  assert.equal(operations.enqueue.count, enqueue.count);
  assert.ok(bucket.requests.put > 0 && bucket.bytes.get > 0);
  const text = await second.metrics({ format: "prometheus" });
  assert.match(text, /openkv_bucket_requests_total\{kind="put"\} \d/);
  await second.queue("mail").resume();
  const message = await until(() => second.queue("mail").receive({ wait: 0 }), "the message");
  assert.equal(message.value.n, 1);
  await message.ack();
});
