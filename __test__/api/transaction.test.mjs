// Duty: kv.transaction: what its function sees, what makes it run again, and what is written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvConflictError, KvU64 } from "../../index.mjs";
import { all, freshPath, onEveryKind, open } from "./databases.mjs";

const names = (entries) => entries.map(({ key }) => key.at(-1));

/** Runs a transaction whose first attempt meets `meanwhile` between its function and its commit. */
async function disturbed(kv, run, meanwhile) {
  let attempts = 0;
  const { value } = await kv.transaction(async (tx) => {
    const result = await run(tx);
    if (++attempts === 1) await meanwhile();
    return result;
  });
  return { attempts, value };
}

onEveryKind("transactions", (fresh) => {
  test("answers what the function returned, and the commit's versionstamp", async () => {
    const kv = await fresh();
    const { value, versionstamp } = await kv.transaction(async (tx) => {
      assert.deepEqual(await tx.get(["a"]), { key: ["a"], value: null, versionstamp: null });
      tx.set(["a"], { n: 1 }).set(["b"], 2);
      return "done";
    });
    assert.equal(value, "done");
    assert.deepEqual(await kv.get(["a"]), { key: ["a"], value: { n: 1 }, versionstamp });
    assert.equal((await kv.get(["b"])).versionstamp, versionstamp);
    assert.equal((await kv.transaction(() => 5)).value, 5);
  });

  test("sees its own writes, by the rules of the commit", async () => {
    const kv = await fresh();
    await kv.set(["n"], new KvU64(40n));
    await kv.set(["gone"], 1);
    await kv.set(["stays"], 1, { expireIn: 60_000 });
    await kv.transaction(async (tx) => {
      const value = { list: [1, { deep: 2n }], blob: new Blob(["text"]) };
      tx.set(["a"], value);
      value.list.push(3);
      const own = await tx.get(["a"]);
      assert.deepEqual(own.value.list, [1, { deep: 2n }]);
      assert.equal(await own.value.blob.text(), "text");
      assert.equal(own.versionstamp, null);
      tx.sum(["n"], 1n).sum(["n"], 1n);
      assert.deepEqual((await tx.get(["n"])).value, new KvU64(42n));
      tx.max(["n"], 50n);
      assert.deepEqual((await tx.get(["n"])).value, new KvU64(50n));
      tx.set(["n"], new KvU64(1n)).sum(["n"], 1n);
      tx.min(["new"], 3n);
      tx.mutate({ type: "delete", key: ["gone"] }, { type: "set", key: ["b"], value: null });
      tx.set(["ended"], 1, { expireIn: 0 }).persist(["stays"]);
      const entries = await tx.getMany([["n"], ["new"], ["gone"], ["b"], ["ended"], ["stays"]]);
      const values = entries.map((entry) => entry.value);
      assert.deepEqual(values, [new KvU64(2n), new KvU64(3n), null, null, null, 1]);
      assert.deepEqual(names(await all(tx.list({ prefix: [] }))), ["a", "b", "n", "new", "stays"]);
      assert.deepEqual(names(await all(tx.list({ prefix: [] }, { reverse: true, limit: 2 }))), [
        "stays",
        "new",
      ]);
      assert.equal(await tx.count({ prefix: [] }), 5);
      assert.equal((await kv.get(["a"])).value, null, "nobody else does");
    });
    assert.deepEqual(names(await all(kv.list({ prefix: [] }))), ["a", "b", "n", "new", "stays"]);
    assert.deepEqual((await kv.get(["n"])).value, new KvU64(2n));
    assert.equal(await kv.ttl(["stays"]), null);
  });

  test("numbers, arrays and UUIDs are the commit's", async () => {
    const kv = await fresh();
    await kv.set(["list"], [1]);
    const id = kv.uuidv7();
    const result = await kv.transaction(async (tx) => {
      tx.sum(["n"], 1.5).sum(["n"], 10, { max: 5, clamp: true });
      tx.append(["list"], [2]).prepend(["list"], [0]);
      tx.set(["job", id], { id }).sum(["big"], -5n);
      const [n, list, big] = await tx.getMany([["n"], ["list"], ["big"]]);
      return [n.value, list.value, big.value];
    });
    assert.deepEqual(result.value, [5, [0, 1, 2], -5n]);
    const uuid = id.uuidIn(result);
    assert.deepEqual((await kv.get(["job", uuid])).value, { id: uuid });
    assert.deepEqual((await kv.get(["list"])).value, [0, 1, 2]);
    const below = kv.transaction((tx) => tx.sum(["big"], -1n, { min: -5n }));
    await assert.rejects(below, RangeError);
  });

  test("a key reads the same each time, and two at once are one read", async () => {
    const kv = await fresh();
    await kv.set(["a"], { n: 1 });
    await kv.transaction(async (tx) => {
      const [first, second] = await Promise.all([tx.get(["a"]), tx.get(["a"])]);
      assert.equal(first, second);
      const [third, absent] = await tx.getMany([["a"], ["none"]]);
      assert.equal(third, first);
      assert.deepEqual(absent, { key: ["none"], value: null, versionstamp: null });
    });
  });

  test("a change of what it has read makes it run again", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    const { attempts, value } = await disturbed(
      kv,
      async (tx) => {
        const { value } = await tx.get(["a"]);
        tx.set(["b"], value);
        return value;
      },
      () => kv.set(["a"], 2),
    );
    assert.deepEqual([attempts, value, (await kv.get(["b"])).value], [2, 2, 2]);
  });

  for (const [what, meanwhile, again] of [
    ["a key that appears in a listed range", (kv) => kv.set(["r", 5], 1), true],
    ["a key that appears at its end", (kv) => kv.set(["r", 99], 1), true],
    ["a key that goes from it", (kv) => kv.delete(["r", 2]), true],
    ["a changed entry", (kv) => kv.set(["r", 2], "other"), true],
    ["a key that appears elsewhere", (kv) => kv.set(["s", 1], 1), false],
    ["a moved end", (kv) => kv.touch(["r", 2], { expireIn: 60_000 }), false],
  ]) {
    test(`${what} ${again ? "is" : "is not"} a conflict`, async () => {
      const kv = await fresh();
      for (const n of [1, 2, 3]) await kv.set(["r", n], n);
      const sum = async (tx) => {
        let total = 0;
        for await (const { value } of tx.list({ prefix: ["r"] })) total += Number(value) || 0;
        tx.set(["total"], total);
      };
      const { attempts } = await disturbed(kv, sum, () => meanwhile(kv));
      assert.equal(attempts, again ? 2 : 1);
    });
  }

  test("a transaction without writes takes no versionstamp: it says which state it has read", async () => {
    const kv = await fresh();
    const many = Array.from({ length: 200 }, (_, n) => ["r", n]);
    const op = kv.atomic();
    for (const key of many) op.set(key, { n: key[1] });
    const { versionstamp } = await op.commit();
    const nothing = () => 1;
    const few = (tx) => tx.getMany([["r", 1], ["none"]]);
    const each = async (tx) => await Promise.all(many.slice(0, 100).map((key) => tx.get(key)));
    const ranges = async (tx) => [
      await all(tx.list({ prefix: ["r"] })),
      await tx.count({ prefix: ["none"] }),
    ];
    for (const run of [nothing, few, each, ranges]) {
      const result = await kv.transaction(run);
      assert.deepEqual(Object.keys(result).sort(), ["ok", "value", "versionstamp"]);
      assert.equal(result.versionstamp, versionstamp);
    }
    const changes = [
      [few, () => kv.set(["none"], 1)],
      [each, () => kv.set(["r", 50], 1)],
      [ranges, () => kv.delete(["r", 7])],
    ];
    for (const [run, meanwhile] of changes) {
      assert.equal((await disturbed(kv, run, meanwhile)).attempts, 2);
    }
    const refused = kv.transaction((tx) => tx.get(["r", 1]).then(() => kv.set(["r", 1], 2)), {
      maxRetries: 0,
    });
    const { keys } = await refused.catch((error) => error);
    assert.deepEqual(keys, [["r", 1]]);
  });

  test("an empty range that stays empty holds, one that fills does not", async () => {
    const kv = await fresh();
    const none = async (tx) => {
      assert.equal(typeof (await tx.count({ prefix: ["r"] })), "number");
      tx.set(["checked"], true);
    };
    assert.equal((await disturbed(kv, none, () => kv.set(["q"], 1))).attempts, 1);
    assert.equal((await disturbed(kv, none, () => kv.set(["r", 1], 1))).attempts, 2);
  });

  test("a list that was left is checked as far as it came", async () => {
    const kv = await fresh();
    for (const n of [10, 20, 30, 40]) await kv.set(["r", n], n);
    const cases = [
      [false, 15, 2],
      [false, 25, 1],
      [true, 35, 2],
      [true, 25, 1],
    ];
    for (const [reverse, n, expected] of cases) {
      const two = async (tx) => {
        const found = [];
        for await (const { value } of tx.list({ prefix: ["r"] }, { reverse })) {
          found.push(value);
          if (found.length === 2) break;
        }
        tx.set(["found"], found);
      };
      const { attempts } = await disturbed(kv, two, () => kv.set(["r", n], n));
      assert.equal(attempts, expected, `${reverse} ${n}`);
      await kv.delete(["r", n]);
    }
  });

  test("own writes in a listed range, behind it and before it, are merged and no conflict", async () => {
    const kv = await fresh();
    for (const n of [1, 3, 5]) await kv.set(["r", n], n);
    let attempts = 0;
    await kv.transaction(async (tx) => {
      attempts++;
      tx.delete(["r", 1]).set(["r", 2], "own").set(["r", 3], "own");
      const seen = [];
      for await (const { key, value } of tx.list({ prefix: ["r"] })) {
        seen.push([key[1], value]);
        if (key[1] === 3) tx.set(["r", 4], "late").delete(["r", 5]).set(["r", 0], "behind");
      }
      assert.deepEqual(seen, [
        [2, "own"],
        [3, "own"],
        [4, "late"],
      ]);
    });
    assert.equal(attempts, 1);
    assert.deepEqual(names(await all(kv.list({ prefix: ["r"] }))), [0, 2, 3, 4]);
  });

  test("two that each read what the other writes cannot both win (write skew)", async () => {
    const kv = await fresh();
    await kv.atomic().set(["on call", "a"], true).set(["on call", "b"], true).commit();
    const leave = (who) =>
      kv.transaction(async (tx) => {
        let left = 0;
        for await (const { value } of tx.list({ prefix: ["on call"] })) left += value ? 1 : 0;
        if (left > 1) tx.set(["on call", who], false);
        return left > 1;
      });
    const results = await Promise.all([leave("a"), leave("b")]);
    assert.deepEqual(results.map(({ value }) => value).sort(), [false, true]);
  });

  test("what the function throws is thrown, and nothing is written", async () => {
    const kv = await fresh();
    const mine = new Error("mine");
    const failing = kv.transaction(async (tx) => {
      tx.set(["a"], 1).enqueue("message");
      await tx.get(["b"]);
      throw mine;
    });
    await assert.rejects(failing, (error) => error === mine);
    assert.equal((await kv.get(["a"])).value, null);
  });

  test("a conflict names the keys and the lists that others have changed", async () => {
    const kv = await fresh();
    const range = { start: ["r", 1], end: ["r", 5] };
    const lost = async (tx, change) => {
      await tx.getMany([["a"], ["b"], ["c"]]);
      for await (const _ of tx.list({ prefix: ["empty"] }));
      for await (const _ of tx.list(range));
      tx.list({ prefix: ["never begun"] });
      await change;
    };
    const conflict = async (...keys) => {
      const run = (tx) => lost(tx, null).then(() => Promise.all(keys.map((key) => kv.set(key, 1))));
      return await kv.transaction(run, { maxRetries: 0 }).then(assert.fail, (error) => {
        assert.ok(error instanceof KvConflictError);
        return [error.keys, error.ranges];
      });
    };
    assert.deepEqual(await conflict(["c"], ["a"]), [[["a"], ["c"]], []]);
    assert.deepEqual(await conflict(["empty", 1]), [[], [{ prefix: ["empty"] }]]);
    assert.deepEqual(await conflict(["r", 3], ["b"]), [[["b"]], [range]]);
    assert.deepEqual(await conflict(["r", 3], ["empty", 2]), [[], [{ prefix: ["empty"] }, range]]);
    // Two reads of one key that met different entries.
    const broken = kv.transaction(
      async (tx) => {
        await tx.get(["a"]);
        await kv.set(["a"], 2);
        for await (const _ of tx.list({ prefix: [] }));
      },
      { maxRetries: 0 },
    );
    await assert.rejects(broken, { code: "CONFLICT", keys: [["a"]], ranges: [] });
  });

  test("retryDelay bounds the pauses", async () => {
    const kv = await fresh();
    let attempts = 0;
    const never = async (tx) => {
      attempts++;
      await tx.get(["a"]);
      await kv.set(["a"], attempts);
    };
    // Ten doublings of an hour would not end before the test does.
    for (const retryDelay of [{ initial: 0 }, { max: 0 }, { initial: 0, max: 3_600_000 }, {}]) {
      attempts = 0;
      await assert.rejects(kv.transaction(never, { maxRetries: 5, retryDelay }), KvConflictError);
      assert.equal(attempts, 6);
    }
    const controller = new AbortController();
    attempts = 0;
    const long = kv.transaction(
      async (tx) => {
        await never(tx);
        setTimeout(() => controller.abort(), 50);
      },
      { retryDelay: { initial: 3_600_000 }, signal: controller.signal },
    );
    await assert.rejects(long, { name: "AbortError" });
    assert.ok(attempts <= 2, "it waited");
    // The signal aborts before the commit, which takes turns of the event loop, has ended.
    const during = new AbortController();
    const abortSoon = async () => {
      for (let turn = 0; turn < 100; turn++) await null;
      during.abort();
    };
    const aborted = kv.transaction(
      async (tx) => {
        await never(tx);
        void abortSoon();
      },
      { retryDelay: { initial: 3_600_000 }, signal: during.signal },
    );
    await assert.rejects(aborted, { name: "AbortError" });
    for (const [retryDelay, words] of [
      [5, /retryDelay: options must be an object/],
      [{ first: 5 }, /retryDelay: unknown option 'first'/],
      [{ initial: -1 }, /retryDelay\.initial must be milliseconds from 0 to 3600000: received -1/],
      [{ max: "5" }, /retryDelay\.max must be milliseconds .*: received the string "5"/],
      [{ max: Infinity }, /received Infinity/],
      [{ initial: 300, max: 200 }, /initial \(300\) is above max \(200\)/],
    ]) {
      const refused = { name: "TypeError", message: words };
      await assert.rejects(
        kv.transaction(() => {}, { retryDelay }),
        refused,
      );
    }
  });

  test("spent retries are a KvConflictError, and the signal ends the wait", async () => {
    const kv = await fresh();
    let attempts = 0;
    const never = async (tx) => {
      attempts++;
      await tx.get(["a"]);
      await kv.set(["a"], attempts);
      tx.set(["b"], 1);
    };
    await assert.rejects(kv.transaction(never, { maxRetries: 2 }), (error) => {
      assert.ok(error instanceof KvConflictError);
      assert.equal(error.code, "CONFLICT");
      assert.match(error.message, /3 attempts .*maxRetries: 2\), last of key \["a"\];/);
      assert.deepEqual([error.keys, error.ranges], [[["a"]], []]);
      return true;
    });
    assert.equal(attempts, 3);
    assert.equal((await kv.get(["b"])).value, null);
    await assert.rejects(kv.transaction(never, { maxRetries: 0 }), KvConflictError);

    const controller = new AbortController();
    const reason = new Error("enough");
    const waiting = kv.transaction(
      async (tx) => {
        await never(tx);
        if (attempts > 6) controller.abort(reason);
      },
      { maxRetries: Infinity, signal: controller.signal },
    );
    await assert.rejects(waiting, (error) => error === reason);
    const late = kv.transaction(() => assert.fail("ran"), { signal: AbortSignal.abort(reason) });
    await assert.rejects(late, (error) => error === reason);
  });

  test("an attempt that saw two states of one key runs again, even when it throws", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    let attempts = 0;
    const { value } = await kv.transaction(async (tx) => {
      const [{ value: first }] = await all(tx.list({ prefix: [] }));
      if (++attempts === 1) await kv.set(["a"], 2);
      const [{ value: second }] = await all(tx.list({ prefix: [] }));
      if (first !== second) throw new Error("this cannot be");
      return second;
    });
    assert.deepEqual([attempts, value], [2, 2]);
  });

  test("sums without reads do not conflict", async () => {
    const kv = await fresh();
    let attempts = 0;
    const add = () =>
      kv.transaction((tx) => {
        attempts++;
        tx.sum(["n"], 1n);
      });
    await Promise.all(Array.from({ length: 50 }, add));
    assert.deepEqual((await kv.get(["n"])).value, new KvU64(50n));
    assert.equal(attempts, 50);
  });

  test("random transfers and audits at once equal some order of them", async () => {
    const kv = await fresh();
    const accounts = 5;
    for (let id = 0; id < accounts; id++) await kv.set(["account", id], 100);
    const options = { maxRetries: Infinity };
    const transfer = (from, to, amount) =>
      kv.transaction(async (tx) => {
        const source = (await tx.get(["account", from])).value;
        await null;
        const target = (await tx.get(["account", to])).value;
        if (source < amount || from === to) return false;
        tx.set(["account", from], source - amount).set(["account", to], target + amount);
        tx.set(["log", kv.commitVersionstamp()], { from, to, amount });
        return true;
      }, options);
    const audit = () =>
      kv.transaction(async (tx) => {
        let total = 0;
        for await (const { value } of tx.list({ prefix: ["account"] })) total += value;
        assert.equal(tx.set(["audits", total], 1), tx);
      }, options);
    const jobs = Array.from({ length: 60 }, (_, i) =>
      i % 10 === 0 ? audit() : transfer(i % 5, (i * 7 + 1) % 5, 1 + (i % 40)),
    );
    await Promise.all(jobs);
    assert.deepEqual(names(await all(kv.list({ prefix: ["audits"] }))), [500]);
    // The log is in the order of the commits: it tells every balance.
    const balances = Array(accounts).fill(100);
    for await (const { value } of kv.list({ prefix: ["log"] })) {
      balances[value.from] -= value.amount;
      balances[value.to] += value.amount;
      assert.ok(balances[value.from] >= 0);
    }
    for (let id = 0; id < accounts; id++) {
      assert.equal((await kv.get(["account", id])).value, balances[id]);
    }
  });

  test("lists choose, leave out and go on as those of kv do, over its own writes", async () => {
    const kv = await fresh();
    for (const n of [1, 2, 3, 4]) await kv.set(["r", n], { n, even: n % 2 === 0 });
    await kv.set(["r", 2, "deep"], { even: true });
    await kv.set(["r", 6], { even: true }, { expireIn: 60_000 });
    await kv.transaction(async (tx) => {
      tx.set(["r", 4], { even: false }).set(["r", 5], { even: true }, { expireIn: 60_000 });
      tx.set(["r", 5, "deep"], { even: true }).set(["r", 7], { soon: new Date() });
      const where = { even: true };
      const even = await all(tx.list({ prefix: ["r"] }, { where, depth: 1 }));
      assert.deepEqual(names(even), [2, 5, 6]);
      assert.deepEqual(even[0], await tx.get(["r", 2]));
      const keys = await all(tx.list({ prefix: ["r"] }, { where, keysOnly: true, reverse: true }));
      assert.deepEqual(names(keys), [6, "deep", 5, "deep", 2]);
      assert.deepEqual(Object.keys(keys[0]), ["key", "versionstamp"]);
      const ends = await all(tx.list({ prefix: ["r"] }, { where, depth: 1, withExpiry: true }));
      assert.deepEqual(
        ends.map(({ expireAt }) => expireAt === null),
        [true, false, false],
      );
      assert.equal(await tx.count({ prefix: ["r"] }, { where }), 5);
      const now = { soon: { $lte: { $now: true, $offset: 1000 } } };
      assert.equal(await tx.count({ prefix: ["r"] }, { where: now }), 1);

      const first = await tx.paginate({ prefix: ["r"], where, limit: 2 });
      assert.deepEqual([names(first.entries), first.hasMore], [[2, "deep"], true]);
      const second = await tx.paginate({ prefix: ["r"], where, cursor: first.cursor });
      assert.deepEqual([names(second.entries), second.cursor], [[5, "deep", 6], null]);
      const list = tx.list({ prefix: ["r"] }, { limit: 2 });
      assert.deepEqual(names(await all(list)), [1, 2]);
      const rest = tx.list({ prefix: ["r"] }, { cursor: list.cursor, limit: 1 });
      assert.deepEqual(names(await all(rest)), ["deep"]);
    });
  });

  for (const [what, options, meanwhile, again] of [
    ["an entry that comes to meet where", { where: { on: true } }, ["r", 2], true],
    ["an entry that where left out", { where: { on: "never" } }, ["r", 2], true],
    ["what is deeper", { depth: 1 }, ["r", 2, "deep"], true],
    ["a value that was not read", { keysOnly: true }, ["r", 2], true],
    ["what is before the cursor", { cursor: "A" }, ["r", 1], false],
    ["what is behind the limit", { where: { on: false }, limit: 2 }, ["r", 3], false],
  ]) {
    test(`a change of ${what} ${again ? "is" : "is not"} a conflict`, async () => {
      const kv = await fresh();
      for (const n of [1, 2, 3]) await kv.set(["r", n], { on: false });
      const page = kv.list({ prefix: ["r"] }, { limit: 1 });
      await all(page);
      const given = options.cursor === undefined ? options : { cursor: page.cursor };
      const { attempts } = await disturbed(
        kv,
        async (tx) => tx.set(["n"], (await all(tx.list({ prefix: ["r"] }, given))).length),
        () => kv.set(meanwhile, { on: true }),
      );
      assert.equal(attempts, again ? 2 : 1);
    });
  }

  test("messages for queues by name go with the commit, or not at all", async () => {
    const kv = await fresh();
    const send = (tx) =>
      tx
        .enqueue("late", { queue: "mail", delay: 60_000 })
        .enqueue(
          { to: "ann" },
          { queue: "mail", priority: 9, deduplicationKey: "ann", backoffSchedule: [] },
        );
    await assert.rejects(
      kv.transaction((tx) => (send(tx), assert.fail("thrown"))),
      /thrown/,
    );
    assert.equal((await kv.queue("mail").stats()).total, 0);
    await kv.transaction((tx) => void send(tx));
    await kv.transaction((tx) => void send(tx));
    const { pending, delayed } = await kv.queue("mail").stats();
    assert.deepEqual([pending, delayed], [1, 2], "one of them was a duplicate");
    const message = await kv.queue("mail").receive();
    assert.deepEqual(message.value, { to: "ann" });
    await message.ack();
  });

  test("arguments", async () => {
    const kv = await fresh();
    const refused = (run, options, words) =>
      assert.rejects(kv.transaction(run, options), (error) => {
        assert.ok(error instanceof TypeError, String(error));
        assert.match(error.message, words);
        return true;
      });
    await refused(undefined, undefined, /kv\.transaction: expected a function/);
    await refused({}, undefined, /kv\.transaction: expected a function/);
    await refused(() => {}, { maxRetry: 1 }, /unknown option 'maxRetry'/);
    await refused(() => {}, 5, /options must be an object/);
    for (const bad of [-1, 1.5, "3", NaN, null]) {
      await refused(() => {}, { maxRetries: bad }, /maxRetries must be/);
    }
    await refused(() => {}, { signal: {} }, /signal must be an AbortSignal/);
    await refused((tx) => tx.get("a"), {}, /expected: array/);
    await refused((tx) => tx.get(), {}, /Invalid range/);
    await refused((tx) => tx.getMany(5), {}, /expected: array/);
    await refused((tx) => tx.set(["a"], () => {}), {}, /could not be cloned/);
    await refused((tx) => tx.set([null], 1), {}, /key part|expected/i);
    await refused((tx) => tx.set([], 1), {}, /key cannot be empty/);
    await refused((tx) => tx.sum(["a"], "1"), {}, /bigint/);
    await refused((tx) => tx.append(["a"], "b"), {}, /array/);
    await refused((tx) => tx.touch(["a"]), {}, /expireIn/);
    await refused((tx) => tx.mutate({ type: "other", key: ["a"] }), {}, /Invalid mutation type/);
    await refused((tx) => tx.list({ prefix: [] }, { curser: "" }), {}, /unknown option 'curser'/);
    await refused((tx) => tx.list({ prefix: [] }, { limit: 0 }), {}, /limit must be/);
    await refused((tx) => tx.list({ prefix: [] }, { reverse: 1 }), {}, /reverse must be/);
    await refused((tx) => tx.list({}), {}, /Selector must specify/);
    await refused((tx) => tx.count({ prefix: 1 }), {}, /array/);
    await refused((tx) => tx.set(["a"], "x").sum(["a"], 1n).get(["a"]), {}, /non-U64/);
  });

  test("tx is of no use after its end", async () => {
    const kv = await fresh();
    let kept;
    await kv.transaction((tx) => void (kept = tx));
    assert.throws(() => kept.set(["a"], 1), /has ended/);
    assert.throws(() => kept.list({ prefix: [] }), /has ended/);
    assert.throws(() => kept.enqueue(1), /has ended/);
    await assert.rejects(kept.get(["a"]), /has ended/);
    await assert.rejects(kept.getMany([["a"]]), /has ended/);
    assert.equal(kept.commit, undefined);
  });

  test("a closed handle", async () => {
    const kv = await fresh();
    await assert.rejects(
      kv.transaction((tx) => {
        tx.set(["a"], 1);
        kv.close();
      }),
      { name: "BadResource" },
    );
    await assert.rejects(
      kv.transaction(() => assert.fail("ran")),
      { name: "BadResource" },
    );
  });

  test("limits name the option that raises them", async () => {
    const kv = await fresh({ limits: { checksMax: 3, checkedRowsMax: 4 } });
    for (let n = 0; n < 5; n++) await kv.set(["r", n], n);
    const reads = async (tx) => {
      for (let n = 0; n < 4; n++) await tx.get(["r", n]);
    };
    await assert.rejects(kv.transaction(reads), /max 3\): 4 given; raise limits\.checksMax/);
    const list = (tx) => all(tx.list({ prefix: ["r"] }));
    await assert.rejects(kv.transaction(list), /max 4\): 5 given; raise limits\.checkedRowsMax/);
  });
});

