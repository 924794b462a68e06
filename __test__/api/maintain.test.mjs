// Duty: stats and vacuum: what they tell, and that the file gets smaller and nothing is lost.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { freshPath, onEachAndServed, onEveryKind, open } from "./databases.mjs";

onEveryKind("looking after a database", (fresh) => {
  test("stats counts entries when asked", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    await kv.set(["ended"], 1, { expireIn: 0 });
    const { versionstamp } = await kv.set(["b"], 1);
    const stats = await kv.stats({ entries: true });
    assert.equal(stats.entries, 2);
    assert.ok(stats.versionstamp >= versionstamp);
    assert.equal("entries" in (await kv.stats()), false);
    assert.deepEqual((await kv.stats()).failing, []);
  });

  test("arguments, and a closed handle", async () => {
    const kv = await fresh();
    await assert.rejects(kv.stats({ entry: true }), /kv\.stats: unknown option 'entry'/);
    await assert.rejects(kv.stats({ entries: 1 }), /entries must be a boolean/);
    await assert.rejects(kv.stats(5), TypeError);
    await kv.close();
    await assert.rejects(kv.stats(), { name: "BadResource" });
  });
});

onEachAndServed("vacuum", (fresh) => {
  test("of an open handle, and of a closed one", async () => {
    const kv = await fresh();
    await kv.vacuum();
    await kv.close();
    await assert.rejects(kv.vacuum(), { name: "BadResource" });
  });
});

test("vacuum gives back what is free, and keeps the rest", async () => {
  const path = freshPath();
  const [kv, other] = [await open(path), await open(path)];
  const large = "x".repeat(50_000);
  for (let n = 0; n < 40; n++) await kv.set(["large", n], large);
  for (let n = 1; n < 40; n++) await kv.delete(["large", n]);
  const full = await kv.stats();
  assert.ok(full.freePages > 100, String(full.freePages));
  assert.ok(full.walBytes > 0 && full.databaseBytes >= full.freePages * full.pageSize);
  const { beforeBytes, afterBytes } = await kv.vacuum();
  assert.equal(beforeBytes, full.databaseBytes);
  assert.ok(afterBytes < beforeBytes / 4, `${afterBytes} of ${beforeBytes}`);
  const lean = await other.stats();
  assert.deepEqual([lean.databaseBytes, lean.freePages], [afterBytes, 0]);
  assert.equal(lean.versionstamp, full.versionstamp);
  assert.ok(statSync(path).size <= beforeBytes);
  assert.equal((await other.get(["large", 0])).value, large);
  await other.set(["after"], 1);
  assert.equal((await kv.get(["after"])).value, 1);
});

test("other writes go on during a vacuum, which goes on after it was ended", async () => {
  const path = freshPath();
  const [kv, other] = [await open(path), await open(path)];
  const large = "x".repeat(50_000);
  for (let n = 0; n < 400; n++) await kv.set(["large", n], large);
  await kv.deleteMany({ prefix: ["large"] });
  const full = await kv.stats();
  assert.equal(full.vacuumInSteps, true);
  const controller = new AbortController();
  // It is at its end if this process stands still.
  const ended = kv.vacuum({ signal: controller.signal }).catch(({ name }) => name);
  let written = 0;
  do {
    await other.set(["during", written++], 1);
  } while ((await other.stats()).freePages > full.freePages - 500);
  controller.abort();
  const outcome = await ended;
  assert.ok(outcome === "AbortError" || outcome.afterBytes < full.databaseBytes, `${outcome}`);
  const { beforeBytes, afterBytes } = await kv.vacuum();
  assert.ok(beforeBytes < full.databaseBytes && afterBytes <= beforeBytes);
  assert.equal((await kv.stats()).freePages, 0);
  assert.equal(await other.count({ prefix: ["during"] }), written);
  assert.deepEqual((await kv.check()).findings, []);
});

test("a readonly handle has stats, and no vacuum", async () => {
  const path = freshPath();
  (await open(path)).close();
  const kv = await open(path, { readonly: true });
  assert.equal((await kv.stats({ entries: true })).entries, 0);
  await assert.rejects(kv.vacuum(), { code: "DENIED" });
});
