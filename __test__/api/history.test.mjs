// Duty: the option history and kv.at: every moment is read as it was.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { startServer } from "../kit/server.mjs";
import { all, freshPath, onBucket, onEach, onPostgres, onServed, open } from "./databases.mjs";

const DAY_MS = 86_400_000;

/** A small generator of numbers, so that a failure can be repeated. */
function numbers(seed) {
  let state = seed;
  return (bound) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * bound);
  };
}

/** Everything that a reader sees, by every way of reading. */
async function seen(kv) {
  const entries = await all(kv.list({ prefix: [] }));
  const backward = await all(kv.list({ prefix: [] }, { reverse: true }));
  assert.deepEqual(backward.reverse(), entries);
  assert.equal(await kv.count({ prefix: [] }), entries.length);
  const keys = entries.map(({ key }) => key);
  assert.deepEqual(await kv.getMany(keys.slice(0, 10)), entries.slice(0, 10));
  const page = await kv.paginate({ prefix: ["k"] }, { limit: 5 });
  assert.deepEqual(page.entries, entries.slice(0, 5));
  const even = await all(kv.list({ prefix: [] }, { where: { n: { $gte: 50 } } }));
  assert.deepEqual(
    even,
    entries.filter(({ value }) => value.n >= 50),
  );
  return entries;
}

