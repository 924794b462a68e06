// Duty: the limiter of rate-limiter-flexible. That library has no suite for stores on npm, so these cases are
// written from its documentation.

import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterQueue,
  RateLimiterRes,
} from "rate-limiter-flexible";
import { openKv } from "openkv";
import { RateLimiterOpenKv } from "openkv/rate-limiter";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { databases, end, newPath } from "./kit.mjs";

afterAll(end);

for (const [place, newDatabase] of await databases()) {
  describe(place, () => {
    let kv;
    let base;
    const newLimiter = (options) =>
      new RateLimiterOpenKv({ kv, base, points: 2, duration: 60, ...options });
    beforeEach(async () => {
      const { path, open, base: given } = newDatabase();
      base = given;
      kv = await openKv(path, open);
    });
    afterEach(() => kv.close());

    it("a window of a time before the clock was set back is over", async () => {
      const limiter = newLimiter();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
      try {
        await limiter.consume("a", 2);
        await expect(limiter.consume("a")).rejects.toBeInstanceOf(RateLimiterRes);
      } finally {
        vi.useRealTimers();
      }
      expect(await limiter.get("a")).toBe(null);
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 2 });
      await expect(limiter.consume("a")).rejects.toBeInstanceOf(RateLimiterRes);
    });

    it("consume counts points, and rejects above them", async () => {
      const limiter = newLimiter();
      const first = await limiter.consume("a");
      expect(first).toBeInstanceOf(RateLimiterRes);
      expect(first).toMatchObject({
        remainingPoints: 1,
        consumedPoints: 1,
        isFirstInDuration: true,
      });
      expect(first.msBeforeNext).toBeGreaterThan(50_000);
      expect(first.msBeforeNext).toBeLessThanOrEqual(60_000);
      const second = await limiter.consume("a");
      expect(second).toMatchObject({
        remainingPoints: 0,
        consumedPoints: 2,
        isFirstInDuration: false,
      });
      const third = await limiter.consume("a").catch((refused) => refused);
      expect(third).toBeInstanceOf(RateLimiterRes);
      expect(third).toMatchObject({ remainingPoints: 0, consumedPoints: 3 });
      expect(await limiter.consume("b")).toMatchObject({ consumedPoints: 1 });
    });

    it("consume takes several points", async () => {
      const limiter = newLimiter({ points: 10 });
      expect(await limiter.consume("a", 7)).toMatchObject({
        remainingPoints: 3,
        isFirstInDuration: true,
      });
      await expect(limiter.consume("a", 4)).rejects.toMatchObject({ consumedPoints: 11 });
    });

    it("no point of concurrent calls is lost, from the first one on", async () => {
      const limiters = [newLimiter({ points: 30 }), newLimiter({ points: 30 })];
      const calls = Array.from({ length: 60 }, (_, at) => limiters[at % 2].consume("a"));
      const settled = await Promise.allSettled(calls);
      expect(settled.filter(({ status }) => status === "fulfilled").length).toBe(30);
      for (const { reason } of settled)
        expect(reason ?? new RateLimiterRes()).toBeInstanceOf(RateLimiterRes);
      expect(await limiters[0].get("a")).toMatchObject({ consumedPoints: 60, remainingPoints: 0 });
      const firsts = settled.map(({ value }) => value).filter((value) => value?.isFirstInDuration);
      expect(firsts.length).toBe(1);
    });

    it("a window ends, and the next one begins with its own points", async () => {
      const limiter = newLimiter({ points: 1, duration: 0.05 });
      await limiter.consume("a");
      await expect
        .poll(() =>
          limiter.consume("a").then(
            ({ consumedPoints }) => consumedPoints,
            () => 0,
          ),
        )
        .toBe(1);
    });

    it("the entries of a key expire with its window", async () => {
      const limiter = newLimiter({ duration: 0.001 });
      await limiter.consume("a");
      await expect.poll(() => limiter.get("a")).toBe(null);
      expect(await kv.count({ prefix: [base ?? "rate-limiter"] })).toBe(0);
    });

    it("a duration of 0 never ends", async () => {
      const limiter = newLimiter({ duration: 0 });
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1, msBeforeNext: -1 });
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 2, msBeforeNext: -1 });
      await expect(limiter.consume("a")).rejects.toMatchObject({ msBeforeNext: -1 });
    });

    it("get tells the state, and null for a key without one", async () => {
      const limiter = newLimiter();
      expect(await limiter.get("a")).toBe(null);
      await limiter.consume("a");
      expect(await limiter.get("a")).toMatchObject({ consumedPoints: 1, remainingPoints: 1 });
    });

    it("penalty and reward change the points, and keep the window", async () => {
      const limiter = newLimiter({ points: 5 });
      const { msBeforeNext } = await limiter.consume("a");
      expect(await limiter.penalty("a", 2)).toMatchObject({
        consumedPoints: 3,
        remainingPoints: 2,
      });
      const rewarded = await limiter.reward("a");
      expect(rewarded).toMatchObject({ consumedPoints: 2, remainingPoints: 3 });
      expect(rewarded.msBeforeNext).toBeLessThanOrEqual(msBeforeNext);
    });

    it("block refuses a key for a time, set gives it points", async () => {
      const limiter = newLimiter();
      await limiter.block("a", 30);
      const refused = await limiter.consume("a").catch((answer) => answer);
      expect(refused).toBeInstanceOf(RateLimiterRes);
      expect(refused.msBeforeNext).toBeLessThanOrEqual(30_000);
      await limiter.set("a", 1, 30);
      expect(await limiter.get("a")).toMatchObject({ consumedPoints: 1, remainingPoints: 1 });
      await limiter.block("a", 0);
      expect(await limiter.get("a")).toMatchObject({ msBeforeNext: -1 });
    });

    it("delete forgets a key", async () => {
      const limiter = newLimiter();
      await limiter.consume("a", 2);
      expect(await limiter.delete("a")).toBe(true);
      expect(await limiter.delete("a")).toBe(false);
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
    });

    it("blockDuration keeps a key refused", async () => {
      const limiter = newLimiter({ points: 1, duration: 1, blockDuration: 60 });
      await limiter.consume("a");
      await expect(limiter.consume("a")).rejects.toMatchObject({ msBeforeNext: 60_000 });
      expect((await limiter.get("a")).msBeforeNext).toBeGreaterThan(50_000);
    });

    it("inMemoryBlockOnConsumed refuses without the database", async () => {
      const limiter = newLimiter({ inMemoryBlockOnConsumed: 2, inMemoryBlockDuration: 10 });
      await limiter.consume("a", 2);
      await expect(limiter.consume("a")).rejects.toBeInstanceOf(RateLimiterRes);
      await expect(limiter.consume("a")).rejects.toBeInstanceOf(RateLimiterRes);
      expect((await newLimiter().get("a")).consumedPoints).toBe(3);
    });

    it("prefixes and limiters with another base are apart", async () => {
      const [one, two] = ["one", "two"].map((keyPrefix) => newLimiter({ keyPrefix }));
      await one.consume("a");
      expect(await two.get("a")).toBe(null);
      expect(await newLimiter({ keyPrefix: "one", base: "other" }).get("a")).toBe(null);
    });

    it("another limiter steps in when the database fails", async () => {
      const closed = await openKv(":memory:");
      await closed.close();
      const insuranceLimiter = new RateLimiterMemory({ points: 1, duration: 60 });
      const limiter = new RateLimiterOpenKv({
        kv: closed,
        points: 9,
        duration: 60,
        insuranceLimiter,
      });
      expect(await limiter.consume("a")).toMatchObject({ remainingPoints: 0 });
      const uninsured = new RateLimiterOpenKv({ kv: closed, points: 9, duration: 60 });
      await expect(uninsured.consume("a")).rejects.toThrow(/closed/);
    });

    it("works below the library's own wrappers", async () => {
      const bursty = new BurstyRateLimiter(
        newLimiter({ points: 1 }),
        newLimiter({ points: 1, keyPrefix: "burst" }),
      );
      await bursty.consume("a");
      await bursty.consume("a");
      await expect(bursty.consume("a")).rejects.toMatchObject({ remainingPoints: 0 });
      const queue = new RateLimiterQueue(newLimiter({ points: 2, keyPrefix: "queue" }));
      expect(await queue.removeTokens(1, "a")).toBe(1);
      expect(await queue.getTokensRemaining("a")).toBe(1);
    });
  });
}

describe("on a file", () => {
  it("points survive a restart, and count for another limiter at once", async () => {
    const path = newPath();
    const options = { path, points: 3, duration: 60 };
    const first = new RateLimiterOpenKv(options);
    await first.consume("a");
    const second = new RateLimiterOpenKv(options);
    expect(await second.consume("a")).toMatchObject({ consumedPoints: 2 });
    await first.close();
    await second.close();
    const third = new RateLimiterOpenKv(options);
    expect(await third.consume("a")).toMatchObject({ consumedPoints: 3 });
    await third.close();
  });
});
