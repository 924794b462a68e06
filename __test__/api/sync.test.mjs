// Duty: getSync and getManySync answer at once, whatever the turn's budget and the size of values
// are; toArray and the language's helpers on lists.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { KvU64 } from "../../index.mjs";
import { argumentsFor } from "../kit/program.mjs";
import { freshPath, onEach, onServed, open } from "./databases.mjs";

onEach("getSync", (fresh) => {
  test("answers what get answers", async () => {
    const kv = await fresh();
    const values = [new KvU64(5n), { a: [1, 2n] }, new Uint8Array(60_000).fill(7), "x", null];
    for (const [i, value] of values.entries()) await kv.set(["v", i], value);
    for (const i of values.keys()) {
      assert.deepEqual(kv.getSync(["v", i]), await kv.get(["v", i]));
    }
    assert.deepEqual(kv.getSync(["absent"]), await kv.get(["absent"]));
    const keys = [["v", 0], ["absent"], ["v", 2], [Buffer.from("bytes"), 1.5, true, -3n]];
    assert.deepEqual(kv.getManySync(keys), await kv.getMany(keys));
    assert.deepEqual(kv.getManySync([]), []);
    assert.deepEqual(kv.getSync(["v", 3], { consistency: "eventual" }).value, "x");
  });

  test("sees each acknowledged write, and goes on when the turn's budget is spent", async () => {
    const kv = await fresh();
    const results = await Promise.all(
      Array.from({ length: 500 }, (_, i) => kv.set(["n", i], { i, text: "x".repeat(300) })),
    );
    const until = performance.now() + 30;
    let reads = 0;
    for (let i = 0; performance.now() < until || reads < 2000; i = (i + 1) % 500) {
      const entry = kv.getSync(["n", i]);
      assert.equal(entry.value.i, i);
      assert.equal(entry.versionstamp, results[i].versionstamp);
      const [again] = kv.getManySync([["n", i]]);
      assert.equal(again.value.i, i);
      reads++;
    }
    // Asynchronous reads of the same turn are none the worse for it.
    assert.equal((await kv.get(["n", 7])).value.i, 7);
    await kv.set(["n", 0], "new");
    assert.equal(kv.getSync(["n", 0]).value, "new");
  });

  test("values over the scratch", async () => {
    const kv = await fresh({ limits: { valueBytesMax: 40 * 1024 * 1024 } });
    const large = new Uint8Array(20 * 1024 * 1024).fill(3);
    await kv.set(["large"], large);
    await kv.set(["small"], "small");
    const { value } = kv.getSync(["large"]);
    assert.equal(value.length, large.length);
    assert.equal(value[value.length - 1], 3);
    const [small, again] = kv.getManySync([["small"], ["large"]]);
    assert.equal(small.value, "small");
    assert.equal(again.value.length, large.length);
    assert.equal(kv.getSync(["small"]).value, "small");
  });

  test("an entry that has ended is absent", async () => {
    const kv = await fresh();
    await kv.set(["short"], 1, { expireIn: 1 });
    await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(kv.getSync(["short"]).value, null);
  });

  test("toArray, and what the language has for asynchronous iterators", async () => {
    const kv = await fresh();
    for (let i = 0; i < 100; i++) await kv.set(["n", i], i);
    const all = Array.from({ length: 100 }, (_, i) => i);
    const list = kv.list({ prefix: ["n"] });
    await list.next();
    assert.deepEqual(
      (await list.toArray()).map(({ value }) => value),
      all.slice(1),
    );
    assert.deepEqual(await list.toArray(), []);
    const keys = await kv.list({ prefix: ["n"] }, { keysOnly: true, limit: 3 }).toArray();
    assert.deepEqual(
      keys.map(({ key }) => key[1]),
      [0, 1, 2],
    );
    await kv.transaction(async (tx) => {
      tx.set(["n", 100], 100);
      const entries = await tx.list({ prefix: ["n"] }, { reverse: true, limit: 2 }).toArray();
      assert.deepEqual(
        entries.map(({ value }) => value),
        [100, 99],
      );
      assert.ok(Object.prototype.isPrototypeOf.call(helpers, tx.list({ prefix: [] })));
    });
    assert.ok(Object.prototype.isPrototypeOf.call(helpers, kv.list({ prefix: [] })));
    helpers.countAll = async function () {
      let count = 0;
      for await (const _ of this) count++;
      return count;
    };
    try {
      assert.equal(await kv.list({ prefix: ["n"] }).countAll(), 101);
    } finally {
      delete helpers.countAll;
    }
  });
});

/** %AsyncIteratorPrototype%. */
const helpers = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}.prototype));

onServed("getSync", (fresh) => {
  test("is refused, and says what to write", async () => {
    const kv = await fresh();
    const words = /cannot be read at once: use await kv\.get\(\)/;
    assert.throws(() => kv.getSync(["a"]), {
      name: "KvError",
      code: "UNSUPPORTED",
      message: words,
    });
    const many = /use await kv\.getMany\(\)/;
    assert.throws(() => kv.getManySync([["a"]]), { code: "UNSUPPORTED", message: many });
  });
});

test("getSync sees what another process has committed", { timeout: 30_000 }, async () => {
  const path = freshPath();
  const kv = await open(path);
  await kv.set(["n"], 0);
  const index = JSON.stringify(new URL("../../index.mjs", import.meta.url).href);
  const source = `
    import { openKv } from ${index};
    const kv = await openKv(${JSON.stringify(path)});
    process.stdin.on("data", async (n) => {
      await kv.set(["n"], Number(n));
      process.stdout.write("set\\n");
    });
    process.stdout.write("open\\n");`;
  const child = spawn(process.execPath, argumentsFor(source));
  try {
    await once(child.stdout, "data");
    for (let n = 1; n <= 20; n++) {
      assert.equal(kv.getSync(["n"]).value, n - 1);
      child.stdin.write(`${n}`);
      await once(child.stdout, "data");
      assert.equal(kv.getSync(["n"]).value, n);
    }
  } finally {
    child.kill("SIGKILL");
  }
});
