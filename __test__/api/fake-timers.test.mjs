// Duty: fake timers of a test runner stop the time of the program that is tested, not the database.
//
// get() resolved in a turn that a faked setImmediate never started, and entries with expireIn were
// written with the faked time, so that they had ended long ago.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import nodeTimers from "node:timers";
import { mock, test } from "node:test";
import { all, onEachAndServed, onEveryKind, spendTurn } from "./databases.mjs";

/** Beyond the turn's budget: reads of such a number need several turns. */
const READS = 3000;

/** Runs `body` while nothing that waits by the globals or node:timers goes on, and it is 1970. */
async function withoutTime(body) {
  const apis = ["setTimeout", "setInterval", "setImmediate", "Date"];
  mock.timers.enable({ apis });
  const real = { queueMicrotask: globalThis.queueMicrotask, now: performance.now };
  globalThis.queueMicrotask = () => {};
  performance.now = () => 0;
  try {
    assert.equal(Date.now(), 0);
    assert.notEqual(nodeTimers.setImmediate, realSetImmediate, "node:timers is faked too");
    await body();
  } finally {
    mock.timers.reset();
    globalThis.queueMicrotask = real.queueMicrotask;
    performance.now = real.now;
  }
}

const skip = globalThis.Deno ? "Deno's node:test has no mock timers" : false;
const realSetImmediate = createRequire(import.meta.url)("node:timers").setImmediate;

onEveryKind("fake timers", (fresh) => {
  test("reads, more of them than fit a turn", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    await spendTurn(kv);
    await withoutTime(async () => {
      assert.equal((await kv.get(["a"])).value, 1);
      const gets = Array.from({ length: READS }, () => kv.get(["a"]));
      assert.ok((await Promise.all(gets)).every(({ value }) => value === 1));
      assert.equal((await kv.getMany([["a"], ["b"]]))[0].value, 1);
      assert.equal((await all(kv.list({ prefix: [] }))).length, 1);
      assert.equal(await kv.count({ prefix: [] }), 1);
      assert.equal((await all(kv.list({ prefix: [] }, { where: { $eq: 1 } }))).length, 1);
    });
  });

  test("writes, and their ends in the database's time", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    const before = Date.now();
    await withoutTime(async () => {
      await kv.set(["set"], 1, { expireIn: 60_000 });
      await kv.atomic().set(["atomic"], 1, { expireIn: 60_000 }).commit();
      await kv.set(["touched"], 1);
      await kv.touch(["touched"], { expireIn: 60_000 });
      for (const key of [["set"], ["atomic"], ["touched"]]) {
        assert.equal((await kv.get(key)).value, 1, key[0]);
        const left = (await kv.ttl(key)).expireAt.getTime() - before;
        assert.ok(left >= 60_000 && left < 120_000, `${key[0]}: ${left}`);
      }
      await kv.delete(["set"]);
      assert.equal((await kv.get(["set"])).value, null);
    });
  });

  test("a transaction that starts over", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    await kv.set(["n"], 1);
    await withoutTime(async () => {
      let tries = 0;
      const { ok } = await kv.transaction(async (tx) => {
        const { value } = await tx.get(["n"]);
        if (tries++ === 0) await kv.set(["n"], 10);
        tx.set(["n"], value + 1);
      });
      assert.deepEqual([ok, tries], [true, 2]);
      assert.equal((await kv.get(["n"])).value, 11);
    });
  });

  test("watches and feeds", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    await withoutTime(async () => {
      const states = kv.watch([["w"]]).getReader();
      assert.equal((await states.read()).value[0].value, null);
      const changes = kv.watch({ prefix: [] }).getReader();
      await kv.set(["w"], 1);
      assert.equal((await states.read()).value[0].value, 1);
      assert.deepEqual(
        (await changes.read()).value.changes.map(({ value }) => value),
        [1],
      );
      await states.cancel();
      await changes.cancel();
    });
  });

  test("queues: a listener, a message that is waited for, one that does not come", {
    timeout: 20_000,
    skip,
  }, async () => {
    const kv = await fresh();
    await withoutTime(async () => {
      const stop = new AbortController();
      const heard = Promise.withResolvers?.() ?? deferred();
      const queue = kv.queue("q");
      const listening = queue.listen((value) => heard.resolve(value), { signal: stop.signal });
      await queue.enqueue("told", { delay: 1 });
      assert.equal(await heard.promise, "told");
      stop.abort();
      await listening;
      assert.equal(await kv.queue("none").receive({ wait: 20 }), null);
      await kv.queue("due").enqueue("later", { delay: 60_000 });
      assert.equal((await kv.queue("due").stats()).delayed, 1);
    });
  });

  test("close", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    await withoutTime(async () => {
      const written = kv.set(["a"], 1);
      await kv.close();
      assert.equal((await written).ok, true);
      await assert.rejects(kv.get(["a"]), { name: "BadResource" });
    });
  });
});

test("js/ waits and tells the time by clock.ts alone", () => {
  const folder = new URL("../../js/", import.meta.url);
  const uses =
    /(?<![.\w])(?:Date\.now|performance\.|queueMicrotask|process\.nextTick)|"node:timers/;
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = String(name).replaceAll("\\", "/");
    // The command line and the other entries tell the time that their libraries tell.
    const others = /^(?:cli\/|drivers\/|otel\/|testing\/|model\/clock\.ts$)/;
    if (!path.endsWith(".ts") || others.test(path)) continue;
    const text = readFileSync(new URL(path, folder), "utf8");
    assert.doesNotMatch(text, uses, path);
    const timers = [
      ...text.matchAll(
        /(?<![.\w#])(set(?:Immediate|Timeout|Interval)|clear(?:Timeout|Interval))\(/g,
      ),
    ];
    for (const [, timer] of timers) {
      assert.match(
        text,
        new RegExp(
          `import \\{[^}]*\\b${timer}\\b[^}]*\\} from "(?:\\.\\./)*(?:\\./|model/)clock\\.js"`,
        ),
        path,
      );
    }
  }
});

function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

onEachAndServed("fake timers and a search", (fresh) => {
  test("an index that is being built is waited for", { timeout: 20_000, skip }, async () => {
    const kv = await fresh();
    for (let i = 0; i < 300; i++) kv.set(["doc", i], { text: `word number ${i}` });
    await kv.set(["doc", "last"], { text: "the end" });
    await withoutTime(async () => {
      const index = await kv.createIndex({ prefix: ["doc"], fields: ["text"] });
      await index.ready();
      assert.equal((await kv.search(["doc"], "end")).entries.length, 1);
    });
  });
});
