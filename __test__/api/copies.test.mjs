// Duty: several copies of the package in one process: of its JavaScript, as test runners and hot
// replacement make them by loading modules anew, and bundlers by packing one twice; and of all of
// it, as two versions in one tree of dependencies are.
//
// The former shared one scratch and one way for events, the last one's: the first copy's reads were of
// keys of the other's, its answers were what an earlier read had left, and its openKv never ended.

import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { newFolder } from "../kit/folder.mjs";

const require = createRequire(import.meta.url);

/** Loads the package once more; `addon`: with a new entry for the addon too. */
function copy({ addon }) {
  for (const path of Object.keys(require.cache)) {
    if (addon || !path.endsWith(".node")) delete require.cache[path];
  }
  return require("../../index.js");
}

for (const addon of [false, true]) {
  describe(`copies over ${addon ? "an addon loaded anew" : "one addon"}`, () => {
    test("each reads its own", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      assert.notEqual(one.openKv, two.openKv);
      const a = await one.openKv(":memory:");
      await a.set(["alice"], "alice's");
      await a.set(["bobby"], "bobby's");
      assert.equal((await a.get(["alice"])).value, "alice's");
      const b = await two.openKv(":memory:");
      await b.set(["alice"], "of b");
      assert.equal((await b.get(["alice"])).value, "of b");
      assert.equal((await a.get(["bobby"])).value, "bobby's");
      assert.equal((await b.get(["bobby"])).versionstamp, null);
      const both = await a.getMany([["bobby"], ["alice"]]);
      assert.deepEqual(
        both.map((entry) => entry.value),
        ["bobby's", "alice's"],
      );
      const keys = [];
      for await (const entry of a.list({ prefix: [] })) keys.push(entry.key[0]);
      assert.deepEqual(keys, ["alice", "bobby"]);
      await a.close();
      await b.close();
    });

    test("a larger answer makes only the asker's scratch larger", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const a = await one.openKv(":memory:", { limits: "wide" });
      const b = await two.openKv(":memory:");
      await a.set(["large"], new Uint8Array(3 * 1024 * 1024).fill(1));
      await b.set(["large"], "small");
      for (let round = 0; round < 3; round++) {
        assert.equal((await a.get(["large"])).value.length, 3 * 1024 * 1024);
        assert.equal((await b.get(["large"])).value, "small");
      }
      await a.close();
      await b.close();
    });

    test("each takes the 64-bit integers of the other", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const kv = await one.openKv(":memory:");
      const foreign = new two.KvU64(5n);
      assert.ok(!(foreign instanceof one.KvU64));
      await kv.set(["n"], foreign);
      const { value } = await kv.get(["n"]);
      assert.ok(value instanceof one.KvU64);
      assert.equal(value.value, 5n);
      assert.equal(one.sizeOf(foreign), 8);
      const added = [{ type: "sum", key: ["n"], value: foreign }];
      await kv
        .atomic()
        .mutate(...added)
        .sum(["n"], foreign)
        .max(["n"], new two.KvU64(1n))
        .commit();
      assert.equal((await kv.get(["n"])).value.value, 15n);
      // What only looks like one is stored as any other object is.
      const lookalikes = [
        { value: 5n },
        Object.create(two.KvU64.prototype),
        Object.create(two.KvU64.prototype, { value: { value: -1n, enumerable: true } }),
        Object.create(two.KvU64.prototype, { value: { get: () => 5n, enumerable: true } }),
      ];
      for (const given of lookalikes) {
        await kv.set(["like"], given);
        const { value } = await kv.get(["like"]);
        assert.ok(!(value instanceof one.KvU64), `${Object.keys(given)}`);
        await assert.rejects(async () => await kv.atomic().sum(["n"], given).commit(), TypeError);
      }
      await assert.rejects(kv.set(["like"], new Proxy(foreign, {})), TypeError);
      await kv.close();
    });

    test("each is told of its own events", { timeout: 20_000 }, async () => {
      const [one, two] = [copy({ addon }), copy({ addon })];
      const first = await one.openKv(":memory:");
      const b = await two.openKv(":memory:");
      const a = await one.openKv(":memory:");
      await first.close();
      assert.equal(await a.count({ prefix: [] }), 0);
      const watched = a.watch([["k"]]).getReader();
      assert.equal((await watched.read()).value[0].value, null);
      await b.set(["k"], "of b");
      await a.set(["k"], "of a");
      assert.equal((await watched.read()).value[0].value, "of a");
      await a.close();
      await b.close();
    });
  });
}

