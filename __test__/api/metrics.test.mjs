// Duty: kv.metrics: counts are exact for a scripted workload, and the text is Prometheus' format 0.0.4.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/time.mjs";
import { onEveryKind, onReplica, open } from "./databases.mjs";
import { parse } from "./exposition.mjs";

/** A workload whose every count is known. */
async function work(kv) {
  for (let i = 0; i < 40; i++) await kv.set(["a", i], i);
  for (let i = 0; i < 100; i++) await kv.get(["a", i]);
  await kv.getMany([["a", 1], ["a", 2], ["none"]]);
  await kv.delete(["a", 0]);
  await kv.touch(["a", 1], { expireIn: 60_000 });
  await kv.atomic().set(["b"], 1).set(["c"], 2).commit();
  await kv
    .atomic()
    .check({ key: ["b"], versionstamp: null })
    .set(["b"], 2)
    .commit();
  await assert.rejects(kv.atomic().sum(["t"], 1n).append(["b"], [1]).commit());
  await kv.count({ prefix: ["a"] });
  await kv.ttl(["a", 1]);
  await kv.get(["a", 1], { withExpiry: true });
  await kv.queue("mail").enqueue("later", { delay: 60_000 });
  await kv.queue("mail").enqueue("now");
  await kv.enqueue("deno's", { delay: 60_000 });
}

const suite = (fresh, { withoutSearch } = {}) => {
  test("count exactly what was done", async () => {
    const kv = await fresh();
    await work(kv);
    const metrics = await kv.metrics();
    const counts = Object.entries(metrics.operations).map(([name, of]) => [name, of.count]);
    assert.deepEqual(Object.fromEntries(counts.filter(([, count]) => count > 0)), {
      set: 40,
      get: 103,
      delete: 1,
      touch: 1,
      atomic: 3,
      count: 1,
      ttl: 1,
      getWithExpiry: 1,
      enqueue: 3,
    });
    const errors = Object.entries(metrics.operations).filter(([, of]) => of.errors > 0);
    assert.deepEqual(
      errors.map(([name, of]) => [name, of.errors]),
      [["atomic", 1]],
    );
    assert.equal(metrics.commits, 46);
    assert.equal(metrics.conflicts, 1);
    assert.equal(metrics.rejections, 1);
    assert.equal(metrics.transactions.failures, 0);
    assert.equal(metrics.transactions.writes.sum, 48);
    assert.deepEqual(metrics.queues, {
      "": { pending: 0, delayed: 1, processing: 0, dead: 0 },
      mail: { pending: 1, delayed: 1, processing: 0, dead: 0 },
    });
    const { samples, p50Ms, p99Ms, maxMs } = metrics.operations.set.latency;
    assert.equal(samples, 40);
    assert.ok(0 < p50Ms && p50Ms <= p99Ms && p99Ms <= maxMs);
    assert.ok(metrics.operations.get.latency.samples >= 3);
    assert.equal(metrics.operations.search.latency, null);
  });

  test("a list counts its pages, and what was grouped shares a transaction", async () => {
    const kv = await fresh();
    await Promise.all(Array.from({ length: 50 }, (_, i) => kv.set(["a", i], i)));
    for await (const _ of kv.list({ prefix: ["a"] }, { batchSize: 10 }));
    const { operations, transactions } = await kv.metrics();
    assert.equal(operations.set.count, 50);
    assert.ok(operations.list.count >= 1);
    assert.equal(transactions.writes.sum, 50);
    assert.ok(transactions.writes.max > 1);
  });

  test("watchers, indexes and the text", async () => {
    const kv = await fresh();
    await work(kv);
    const name = 'odd "name"\\';
    if (!withoutSearch) await kv.createIndex({ prefix: ["doc"], fields: ["t"], name });
    await kv.set(["doc", 1], { t: "some words" });
    const keys = kv.watch([["a"], ["b"]]).getReader();
    const feed = kv.watch({ prefix: ["a"] }).getReader();
    const listening = kv.listenQueue(() => {});
    await keys.read();
    // A server learns of a listener after the call has returned.
    await until(async () => (await kv.metrics()).listeners === 1, "the listener counts");
    const metrics = await kv.metrics();
    assert.equal(metrics.watches, 1);
    assert.equal(metrics.feeds, 1);
    assert.equal(metrics.listeners, 1);
    if (!withoutSearch) assert.equal(metrics.indexes[name].documents, 1);

    const families = parse(await kv.metrics({ format: "prometheus" }));
    const value = (name, labels = {}) => {
      const found = families.get(name.replace(/_(sum|count)$/, "")) ?? families.get(name);
      return found.samples.find(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([label, is]) => sample.labels[label] === is),
      )?.value;
    };
    assert.equal(value("openkv_operations_total", { operation: "set" }), 41);
    assert.equal(value("openkv_operations_total", { operation: "vacuum" }), 0);
    assert.equal(value("openkv_conflicts_total"), 1);
    assert.equal(value("openkv_operation_duration_seconds_count", { operation: "set" }), 41);
    assert.equal(value("openkv_queue_messages", { queue: "mail", state: "delayed" }), 1);
    if (!withoutSearch) assert.equal(value("openkv_index_documents", { index: name }), 1);
    assert.equal(value("openkv_watchers", { kind: "feed" }), 1);
    const parts = families.get("openkv_background_failing").samples;
    assert.deepEqual(
      parts.map(({ labels, value }) => [labels.part, value]),
      ["externalCommits", "announcements", "streams", "agenda", "sweep", "indexes"].map((part) => [
        part,
        0,
      ]),
    );
    assert.equal(families.get("openkv_operation_duration_seconds").type, "summary");
    assert.equal(families.get("openkv_operations_total").type, "counter");
    await keys.cancel();
    await feed.cancel();
    await kv.close();
    await listening;
  });

  test("arguments, and a closed handle", async () => {
    const kv = await fresh();
    await assert.rejects(kv.metrics({ fromat: 1 }), /kv\.metrics: unknown option 'fromat'/);
    await assert.rejects(
      kv.metrics({ format: "json" }),
      /must be "object" or "prometheus".*"json"/,
    );
    await assert.rejects(kv.metrics({ format: 1 }), TypeError);
    await assert.rejects(kv.metrics(5), TypeError);
    assert.equal((await kv.metrics({ format: "object" })).commits, 0);
    await kv.close();
    await assert.rejects(kv.metrics(), { name: "BadResource" });
  });
};

onEveryKind("metrics", suite);
onReplica("metrics", suite);

test("a file has sizes and a page cache, and its handles count together", async () => {
  const { freshPath } = await import("./databases.mjs");
  const path = freshPath();
  const [kv, other] = [await open(path), await open(path)];
  await kv.set(["a"], 1);
  await other.set(["b"], 1);
  for (let i = 0; i < 10; i++) await kv.get(["a"]);
  const { operations, cache, databaseBytes, walBytes } = await kv.metrics();
  assert.equal(operations.set.count, 2);
  assert.ok(databaseBytes > 0 && walBytes > 0);
  assert.ok(cache.hits > 0 && cache.hitRate > 0 && cache.hitRate <= 1);
  const reading = await open(path, { readonly: true });
  assert.equal((await reading.metrics()).queues.mail, undefined);
});
