// Duty: kv.lease: one holder at a time, tokens that grow, and checks that fail when the lease is gone, wherever the
// database is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testClock } from "openkv/testing";
import { guard, HANG_MS, until } from "../kit/time.mjs";
import { freshPath, onEveryKind, open } from "./databases.mjs";

const KEY = ["jobs", "report"];
const aborted = (signal) =>
  guard(
    new Promise((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", resolve);
    }),
    HANG_MS,
    "the end of a lease",
  );

onEveryKind("leases", (fresh) => {
  test("one caller holds it, the next one gets it with a greater token", async () => {
    const kv = await fresh();
    const first = await kv.lease(KEY);
    assert.deepEqual(first.key, KEY);
    assert.equal(first.token, (await kv.get(KEY)).versionstamp);
    assert.equal(await kv.lease(KEY, { wait: false }), null);
    assert.equal(await kv.lease(KEY, { wait: "20ms" }), null);
    const waiting = kv.lease(KEY);
    assert.equal(await first.release(), true);
    assert.equal(first.signal.aborted, true);
    assert.equal(await first.release(), false);
    const second = await waiting;
    assert.ok(second.token > first.token, `${second.token} is after ${first.token}`);
    await second.release();
    const third = await kv.lease(KEY);
    assert.ok(third.token > second.token);
    await third[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();
    assert.equal((await kv.get(KEY)).versionstamp, null);
  });

  test("many callers have it one after the other", async () => {
    const kv = await fresh();
    const tokens = [];
    let holders = 0;
    const work = async () => {
      const lease = await kv.lease(KEY);
      assert.equal(++holders, 1);
      const { ok } = await kv.atomic().checkLease(lease).sum(["done"], 1).commit();
      assert.equal(ok, true);
      tokens.push(lease.token);
      holders--;
      await lease.release();
    };
    await guard(Promise.all(Array.from({ length: 8 }, work)), HANG_MS, "eight holders");
    assert.deepEqual(tokens, tokens.toSorted());
    assert.equal(new Set(tokens).size, 8);
    assert.equal((await kv.get(["done"])).value, 8);
  });

  test("it is renewed while it is held", async () => {
    const kv = await fresh();
    const lease = await kv.lease(KEY, { ttl: 3000 });
    const { expireAt: before } = await kv.ttl(KEY);
    await until(async () => (await kv.ttl(KEY)).expireAt > before, "a renewal");
    assert.equal(lease.signal.aborted, false);
    assert.equal((await kv.get(KEY)).versionstamp, lease.token, "a renewal keeps the token");
    await lease.release();
  });

  test("a lease that is taken away is lost: its checks fail and its signal is aborted", async () => {
    const kv = await fresh();
    const lease = await kv.lease(KEY, { ttl: 300 });
    await kv.delete(KEY);
    const { ok } = await kv.atomic().checkLease(lease).set(["x"], 1).commit();
    assert.equal(ok, false);
    await assert.rejects(
      kv.transaction(async (tx) => {
        await tx.checkLease(lease);
        tx.set(["x"], 1);
      }),
      { name: "KvError", code: "CONFLICT", message: /the lease of \["jobs", ?"report"\] is lost/ },
    );
    await aborted(lease.signal);
    assert.equal(lease.signal.reason.code, "CONFLICT");
    assert.equal((await kv.get(["x"])).value, null);
    assert.equal(await lease.release(), false);
  });

  test("a transaction under a lease commits", async () => {
    const kv = await fresh();
    const lease = await kv.lease(KEY);
    const { ok } = await kv.transaction(async (tx) => {
      await tx.checkLease(lease);
      tx.set(["x"], (await tx.get(["x"])).value ?? 1);
    });
    assert.equal(ok, true);
    await lease.release();
  });

  test("a wait ends with its signal, and leaves nothing behind", async () => {
    const kv = await fresh();
    const lease = await kv.lease(KEY);
    const stop = new AbortController();
    const waiting = kv.lease(KEY, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, { message: "enough" });
    await assert.rejects(kv.lease(KEY, { signal: AbortSignal.abort(new Error("no")) }), {
      message: "no",
    });
    await lease.release();
    // A try that was on its way at the abort may acquire it, and is released then.
    await until(async () => (await kv.get(KEY)).versionstamp === null, "nothing is left");
  });

  // The clock of the database was set back after the last renewal of a holder that is dead now.
  test("an entry that expires later than its own ttl from now ends after that", async () => {
    const kv = await fresh();
    const HOUR_MS = 3_600_000;
    await kv.set(KEY, { lease: "of a dead holder", ttl: 300 }, { expireIn: HOUR_MS });
    const next = await guard(kv.lease(KEY), HANG_MS, "the end of the dead holder's lease");
    await next.release();

    await kv.set(KEY, { lease: "of a dead holder", ttl: 2 * HOUR_MS }, { expireIn: 3 * HOUR_MS });
    const before = (await kv.ttl(KEY)).expireAt;
    assert.equal(await kv.lease(KEY, { wait: false }), null);
    const after = (await kv.ttl(KEY)).expireAt;
    assert.ok(before - after > HOUR_MS / 2, `${after.toISOString()} is by its length`);
    assert.equal(await kv.lease(KEY, { wait: false }), null);
    const again = (await kv.ttl(KEY)).expireAt;
    assert.equal(again.getTime(), after.getTime(), "callers who wait do not prolong it");
  });

  test("an entry that is no lease is refused, and stays", async () => {
    const kv = await fresh();
    await kv.set(KEY, "mine");
    await assert.rejects(kv.lease(KEY), {
      name: "TypeError",
      code: "INVALID",
      message: /kv\.lease: \["jobs", ?"report"\] holds a value that is no lease/,
    });
    assert.equal((await kv.get(KEY)).value, "mine");
  });
});

test("a lease that is acquired while the handle is closed is released, and nobody gets it", async () => {
  const path = freshPath();
  const other = await open(path);
  for (const lane of ["auto", "thread"]) {
    for (let later = 0; later < 4; later++) {
      const acquire = {
        lease: (kv) => kv.lease(KEY),
        once: (kv) => kv.once(KEY, () => assert.fail("it runs on a closed handle")),
      };
      for (const [name, call] of Object.entries(acquire)) {
        const kv = await open(path, { lane });
        const acquired = call(kv).catch((error) => assert.equal(error.name, "BadResource"));
        for (let i = 0; i < later; i++) await null;
        await kv.close();
        // The close ends a lease that came before it.
        assert.notEqual((await acquired)?.signal.aborted, false, name);
        // It was left to expire after its ttl of 10 s.
        assert.equal((await other.get(KEY)).versionstamp, null, `${name}, ${lane}, ${later}`);
      }
    }
  }
});

test("a lease that is acquired while its call is aborted is released", async () => {
  const kv = await open(":memory:");
  const { get: isAborted } = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted");
  // A lease was kept and renewed, and nobody had it, if the abort came a microtask behind the last look at the signal.
  for (let look = 1; look <= 8; look++) {
    for (let later = 0; later < 4; later++) {
      const controller = new AbortController();
      const abort = async () => {
        for (let i = 0; i < later; i++) await null;
        controller.abort(new Error("enough"));
      };
      let looks = 0;
      Object.defineProperty(controller.signal, "aborted", {
        get() {
          if (++looks === look) queueMicrotask(abort);
          return isAborted.call(this);
        },
      });
      const lease = await kv.lease(KEY, { signal: controller.signal }).catch(({ message }) => {
        assert.equal(message, "enough");
      });
      await lease?.release();
      const next = await kv.lease(KEY, { wait: "10s" });
      assert.notEqual(next, null, `${later} microtasks behind look ${look}`);
      await next.release();
    }
  }
});

test("a handle that is closed lets go of its leases", async () => {
  const kv = await open(":memory:");
  const other = await open(":memory:");
  await other.close();
  const lease = await kv.lease(KEY);
  const closed = kv.close();
  assert.equal(lease.signal.aborted, true);
  await closed;
});

test("leases have the time of a given clock", async () => {
  const clock = testClock();
  const kv = await open(":memory:", { clock });
  const lease = await kv.lease(KEY, { ttl: "30s" });
  for (let step = 0; step < 10; step++) await clock.advance(20_000);
  assert.equal(lease.signal.aborted, false, "it was renewed");
  assert.equal((await kv.get(KEY)).versionstamp, lease.token);

  const waiting = kv.lease(KEY, { ttl: "30s" });
  // A process that hangs for longer than the lease.
  await clock.advance(30_000);
  assert.equal(lease.signal.aborted, true);
  assert.equal(lease.signal.reason.code, "CONFLICT");
  const next = await guard(waiting, HANG_MS, "the next holder");
  assert.ok(next.token > lease.token);
  const { ok } = await kv.atomic().checkLease(lease).set(["x"], 1).commit();
  assert.equal(ok, false);
  const late = kv.lease(KEY, { wait: "5s" });
  // The wait has begun when the entry was read.
  await kv.get(KEY);
  await until(() => clock.advance(1000).then(() => pending(late)), "the end of the wait");
  assert.equal(await late, null);
  await next.release();
});

async function pending(promise) {
  const open = Symbol("open");
  return (await Promise.race([promise, Promise.resolve(open)])) !== open;
}
