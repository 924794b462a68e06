// Duty: kv.limiter: exact over callers, by the time of the database, wherever the database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testClock } from "openkv/testing";
import { onEveryKind, open } from "./databases.mjs";

const HOUR = { limit: 5, per: "1h" };
const ALGORITHMS = ["fixed", "sliding", "token-bucket"];

onEveryKind("limiters", (fresh) => {
  for (const algorithm of ALGORITHMS) {
    test(`${algorithm}: of many takes at once, exactly the limit is allowed`, async () => {
      const kv = await fresh();
      const limiter = kv.limiter(["calls", "ada"], { ...HOUR, algorithm });
      const answers = await Promise.all(Array.from({ length: 40 }, () => limiter.take()));
      const allowed = answers.filter((answer) => answer.allowed);
      assert.deepEqual(allowed.map(({ remaining }) => remaining).sort(), [0, 1, 2, 3, 4]);
      for (const { limit, retryAfter, resetAfter } of answers) {
        assert.equal(limit, 5);
        assert.ok(retryAfter >= 0 && retryAfter <= 7_200_000, `${retryAfter}`);
        assert.ok(resetAfter > 0 && resetAfter <= 7_200_000, `${resetAfter}`);
      }
      assert.ok(answers.filter((answer) => !answer.allowed).every((of) => of.retryAfter > 0));
    });
  }

  test("a peek takes nothing, a reset gives all back", async () => {
    const kv = await fresh();
    const limiter = kv.limiter(["calls"], HOUR);
    const whole = { allowed: true, limit: 5, remaining: 5, retryAfter: 0, resetAfter: 0 };
    assert.deepEqual(await limiter.peek(), whole);
    assert.equal((await kv.get(["calls"])).versionstamp, null);
    assert.equal((await limiter.take(5)).remaining, 0);
    assert.equal((await limiter.peek()).allowed, false);
    assert.ok((await kv.ttl(["calls"])) !== null, "the state expires");
    await limiter.reset();
    assert.deepEqual(await limiter.peek(5), whole);
  });

  test("more points than the limit are never there", async () => {
    const kv = await fresh();
    const { allowed, retryAfter } = await kv.limiter(["a"], HOUR).take(6);
    assert.deepEqual([allowed, retryAfter], [false, Number.POSITIVE_INFINITY]);
    const none = await kv.limiter(["b"], { limit: 0, per: 1000 }).take();
    assert.deepEqual([none.allowed, none.retryAfter], [false, Number.POSITIVE_INFINITY]);
    assert.equal(await kv.count({ prefix: [] }), 0, "a refused take stores nothing");
  });

  test("a value that no limiter has stored is refused, and stays", async () => {
    const kv = await fresh();
    await kv.set(["mine"], { a: 1 });
    const limiter = kv.limiter(["mine"], HOUR);
    for (const call of [() => limiter.take(), () => limiter.peek(), () => limiter.reset()]) {
      await assert.rejects(call, {
        name: "TypeError",
        code: "INVALID",
        message: /limiter: the key holds a value that no limiter has stored.*\(key \["mine"\]\)/,
      });
    }
    assert.deepEqual((await kv.get(["mine"])).value, { a: 1 });
  });

  test("a take keeps the order of the calls of its handle", async () => {
    const kv = await fresh();
    const limiter = kv.limiter(["calls"], HOUR);
    void kv.set(["blob"], new Blob(["contents that are read before the commit"]));
    const [first, , second] = await Promise.all([
      limiter.take(4),
      kv.delete(["calls"]),
      limiter.take(4),
    ]);
    assert.deepEqual([first.allowed, second.allowed], [true, true]);
  });
});

test("windows follow the clock of the database", async () => {
  const clock = testClock();
  const kv = await open(":memory:", { clock });
  for (const algorithm of ALGORITHMS) {
    const limiter = kv.limiter([algorithm], { limit: 2, per: "10s", algorithm });
    assert.equal((await limiter.take(2)).allowed, true);
    const { allowed, retryAfter } = await limiter.take();
    assert.equal(allowed, false);
    await clock.advance(retryAfter - 1);
    assert.equal((await limiter.peek()).allowed, false, algorithm);
    await clock.advance(1);
    assert.equal((await limiter.take()).allowed, true, algorithm);
    await clock.advance(20_000);
    assert.equal((await kv.get([algorithm])).versionstamp, null, "nothing is left");
  }
});

test("a rule that is changed goes on with the used points", async () => {
  const kv = await open(":memory:");
  await kv.limiter(["a"], { limit: 10, per: "1h" }).take(6);
  assert.equal((await kv.limiter(["a"], { limit: 8, per: "2h" }).take()).remaining, 1);
  const sliding = { limit: 8, per: "1h", algorithm: "sliding" };
  assert.equal((await kv.limiter(["a"], sliding).take()).remaining, 0);
  assert.equal((await kv.limiter(["a"], { limit: 3, per: "1h" }).peek()).remaining, 0);
});

/** A clock that can be set back. */
function settableClock(nowMs) {
  let move = async () => {};
  return {
    now: () => nowMs,
    follow(follower) {
      move = follower;
      return () => {};
    },
    async set(ms) {
      nowMs = ms;
      await move(ms);
    },
  };
}

test("a clock that is set back lets nobody wait longer than a new key", async () => {
  const START = 10 * 3_600_000;
  const clock = settableClock(START);
  const kv = await open(":memory:", { clock });
  for (const algorithm of ALGORITHMS) {
    await clock.set(START);
    const limiter = kv.limiter([algorithm], { limit: 1, per: "10s", algorithm });
    assert.equal((await limiter.take()).allowed, true);
    await clock.set(START - 3_600_000);
    const { allowed, retryAfter } = await limiter.take();
    assert.equal(allowed, false);
    // Refused callers that ask again do not begin the wait anew.
    await clock.set(START - 3_600_000 + retryAfter - 1);
    assert.equal((await limiter.take()).allowed, false, algorithm);
    await clock.set(START - 3_600_000 + retryAfter);
    assert.equal((await limiter.take()).allowed, true, algorithm);
  }
});
