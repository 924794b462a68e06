// Duty: commits on the JavaScript thread (`lane: "auto"`) and on the writer thread (`"thread"`) mean the same; both end
// in the order of their calls, and the event loop turns meanwhile. Only those on the JavaScript thread end in the callback that calls them.

import assert from "node:assert/strict";
import { nextTick } from "node:process";
import { describe, test } from "node:test";
import { all, freshPath, open } from "../api/databases.mjs";

/** More than the commits after which the lane may commit on its thread, and than fit a turn's budget. */
const WRITES = 300;

const IN_MEMORY = () => ":memory:";
const PLACES = [
  ["a file", freshPath],
  ["memory", IN_MEMORY],
];
const COMBINED = PLACES.flatMap(([where, newPath]) =>
  ["auto", "thread"].map((lane) => ({ where, newPath, lane })),
);

for (const { where, newPath, lane } of COMBINED) {
  describe(`${where}, lane: "${lane}"`, () => {
    test("awaited writes have rising versionstamps and are read back", async () => {
      const kv = await open(newPath(), { lane });
      let last = "";
      for (let n = 0; n < WRITES; n++) {
        const { ok, versionstamp } = await kv.set(["k", n % 7], { n });
        assert.equal(ok, true);
        assert.ok(versionstamp > last);
        last = versionstamp;
        const entry = await kv.get(["k", n % 7]);
        assert.deepEqual(entry, { key: ["k", n % 7], value: { n }, versionstamp });
      }
    });

    test("writes that are called together end in the order of their calls", async () => {
      const kv = await open(newPath(), { lane });
      for (let round = 0; round < 40; round++) {
        const ended = [];
        const calls = [];
        for (let n = 0; n < 5; n++) {
          calls.push(kv.set(["k", n], round).then(() => ended.push(n)));
          // The later ones are in batches of their own.
          if (n % 2 === 1) await null;
        }
        await Promise.all(calls);
        assert.deepEqual(ended, [0, 1, 2, 3, 4]);
      }
    });

    test("checks, sums and rejected writes have their outcomes", async () => {
      const kv = await open(newPath(), { lane });
      let stamp = null;
      for (let n = 1; n <= WRITES; n++) {
        const right = { key: ["a"], versionstamp: stamp };
        const done = await kv.atomic().check(right).set(["a"], n).sum(["s"], 2n).commit();
        assert.equal(done.ok, true);
        assert.equal((await kv.atomic().check(right).set(["a"], -1).commit()).ok, false);
        stamp = done.versionstamp;
      }
      assert.equal((await kv.get(["s"])).value.value, BigInt(2 * WRITES));
      await kv.set(["text"], "no number");
      for (let n = 0; n < 20; n++) {
        await assert.rejects(kv.atomic().sum(["text"], 1n).commit(), TypeError);
        assert.equal((await kv.set(["b"], n)).ok, true);
      }
    });

    test("timers run while one write after the other is awaited", async () => {
      const kv = await open(newPath(), { lane });
      let ticks = 0;
      const timer = setInterval(() => ticks++, 1);
      while (ticks < 5) await kv.set(["k"], ticks);
      clearInterval(timer);
    });

    test("an entry expires, and a message arrives", async () => {
      const kv = await open(newPath(), { lane });
      for (let n = 0; n < WRITES; n++) await kv.set(["k", n], n, { expireIn: 1 });
      const got = new Promise((resolve) => void kv.listenQueue(resolve));
      await kv.enqueue("hello");
      assert.equal(await got, "hello");
      while ((await kv.stats({ entries: true })).entries > 0) await new Promise(setImmediate);
      assert.deepEqual(await all(kv.list({ prefix: ["k"] })), []);
    });

    // Each opening of memory is a database of its own.
    if (newPath === IN_MEMORY) return;

    test("a watch of another handle sees the last of many writes", async () => {
      const path = freshPath();
      const [kv, watching] = [await open(path, { lane }), await open(path)];
      const stream = watching.watch([["w"]])[Symbol.asyncIterator]();
      await stream.next();
      for (let n = 0; n <= WRITES; n++) await kv.set(["w"], n);
      let seen;
      do seen = (await stream.next()).value[0].value;
      while (seen !== WRITES);
      await stream.return();
    });

    test("what was awaited is there after close, and later calls are refused", async () => {
      const path = freshPath();
      const kv = await open(path, { lane });
      for (let n = 0; n < WRITES; n++) await kv.set(["k", n], n);
      const last = kv.set(["last"], 1);
      kv.close();
      assert.equal((await last).ok, true);
      await assert.rejects(kv.set(["late"], 1), { code: "CLOSED" });
      const again = await open(path, { lane });
      assert.equal((await all(again.list({ prefix: [] }))).length, WRITES + 1);
    });
  });
}

/** Of so many writes, how many end before the callback that calls them does: those that commit on this thread. */
async function inlineOf(kv, writes) {
  let inline = 0;
  for (let n = 0; n < writes; n++) {
    // A turn of its own for each, so that none waits for the budget of the next.
    await new Promise(setImmediate);
    let isOver = false;
    // A tick that is scheduled in a microtask runs after all microtasks.
    nextTick(() => (isOver = true));
    await kv.set(["k", n % 7], n);
    if (!isOver) inline++;
  }
  return inline;
}

describe("where a write that is awaited alone commits", () => {
  // Without a sync a commit is short on any disk.
  const options = { durability: "normal" };

  for (const [where, newPath] of PLACES) {
    test(`${where}: on the thread of its caller, by default`, async () => {
      const kv = await open(newPath(), options);
      assert.ok((await inlineOf(kv, WRITES)) > 0);
    });

    test(`${where}: on the writer thread with lane: "thread"`, async () => {
      const kv = await open(newPath(), { ...options, lane: "thread" });
      assert.equal(await inlineOf(kv, WRITES), 0);
    });
  }

  test("on the writer thread while the handle has a watch", async () => {
    const kv = await open(freshPath(), options);
    const reader = kv.watch([["other"]]).getReader();
    await reader.read();
    assert.equal(await inlineOf(kv, WRITES), 0);
    await reader.cancel();
    assert.ok((await inlineOf(kv, WRITES)) > 0);
  });
});

test("two handles, one of each lane, write to one file", async () => {
  const path = freshPath();
  const handles = [await open(path, { lane: "auto" }), await open(path, { lane: "thread" })];
  const write = async (kv) => {
    for (let n = 0; n < WRITES; n++) await kv.atomic().sum(["s"], 1n).commit();
  };
  await Promise.all(handles.map(write));
  assert.equal((await handles[0].get(["s"])).value.value, BigInt(2 * WRITES));
});

test("a getter that writes while a value is encoded", async () => {
  const kv = await open(freshPath(), { lane: "auto" });
  for (let n = 0; n < 50; n++) {
    let inner;
    const value = {
      get x() {
        inner = kv.set(["inner"], n);
        return n;
      },
    };
    await kv.set(["outer"], value);
    await inner;
    assert.equal((await kv.get(["inner"])).value, n);
    assert.deepEqual((await kv.get(["outer"])).value, { x: n });
  }
});
