// Duty: openkv/testing: a handle with injected faults fails as often, and in the same places, as it is told,
// and what it says of each failure is true.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { Kv, KvConflictError, KvError, KvOutcomeUnknownError } from "../../index.mjs";
import { faulty } from "../../dist/testing/index.mjs";
import { open } from "../kit/server.mjs";

const CALLS = 400;

/** Calls so many times, one after the other; answers the code of each failure, or "ok". */
async function outcomes(count, call) {
  const codes = [];
  for (let at = 0; at < count; at++) {
    codes.push(
      await Promise.resolve(call(at)).then(
        () => "ok",
        ({ code }) => code,
      ),
    );
  }
  return codes;
}

const shareOf = (codes, code) => codes.filter((one) => one === code).length / codes.length;

test("without rates it is the same handle", async () => {
  const kv = faulty(await open(":memory:"));
  assert.ok(kv instanceof Kv);
  await kv.set(["a", 1], 1);
  assert.ok(
    (
      await kv
        .atomic()
        .check({ key: ["b"], versionstamp: null })
        .sum(["n"], 1n)
        .commit()
    ).ok,
  );
  const found = [];
  for await (const { key, value } of kv.list({ prefix: ["a"] })) found.push([key, value]);
  assert.deepEqual(found, [[["a", 1], 1]]);
  assert.equal((await kv.list({ prefix: ["a"] }).toArray()).length, 1);
  const { value } = await kv.transaction(async (tx) => (await tx.get(["n"])).value.value);
  assert.equal(value, 1n);
  await kv.queue("q").enqueue("m");
  assert.equal((await kv.queue("q").receive()).value, "m");
  assert.equal(kv.getSync(["a", 1]).value, 1);
  await assert.rejects(kv.set("no key", 1), TypeError);
  assert.throws(() => kv.list({ nothing: [] }), TypeError);
  await kv.close();
  await assert.rejects(kv.get(["a"]), { code: "CLOSED" });
});

test("calls that are unavailable have done nothing, and are as many as the rate says", async () => {
  const real = await open(":memory:");
  const kv = faulty(real, { unavailable: 0.3 });
  const codes = await outcomes(CALLS, (at) => kv.set(["set", at], at));
  const share = shareOf(codes, "UNAVAILABLE");
  assert.ok(share > 0.2 && share < 0.4, `${share}`);
  assert.equal(await real.count({ prefix: ["set"] }), codes.filter((code) => code === "ok").length);
  for (const call of [
    () => kv.get(["a"]),
    () => kv.getMany([["a"]]),
    () => kv.list({ prefix: [] }).next(),
    () => kv.list({ prefix: ["set"] }).toArray(),
    () => kv.atomic().set(["a"], 1).commit(),
    () => kv.transaction((tx) => tx.get(["a"])),
    () => kv.enqueue("x"),
    () => kv.queue("q").enqueue("x"),
    () => kv.queue("q").receive(),
    () => kv.deleteMany([["a"]]),
  ]) {
    const found = new Set(await outcomes(40, call));
    assert.deepEqual([...found].sort(), ["UNAVAILABLE", "ok"], `${call}`);
  }
  await assert.rejects(faulty(real, { unavailable: 1 }).get(["a"]), (error) => {
    assert.ok(error instanceof KvError && /faulty/.test(error.message));
    return true;
  });
});

test("a write of unknown outcome has happened or not; reads have none", async () => {
  const real = await open(":memory:");
  const kv = faulty(real, { unknownOutcome: 1, seed: 3 });
  assert.deepEqual(
    new Set(await outcomes(CALLS, (at) => kv.set(["w", at], at))),
    new Set(["OUTCOME_UNKNOWN"]),
  );
  const share = (await real.count({ prefix: ["w"] })) / CALLS;
  assert.ok(share > 0.4 && share < 0.6, `${share}`);
  assert.deepEqual(new Set(await outcomes(20, () => kv.get(["w"]))), new Set(["ok"]));
  for (let at = 0; at < 40; at++) {
    const add = (tx) => void tx.set(["t", at], at);
    await assert.rejects(kv.transaction(add), KvOutcomeUnknownError);
    await assert.rejects(kv.atomic().set(["c", at], at).commit(), KvOutcomeUnknownError);
  }
  for (const prefix of [["t"], ["c"]]) {
    const count = await real.count({ prefix });
    assert.ok(count > 5 && count < 35, `${prefix} ${count}`);
  }
});

test("a conflict writes nothing and names a check; without checks there is none", async () => {
  const real = await open(":memory:");
  const kv = faulty(real, { conflicts: 0.5, seed: 9 });
  const checks = [["x"], ["y"]].map((key) => ({ key, versionstamp: null }));
  const results = [];
  for (let at = 0; at < CALLS; at++) {
    results.push(
      await kv
        .atomic()
        .check(...checks)
        .set(["c", at], at)
        .commit(),
    );
    assert.ok((await kv.atomic().set(["plain", at], at).commit()).ok);
  }
  const refused = results.filter(({ ok }) => !ok);
  assert.ok(refused.length > CALLS * 0.4 && refused.length < CALLS * 0.6, `${refused.length}`);
  assert.deepEqual(new Set(refused.map(({ failed }) => `${failed}`)), new Set(["0", "1"]));
  assert.equal(await real.count({ prefix: ["c"] }), CALLS - refused.length);
});

