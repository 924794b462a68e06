// Duty: kv.once: one run at a time, whose result all callers get, wherever the database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testClock } from "openkv/testing";
import { guard, HANG_MS } from "../kit/time.mjs";
import { onEveryKind, open } from "./databases.mjs";

const KEY = ["prices", "tea"];

onEveryKind("once", (fresh) => {
  test("callers at one time share a run, later ones its result", async () => {
    const kv = await fresh();
    let runs = 0;
    const ask = () =>
      kv.once(KEY, async () => {
        runs++;
        await kv.get(["pause"]);
        return { price: 3n, at: new Date(5) };
      });
    const answers = await guard(
      Promise.all(Array.from({ length: 6 }, ask)),
      HANG_MS,
      "six callers",
    );
    answers.push(await ask());
    assert.equal(runs, 1);
    for (const answer of answers) assert.deepEqual(answer, { price: 3n, at: new Date(5) });
    await kv.delete(KEY);
    await ask();
    assert.equal(runs, 2);
  });

  test("an error is the caller's own, and the next caller runs", async () => {
    const kv = await fresh();
    let runs = 0;
    const flaky = () =>
      kv.once(KEY, async () => {
        if (++runs === 1) throw new Error("the shop is closed");
        return undefined;
      });
    const answers = await guard(
      Promise.allSettled([flaky(), flaky(), flaky()]),
      HANG_MS,
      "three callers",
    );
    const failed = answers.filter(({ status }) => status === "rejected");
    assert.deepEqual(
      failed.map(({ reason }) => reason.message),
      ["the shop is closed"],
    );
    assert.equal(runs, 2);
    assert.equal(await flaky(), undefined);
    assert.equal(runs, 2, "undefined is a result");
  });

  test("a run that has lost its lease keeps nothing", async () => {
    const kv = await fresh();
    const run = async (lease) => {
      await kv.delete(KEY);
      const { ok } = await kv.atomic().checkLease(lease).set(["effect"], 1).commit();
      assert.equal(ok, false);
      return 1;
    };
    await assert.rejects(kv.once(KEY, run), { name: "KvError", code: "CONFLICT" });
    assert.equal(await kv.count({ prefix: [] }), 0);
  });

  test("a value that cannot be stored is the caller's error, and the key is free again", async () => {
    const kv = await fresh();
    await assert.rejects(
      kv.once(KEY, () => () => {}),
      { name: "TypeError", message: /could not be cloned/ },
    );
    assert.equal(await kv.once(KEY, () => 2), 2);
  });

  test("another value under the key is refused, and stays", async () => {
    const kv = await fresh();
    await kv.set(KEY, 7);
    await assert.rejects(
      kv.once(KEY, () => 1),
      { code: "INVALID", message: /holds a value that kv\.once has not stored/ },
    );
    assert.equal((await kv.get(KEY)).value, 7);
  });

  test("a caller that waits ends with its signal, and the run goes on", async () => {
    const kv = await fresh();
    const begun = Promise.withResolvers?.() ?? deferred();
    const goOn = Promise.withResolvers?.() ?? deferred();
    const first = kv.once(KEY, async () => {
      begun.resolve();
      await goOn.promise;
      return 1;
    });
    await begun.promise;
    const stop = new AbortController();
    const waiting = kv.once(KEY, () => 2, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, { message: "enough" });
    goOn.resolve();
    assert.equal(await first, 1);
  });
});

test("a result is kept for its ttl, and may be large", async () => {
  const clock = testClock();
  const kv = await open(":memory:", { clock, limits: "wide" });
  const large = "x".repeat(8 * 1024 * 1024);
  let runs = 0;
  const ask = () =>
    kv.once(
      KEY,
      () => {
        runs++;
        return large;
      },
      { ttl: "10m" },
    );
  assert.equal((await ask()).length, large.length);
  await clock.advance(599_999);
  assert.equal((await ask()).length, large.length);
  assert.equal(runs, 1);
  await clock.advance(1);
  await ask();
  assert.equal(runs, 2);
});

function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => {
    made.resolve = resolve;
  });
  return made;
}