// Each had a SQLite of its own, whose locks were the process's: they did not exclude each other, and
// of 2,000 commits, all answered with `ok: true`, one thousand were gone.
describe("installed copies, each with an addon of its own, on one file", () => {
  const COMMITS = 1000;
  const folder = newFolder("copies");
  const installed = ["one", "two"].map((name) => {
    const to = join(folder, name);
    mkdirSync(to);
    for (const each of ["dist", "index.cjs", "index.js", "package.json"]) {
      cpSync(new URL(`../../${each}`, import.meta.url), join(to, each), { recursive: true });
    }
    return join(to, "index.js");
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Commits that overlap, each a sum of one key and a key of its own; their versionstamps. */
  async function commit(_module, kv, name) {
    const stamps = [];
    for (let n = 0; n < COMMITS; n += 50) {
      const some = Array.from({ length: 50 }, (_, at) =>
        kv
          .atomic()
          .sum(["sum"], 1n)
          .set([name, n + at], at)
          .commit(),
      );
      for (const { ok, versionstamp } of await Promise.all(some)) {
        assert.ok(ok);
        stamps.push(versionstamp);
      }
    }
    return stamps;
  }

  /** Nothing is lost: as many stamps, keys and sums as commits. */
  async function verify({ openKv }, path, stamps, names) {
    const kv = await openKv(path);
    assert.equal(new Set(stamps).size, names.length * COMMITS);
    assert.equal((await kv.get(["sum"])).value.value, BigInt(names.length * COMMITS));
    for (const name of names) assert.equal(await kv.count({ prefix: [name] }), COMMITS);
    assert.deepEqual((await kv.check()).findings, []);
    await kv.close();
  }

  test("on one thread, which see each other's commits", { timeout: 60_000 }, async () => {
    const path = join(folder, "thread.sqlite3");
    const [one, two] = installed.map((copy) => require(copy));
    assert.notEqual(one.openKv, two.openKv);
    const [a, b] = [await one.openKv(path), await two.openKv(path)];
    const seen = b.watch([["told"]]).getReader();
    await seen.read();
    await a.set(["told"], 1);
    assert.equal((await seen.read()).value[0].value, 1);
    assert.equal((await b.get(["told"])).value, 1);
    await b.set(["told"], 2);
    assert.equal((await a.get(["told"])).value, 2);
    await seen.cancel();
    const stamps = await Promise.all([commit(one, a, "a"), commit(two, b, "b")]);
    // Closing one must not take the other's locks with it.
    await a.close();
    stamps.push(await commit(two, b, "c"));
    const c = await one.openKv(path);
    stamps.push(...(await Promise.all([commit(one, c, "d"), commit(two, b, "e")])));
    await b.close();
    await c.close();
    await verify(one, path, stamps.flat(), ["a", "b", "c", "d", "e"]);
  });

  test("on two threads", { timeout: 60_000 }, async () => {
    const path = join(folder, "threads.sqlite3");
    const one = require(installed[0]);
    const source = `
      const { workerData, parentPort } = require("node:worker_threads");
      const two = require(workerData.copy);
      const COMMITS = ${COMMITS};
      const assert = require("node:assert");
      ${commit}
      two.openKv(workerData.path).then(async (kv) => {
        const stamps = await commit(two, kv, "b");
        await kv.close();
        parentPort.postMessage(stamps);
      });`;
    const a = await one.openKv(path);
    const worker = new Worker(source, { eval: true, workerData: { copy: installed[1], path } });
    const [theirs, exited] = [once(worker, "message"), once(worker, "exit")];
    const ours = await commit(one, a, "a");
    const stamps = [...ours, ...(await theirs)[0]];
    await exited;
    await a.close();
    await verify(one, path, stamps, ["a", "b"]);
  });
});