test("a transaction runs again after a conflict, and gives up after its retries", async () => {
  const real = await open(":memory:");
  const kv = faulty(real, { conflicts: 0.5 });
  let runs = 0;
  for (let at = 0; at < 50; at++) {
    await kv.transaction(async (tx) => {
      runs++;
      tx.set(["n"], ((await tx.get(["n"])).value ?? 0) + 1);
    });
  }
  assert.equal((await real.get(["n"])).value, 50);
  assert.ok(runs > 70 && runs < 200, `${runs}`);

  runs = 0;
  const never = faulty(real, { conflicts: 1 });
  const giving = never.transaction((tx) => void (runs++, tx.set(["never"], 1)), { maxRetries: 3 });
  await assert.rejects(giving, KvConflictError);
  assert.equal(runs, 4);
  assert.equal((await real.get(["never"])).value, null);
  await assert.rejects(
    kv.transaction(() => Promise.reject(new RangeError("mine"))),
    /mine/,
  );
});

test("the same seed fails in the same places, another one in others", async () => {
  const codesOf = async (seed) => {
    const kv = faulty(await open(":memory:"), {
      seed,
      unavailable: 0.2,
      unknownOutcome: 0.2,
      conflicts: 0.2,
    });
    const check = { key: ["none"], versionstamp: null };
    const writes = await outcomes(60, (at) => kv.set(["w", at], at));
    const commits = await outcomes(60, async () => {
      const { ok } = await kv.atomic().check(check).set(["c"], 1).commit();
      if (!ok) throw Object.assign(new Error(), { code: "CONFLICT" });
    });
    const stored = await kv
      .list({ prefix: ["w"] })
      .toArray()
      .catch(({ code }) => code);
    return JSON.stringify([writes, commits, stored]);
  };
  assert.equal(await codesOf(5), await codesOf(5));
  assert.notEqual(await codesOf(5), await codesOf(6));
});

test("late answers keep the order of the calls", async (t) => {
  const database = await open(":memory:");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const kv = faulty(database, { latency: [0, 20] });
  const order = [];
  const calls = Array.from({ length: 20 }, async (_, at) => {
    kv.set(["a"], at);
    order.push([at, (await kv.get(["a"])).value]);
  });
  // The database has answered all calls before the first of them is over.
  await database.get(["a"]);
  await new Promise(setImmediate);
  t.mock.timers.tick(20);
  await Promise.all(calls);
  // A read sees the writes that were called before it.
  for (const [at, value] of order) assert.ok(value >= at, `${value} ${at}`);
  assert.notDeepEqual(
    order.map(([at]) => at),
    Array.from({ length: 20 }, (_, at) => at),
  );
});

test("a lost answer is no unhandled rejection, and mistakes of the caller stay errors", async () => {
  const kv = faulty(await open(":memory:"), { unknownOutcome: 1, seed: 2 });
  const codes = await outcomes(20, () => kv.set(["a"], () => {}));
  assert.ok(codes.includes("INVALID") || codes.includes(undefined), `${codes}`);
});

test("options that are none are refused with what they may be", async () => {
  const kv = await open(":memory:");
  for (const [options, message] of [
    [{ conflicts: 2 }, /conflicts must be a probability from 0 to 1: received 2/],
    [{ unavailable: -1 }, /unavailable must be a probability/],
    [{ unknownOutcome: "1" }, /unknownOutcome must be a probability/],
    [{ seed: 0.5 }, /seed must be an integer: received 0.5/],
    [{ latency: -1 }, /latency must be milliseconds from 0 to 60000/],
    [{ latency: [2, 1] }, /latency must be/],
    [{ latency: 60_001 }, /latency must be/],
    [{ conflict: 1 }, /unknown option conflict; there are conflicts/],
  ]) {
    assert.throws(() => faulty(kv, options), { name: "TypeError", message });
  }
  assert.throws(() => faulty({}), /must be a handle of openKv/);
  assert.ok(faulty(kv, { latency: 60_000, conflicts: 1 }));
});

test("import and require give out the same names", () => {
  const required = createRequire(import.meta.url)("../../dist/testing/index.js");
  assert.deepEqual(Object.keys(required), ["faulty", "testClock"]);
});

test("a call ends with its signal, as one of the handle itself", async () => {
  const kv = await open(":memory:");
  const late = faulty(kv, { latency: 60_000 });
  const away = faulty(kv, { unavailable: 1 });
  const reason = new Error("enough");
  const calls = [
    (of, signal) => of.get(["a"], { signal }),
    (of, signal) => of.set(["a"], 1, { signal }),
    (of, signal) => of.atomic().set(["a"], 1).commit({ signal }),
    (of, signal) => of.transaction((tx) => tx.get(["a"]), { signal }),
    (of, signal) => of.queue("q").receive({ signal }),
  ];
  for (const call of calls) {
    await assert.rejects(call(away, AbortSignal.abort(reason)), reason);
    const controller = new AbortController();
    const waiting = call(late, controller.signal);
    controller.abort(reason);
    await assert.rejects(waiting, reason);
  }
});
