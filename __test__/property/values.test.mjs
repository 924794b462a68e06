// Duty: random structured values come back from the database as they went in, and as the engine's
// own structured clone gives them.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import v8 from "node:v8";
import { KvU64, openKv } from "../../index.mjs";
import { difference } from "../conformance/compare.mjs";
import { newFolder } from "../kit/folder.mjs";
import { seeded } from "./random.mjs";
import { randomValue } from "./values.mjs";

const VALUES = 1500;
const MESSAGES = 200;

/** V8's copy; null for an error that is its own cause, which V8 writes and cannot read. */
function clonedByV8(value) {
  try {
    return { value: v8.deserialize(v8.serialize(value)) };
  } catch (error) {
    assert.match(error.message, /Unable to deserialize/);
    return null;
  }
}

test(`${VALUES} random values through set, get and list`, () =>
  seeded("values", async (random) => {
    const kv = await openKv(":memory:");
    let compared = 0;
    for (let i = 0; i < VALUES; i++) {
      const value = randomValue(random);
      await kv.set(["v", i % 50], value);
      const { value: back } = await kv.get(["v", i % 50]);
      assert.equal(difference(back, value), null, `value ${i} is not what was stored`);
      const cloned = clonedByV8(value);
      if (cloned) {
        assert.equal(difference(back, cloned.value), null, `value ${i} is not what v8 gives`);
        compared++;
      }
      if (i % 50 === 0) {
        const { value: first } = await kv.list({ prefix: ["v"] }).next();
        assert.equal(difference(first.value, value), null, `value ${i} in a list`);
      }
    }
    assert.ok(compared > VALUES * 0.9, `v8 could read ${compared} of its own`);
    await kv.close();
  }));

// Found by random operations: when a value had exactly as many objects as the encoder remembers in
// its short list, the next value was compared with them. One encoder serves all values in turn, so
// only many small values, one after the other, could show it.
test("6000 small values, several to a commit, know nothing of each other", () =>
  seeded("small", async (random) => {
    const kv = await openKv(":memory:");
    for (let i = 0; i < 1000; i++) {
      const values = random.list(6, () => randomValue(random, 15));
      const op = kv.atomic();
      for (const [j, value] of values.entries()) op.set(["v", j], value);
      await op.commit();
      for (const [j, value] of values.entries()) {
        const { value: back } = await kv.get(["v", j]);
        assert.equal(difference(back, value), null, `commit ${i}, value ${j}`);
      }
    }
    await kv.close();
  }));

test("storing what was read gives it again", () =>
  seeded("again", async (random) => {
    const kv = await openKv(":memory:");
    for (let i = 0; i < 300; i++) {
      await kv.set(["a"], randomValue(random));
      const { value: first } = await kv.get(["a"]);
      await kv.set(["b"], first);
      const { value: second } = await kv.get(["b"]);
      assert.equal(difference(second, first), null, `value ${i}`);
    }
    await kv.close();
  }));

test(`${MESSAGES} random messages through the queue`, () =>
  seeded("messages", async (random) => {
    const kv = await openKv(":memory:");
    const sent = random.list(MESSAGES, () => randomValue(random, 20));
    const got = [];
    const listening = kv.listenQueue((message) => {
      got.push(message);
      if (got.length === sent.length) kv.close();
    });
    for (const message of sent) await kv.enqueue(message);
    await listening;
    for (const [i, message] of got.entries()) {
      assert.equal(difference(message, sent[i]), null, `message ${i}`);
    }
  }));

test("values of every encoding and size side by side survive a reopening", () =>
  seeded("sizes", async (random) => {
    const folder = newFolder("property");
    const path = join(folder, "kv.sqlite3");
    const made = random.list(150, () => {
      const size = Math.floor(2 ** (random.unit() * 15.9));
      return random.pick([
        () => random.bytes(size),
        () => "é".repeat(Math.floor(size / 2)),
        () => new KvU64(BigInt(size)),
        () => random.list(Math.floor(size / 100), () => ({ a: random.text(9), b: 1.5 })),
      ])();
    });
    let kv = await openKv(path);
    await Promise.all(made.map((value, i) => kv.set(["v", i], value)));
    await kv.close();
    kv = await openKv(path);
    let count = 0;
    for await (const { key, value } of kv.list({ prefix: ["v"] })) {
      assert.equal(difference(value, made[key[1]]), null, `value ${key[1]}`);
      count++;
    }
    assert.equal(count, made.length);
    await kv.close();
    rmSync(folder, { recursive: true });
  }));