test("two handles on one file see each other's conflicts", async () => {
  const path = freshPath();
  const [one, two] = [await open(path), await open(path)];
  const add = (kv) =>
    kv.transaction(
      async (tx) => {
        const { value } = await tx.get(["n"]);
        tx.set(["n"], (value ?? 0) + 1);
      },
      { maxRetries: Infinity },
    );
  await Promise.all(Array.from({ length: 40 }, (_, i) => add(i % 2 === 0 ? one : two)));
  assert.equal((await one.get(["n"])).value, 40);
});

test("pauses are random, double, and have a bound", async () => {
  const { createRequire } = await import("node:module");
  const { backoffMs, RETRY_DELAY_DEFAULT } = createRequire(import.meta.url)(
    "../../build/transaction/backoff.js",
  );
  const { initialMs, maxMs } = RETRY_DELAY_DEFAULT;
  assert.equal(backoffMs(1, 0, RETRY_DELAY_DEFAULT), 0);
  assert.equal(backoffMs(1, 0.5, RETRY_DELAY_DEFAULT), initialMs / 2);
  assert.equal(backoffMs(3, 0.5, RETRY_DELAY_DEFAULT), initialMs * 2);
  assert.equal(backoffMs(5000, 0.5, RETRY_DELAY_DEFAULT), maxMs / 2);
  assert.equal(backoffMs(5000, 0.5, { initialMs: 0, maxMs: 100 }), 0);
});

test("a read-only handle runs transactions without writes", async () => {
  const path = freshPath();
  const writer = await open(path);
  const { versionstamp } = await writer.set(["a"], 1);
  const kv = await open(path, { readonly: true });
  const read = await kv.transaction(async (tx) => (await tx.get(["a"])).value);
  assert.deepEqual(read, { ok: true, versionstamp, value: 1 });
  const denied = { name: "KvError", code: "DENIED" };
  await assert.rejects(
    kv.transaction((tx) => tx.set(["a"], 2)),
    denied,
  );
});