/** The same rules for every database that keeps a history. */
function historySuite(fresh, { onPostgres = false } = {}) {
  test("every commit of a random history is read as it was", async () => {
    const kv = await fresh();
    await kv.set(["k", 0], { n: 1 });
    await kv.close();
    const again = await fresh({ history: "7d" });
    const below = numbers(7);
    const moments = [];
    for (let round = 0; round < 80; round++) {
      const operation = again.atomic();
      for (let count = below(4) + 1; count > 0; count--) {
        const key = ["k", below(20)];
        if (below(4) === 0) operation.delete(key);
        else operation.set(key, { n: below(100), text: "x".repeat(below(5) * 400) });
      }
      const { versionstamp } = await operation.commit();
      moments.push([versionstamp, await seen(again)]);
    }
    for (const [versionstamp, expected] of moments) {
      const then = await again.at(versionstamp);
      assert.deepEqual(await seen(then), expected);
      for (const { key, value } of expected.slice(0, 3)) {
        const entry = onPostgres ? await then.get(key) : then.getSync(key);
        assert.deepEqual(entry.value, value);
      }
      await then.close();
    }
  });

  test("the versions of an entry are what its commits have made of it", async () => {
    const kv = await fresh({ history: "7d" });
    const key = ["k", 1n];
    const stamp = async (commit) => (await commit).versionstamp;
    const first = await stamp(kv.set(key, { text: "x".repeat(3000) }));
    const expireAt = new Date(Date.now() + DAY_MS);
    const second = await stamp(kv.touch(key, { expireAt }));
    const third = await stamp(kv.atomic().delete(key).commit());
    await kv.delete(["never"]);
    const fourth = await stamp(kv.set(key, null, { expireAt }));
    const found = await all(kv.history(key));
    for (const { committedAt } of found) {
      assert.ok(Math.abs(committedAt.getTime() - Date.now()) < 60_000, String(committedAt));
    }
    const value = { text: "x".repeat(3000) };
    const expected = [
      { type: "set", key, value: null, versionstamp: fourth, expireAt },
      { type: "delete", key, value: null, versionstamp: third },
      { type: "expiry", key, value, versionstamp: second, expireAt },
      { type: "set", key, value, versionstamp: first },
    ];
    assert.deepEqual(
      found.map(({ committedAt: _, ...version }) => version),
      expected,
    );
    assert.deepEqual(await all(kv.history(["never"])), []);
    assert.deepEqual(await all(kv.history(key, { limit: 2 })), found.slice(0, 2));
    assert.deepEqual(await all(kv.history(key, { before: third })), found.slice(2));
    const then = await kv.at(second);
    await assert.rejects(all(then.history(key)), { code: "UNSUPPORTED" });
    const reason = new Error("enough");
    const controller = new AbortController();
    const versions = kv.history(key, { signal: controller.signal });
    assert.deepEqual((await versions.next()).value, found[0]);
    controller.abort(reason);
    await assert.rejects(versions.next(), reason);
  });

  test("many versions come in pages, large ones too", async () => {
    const kv = await fresh();
    await kv.set(["k"], "before");
    await kv.close();
    const again = await fresh({ history: "7d" });
    const expected = [];
    for (let n = 0; n < 350; n++) {
      const value = n % 50 === 0 ? new Uint8Array(60_000).fill(n) : n;
      expected.unshift([(await again.set(["k"], value)).versionstamp, value]);
    }
    const found = await all(again.history(["k"]));
    const shown = found.map(({ versionstamp, value }) => [versionstamp, value]);
    assert.deepEqual(shown.slice(0, 350), expected);
    // In memory a second handle has another database.
    for (const oldest of found.slice(350)) {
      assert.deepEqual([oldest.value, oldest.committedAt], ["before", undefined]);
    }
  });

  test("a time is a moment, and what had expired then is absent", async () => {
    const kv = await fresh({ history: DAY_MS });
    await kv.set(["stays"], 1);
    await kv.set(["ends"], 1, { expireIn: 40 });
    await sleep(5);
    const before = new Date();
    await sleep(80);
    const after = new Date();
    await sleep(5);
    await kv.deleteMany({ prefix: [] });
    const names = async (when) => {
      const then = await kv.at(when);
      const entries = await all(then.list({ prefix: [] }));
      await then.close();
      return entries.map(({ key }) => key[0]);
    };
    const first = await names(before);
    // On a busy machine the entry may end before the first moment.
    assert.ok(first.includes("stays"));
    assert.deepEqual(await names(after), ["stays"]);
    assert.deepEqual(await all(kv.list({ prefix: [] })), []);
  });

  test("a moment is for reading", async () => {
    const kv = await fresh({ history: "1h" });
    const { versionstamp } = await kv.set(["a"], 1);
    const then = await kv.at(versionstamp);
    const refusal = { code: "DENIED", message: /^a moment of the past is for reading/ };
    await assert.rejects(then.set(["a"], 2), refusal);
    await assert.rejects(then.queue("q").enqueue(1), refusal);
    await assert.rejects(then.queue("q").stats(), { code: "UNSUPPORTED" });
    await assert.rejects(then.listIndexes(), { code: "UNSUPPORTED" });
    const changes = then.watch({ prefix: [] }, { initial: true }).getReader();
    const initial = { changes: [{ type: "set", key: ["a"], value: 1, versionstamp }] };
    assert.deepEqual((await changes.read()).value, { ...initial, versionstamp, initial: "last" });
    const [state] = (
      await then
        .watch([["a"]])
        .getReader()
        .read()
    ).value;
    assert.equal(state.value, 1);
    await assert.rejects(then.at(versionstamp), { code: "UNSUPPORTED" });
    assert.equal((await then.stats()).versionstamp, versionstamp);
    await kv.set(["a"], 2);
    assert.equal((await then.get(["a"])).value, 1);
    const read = await then.transaction(async (tx) => (await tx.get(["a"])).value);
    assert.deepEqual(read, { ok: true, versionstamp, value: 1 });
    const written = then.transaction(async (tx) => tx.set(["a"], 3));
    await assert.rejects(written, refusal);
    // No change follows: the read waits, until the end of the handle.
    const next = changes.read();
    await then.close();
    assert.equal((await next).done, true);
    assert.equal((await kv.get(["a"])).value, 2);
  });

  test("moments outside of the history are refused", async () => {
    const kv = await fresh();
    const { versionstamp: old } = await kv.set(["a"], 0);
    await assert.rejects(kv.at(old), { code: "UNSUPPORTED", message: /keeps no history/ });
    const future = new Date(Date.now() + DAY_MS);
    const kept = await fresh({ history: "1h" });
    const { versionstamp } = await kept.set(["a"], 1);
    await assert.rejects(kept.at(new Date(0)), RangeError);
    await assert.rejects(kept.at(future), /after the present/);
    const next = (BigInt(`0x${versionstamp}`) + (1n << 16n)).toString(16).padStart(20, "0");
    await assert.rejects(kept.at(next), /after the newest one/);
    await assert.rejects(
      kept.at(versionstamp, { signal: AbortSignal.abort(new Error("no")) }),
      /no/,
    );
  });

  test("options that cannot be are refused", async () => {
    for (const [options, words] of [
      [{ history: "soon" }, /history must be a duration.*received the string "soon"/],
      [{ history: 0 }, /history must be a duration/],
      [{ history: true }, /history must be a duration/],
      [{ log: 5 }, /log must be a boolean, or an object/],
      [{ log: { retention: "-1d" } }, /log.retention must be a duration/],
      [{ log: { maxBytes: 5 } }, /log.maxBytes must be an integer from 1048576/],
      [{ log: { messages: 1 } }, /log.messages must be a boolean: received/],
      [{ log: { retain: 5 } }, /unknown option 'retain'/],
      [{ log: false, history: "1d" }, /history needs the replication log/],
    ]) {
      await assert.rejects(fresh(options), words);
    }
  });
}

onEach("history", historySuite);
onPostgres("history", historySuite);
onBucket("history", historySuite);

