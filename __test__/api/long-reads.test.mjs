// Duty: reads that take long: other reads do not wait for them, and closing the handle ends them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onEach } from "./databases.mjs";

const PREFIX = { prefix: ["numbers"] };
/** Each condition walks through all of a value, so a count takes many seconds. */
const SLOW = { where: { $or: Array(400).fill({ $contains: 8 }) } };

onEach("reads that take long", (fresh) => {
  async function filled() {
    const kv = await fresh({ limits: "wide" });
    const value = Array(60_000).fill(7);
    for (let i = 0; i < 16; i++) await kv.set([...PREFIX.prefix, i], value);
    await kv.set(["a"], 1);
    return kv;
  }

  test("others are answered meanwhile, and close() ends them without waiting", async () => {
    const kv = await filled();
    const ends = [];
    const slow = [
      kv.count(PREFIX, SLOW),
      kv.count(PREFIX, SLOW),
      kv.list(PREFIX, SLOW).next(),
      kv.deleteMany(PREFIX, SLOW),
    ].map((read) => read.then(String, (error) => ends.push(error.name)));
    // More than a turn reads itself, so that the asynchronous lane answers some.
    const keys = Array.from({ length: 2000 }, () => kv.get(["a"]));
    for (const { value } of await Promise.all(keys)) assert.equal(value, 1);
    assert.deepEqual(ends, [], "all of them are still under way");
    kv.close();
    await Promise.all(slow);
    assert.deepEqual(ends, Array(4).fill("BadResource"));
  });

  test("what is soon done is answered, also when the handle is closed meanwhile", async () => {
    const kv = await fresh();
    await kv.set(["numbers", 1], [7]);
    const count = kv.count(PREFIX);
    kv.close();
    assert.equal(await count, 1);
  });
});