onServed("history", (fresh) => {
  test("is for files", async () => {
    const kv = await fresh();
    await assert.rejects(kv.at(new Date(0)), { code: "UNSUPPORTED" });
    await assert.rejects(kv.history(["a"]).next(), { message: /keeps no history/ });
  });
});

test("the versions of an entry behind a URL are those of the file", async () => {
  const path = freshPath();
  const local = await open(path, { history: "7d" });
  for (let n = 0; n < 25; n++) await local.set(["a"], { n, text: "x".repeat(n * 200) });
  await local.delete(["a"]);
  const accessToken = "the-token-of-these-tests";
  const { url } = await startServer({ path, accessToken });
  const remote = await open(url, { accessToken });
  const expected = await all(local.history(["a"]));
  assert.equal(expected.length, 26);
  assert.deepEqual(await all(remote.history(["a"])), expected);
  const { versionstamp } = expected[20];
  assert.deepEqual(await all(remote.history(["a"], { before: versionstamp })), expected.slice(21));
});

test("a file keeps its history for later openings, until it is turned off", async () => {
  const path = freshPath();
  const first = await open(path, { history: "7d" });
  const { versionstamp } = await first.set(["a"], 1);
  await first.set(["a"], 2);
  await first.close();
  const second = await open(path);
  const then = await second.at(versionstamp);
  assert.equal((await then.get(["a"])).value, 1);
  await then.close();
  await second.set(["a"], 3);
  assert.deepEqual(await second.check(), { ok: true, findings: [] });
  await second.close();
  const third = await open(path, { history: false });
  await assert.rejects(third.at(versionstamp), { code: "UNSUPPORTED" });
  assert.deepEqual(await third.check(), { ok: true, findings: [] });
});

test("a thousand versions of a file that is closed in between are as a model has them", async () => {
  const path = freshPath();
  const below = numbers(11);
  const expireAt = new Date(Date.now() + DAY_MS);
  const state = new Map();
  const versions = new Map();
  const moments = [];
  for (let life = 0; life < 4; life++) {
    const kv = await open(path, { history: "7d" });
    for (let round = 0; round < 25; round++) {
      const operations = Array.from({ length: 10 }, () => {
        const operation = kv.atomic();
        const changes = new Map();
        for (let count = below(3) + 1; count > 0; count--) {
          const n = below(30);
          const large = below(8) === 0;
          const value =
            below(4) === 0 ? undefined : { n: below(1000), text: "x".repeat(large * 2000) };
          changes.set(n, { value, ends: value !== undefined && below(5) === 0 });
        }
        for (const [n, { value, ends }] of changes) {
          if (value === undefined) operation.delete(["k", n]);
          else operation.set(["k", n], value, ends ? { expireAt } : undefined);
        }
        return { changes, committed: operation.commit() };
      });
      // The commits share a transaction, and their order is that of the calls.
      for (const { changes, committed } of operations) {
        const { versionstamp } = await committed;
        for (const [n, { value, ends }] of changes) {
          const of = versions.get(n) ?? [];
          versions.set(n, of);
          if (value === undefined) {
            if (state.delete(n)) of.unshift({ type: "delete", value: null, versionstamp });
          } else {
            state.set(n, { key: ["k", n], value, versionstamp });
            of.unshift({ type: "set", value, versionstamp, ...(ends && { expireAt }) });
          }
        }
        const entries = [...state.keys()].sort((a, b) => a - b).map((n) => state.get(n));
        moments.push([versionstamp, entries]);
      }
    }
    await kv.close();
  }
  assert.equal(moments.length, 1000);
  const kv = await open(path);
  for (const [versionstamp, entries] of moments) {
    const then = await kv.at(versionstamp);
    assert.deepEqual(await all(then.list({ prefix: [] })), entries, versionstamp);
    await then.close();
  }
  for (const [n, expected] of versions) {
    const found = await all(kv.history(["k", n]));
    const shown = found.map(({ key: _, committedAt: __, ...version }) => version);
    assert.deepEqual(shown, expected, `k ${n}`);
  }
});

test("a moment outlives the handle that it came from", async () => {
  const kv = await open(freshPath(), { history: "7d" });
  const { versionstamp } = await kv.set(["a"], "x".repeat(3000));
  await kv.delete(["a"]);
  const then = await kv.at(versionstamp);
  await kv.close();
  assert.equal((await then.get(["a"])).value.length, 3000);
  await then.close();
});

test("files of Deno and read-only handles change no settings", async () => {
  const words = /options log and history/;
  await assert.rejects(open(freshPath(), { encoding: "v8", history: "1d" }), words);
  const path = freshPath();
  await (await open(path)).close();
  await assert.rejects(open(path, { readonly: true, log: true }), words);
});
