// Duty: what the results of writes say beyond ok and versionstamp.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64 } from "../../index.mjs";
import { freshPath, onEveryKind, open } from "./databases.mjs";

onEveryKind("results", (fresh) => {
  test("a refused commit names every check that failed, in the order of its checks", async () => {
    const kv = await fresh();
    await kv.set(["here"], 1);
    const here = await kv.get(["here"]);
    const taken = { key: ["here"], versionstamp: null };
    const absent = { key: ["absent"], versionstamp: null };
    const commit = (...checks) =>
      kv
        .atomic()
        .check(...checks)
        .set(["a"], 1)
        .commit();
    assert.deepEqual(await commit(here, taken), { ok: false, failed: [1] });
    assert.deepEqual(await commit(taken, here, absent, taken), { ok: false, failed: [0, 3] });
    const late = kv.atomic().set(["a"], 1).check(absent).delete(["b"]).check(taken);
    assert.deepEqual(await late.commit(), { ok: false, failed: [1] });
    assert.equal((await kv.get(["a"])).versionstamp, null);
    assert.deepEqual(Object.keys(await commit(here, absent)), ["ok", "versionstamp"]);
  });

  test("refused and other commits of one moment get their own results", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    const taken = { key: ["a"], versionstamp: null };
    const results = await Promise.all([
      kv.atomic().check(taken).commit(),
      kv.set(["b"], 1),
      kv.touch(["nobody"], { expireIn: 1000 }),
      kv
        .atomic()
        .check({ key: ["x"], versionstamp: null }, taken, taken)
        .commit(),
    ]);
    assert.deepEqual(
      results.map(({ failed }) => failed),
      [[0], undefined, [], [1, 2]],
    );
  });

  test("a commit that is asked tells what it has calculated, in the order of the calls", async () => {
    const kv = await fresh();
    await kv.set(["u64"], new KvU64(2n ** 64n - 1n));
    await kv.set(["list"], [1, , 3]);
    const operation = kv
      .atomic()
      .set(["other"], 1)
      .sum(["n"], 1.5)
      .sum(["u64"], 2n)
      .delete(["other"])
      .max(["n"], 7)
      .append(["list"], ["a", "b"])
      .touch(["n"], { expireIn: 60_000 })
      .sum(["big"], 10n ** 30n)
      .min(["n"], -1)
      .prepend(["list"], ["c"])
      .mutate({ type: "sum", key: ["deno"], value: new KvU64(4n) })
      .sum(["u64"], 50n, { max: 9n, clamp: true });
    const result = await operation.commit({ values: true });
    assert.deepEqual(Object.keys(result), ["ok", "versionstamp", "values"]);
    assert.deepEqual(result.values, [
      1.5,
      new KvU64(1n),
      7,
      5,
      10n ** 30n,
      -1,
      6,
      new KvU64(4n),
      new KvU64(9n),
    ]);
    assert.deepEqual(Object.keys(await operation.commit({ values: false })), [
      "ok",
      "versionstamp",
    ]);
    assert.deepEqual(Object.keys(await operation.commit({})), ["ok", "versionstamp"]);
    assert.deepEqual((await kv.atomic().set(["a"], 1).commit({ values: true })).values, []);
    const refused = kv
      .atomic()
      .check({ key: ["a"], versionstamp: null })
      .sum(["n"], 1);
    assert.deepEqual(await refused.commit({ values: true }), { ok: false, failed: [0] });
    await assert.rejects(kv.atomic().sum(["list"], 1).commit({ values: true }), TypeError);
    await assert.rejects(kv.atomic().commit({ values: 1 }), /values must be a boolean/);
    await assert.rejects(kv.atomic().commit({ value: true }), /unknown option 'value'/);
  });

  test("each of many counters at once is told its own number, and no number twice", async () => {
    const kv = await fresh();
    const draw = async () => {
      const {
        values: [n],
      } = await kv.atomic().sum(["ticket"], 1).commit({ values: true });
      return n;
    };
    const others = [kv.set(["a"], 1), kv.atomic().set(["b"], kv.uuidv7()).commit()];
    const drawn = await Promise.all(Array.from({ length: 50 }, draw));
    await Promise.all(others);
    assert.deepEqual(
      drawn,
      Array.from({ length: 50 }, (_, i) => i + 1),
    );
  });

  test("an enqueue tells the id that its consumer sees, and whether it was deduplicated", async () => {
    const kv = await fresh();
    const queue = kv.queue("mail");
    const first = await queue.enqueue("a", { deduplicationKey: "key" });
    assert.deepEqual(Object.keys(first), ["ok", "versionstamp", "id", "deduplicated"]);
    assert.equal(first.deduplicated, false);
    const second = await queue.enqueue("b", { deduplicationKey: "key" });
    assert.deepEqual([second.id, second.deduplicated], [first.id, true]);
    assert.ok(second.versionstamp > first.versionstamp);
    const message = await queue.receive();
    assert.equal(message.id, first.id);
    await message.ack();
    const third = await queue.enqueue("c", { deduplicationKey: "key" });
    assert.equal(third.deduplicated, false);
    assert.notEqual(third.id, first.id);
    // With a Blob it is committed later; with a placeholder it has two things to tell.
    const uuid = kv.uuidv7();
    const late = await queue.enqueue({ blob: new Blob(["x"]), uuid });
    assert.ok(BigInt(late.id) > BigInt(third.id));
    assert.match(uuid.uuidIn(late), /^[0-9a-f-]{36}$/);
    const deno = await kv.enqueue("to listenQueue");
    assert.ok(BigInt(deno.id) > BigInt(late.id));
    assert.equal(deno.deduplicated, false);
  });

  test("a commit tells what became of each of its messages", async () => {
    const kv = await fresh();
    const to = (deduplicationKey) => ({ queue: "q", deduplicationKey });
    const operation = kv.atomic().enqueue(1, to("x")).set(["a"], 1).enqueue(2, to("x")).enqueue(3);
    const { messages, values } = await operation.sum(["n"], 5).commit({ values: true });
    assert.deepEqual(
      messages.map(({ deduplicated }) => deduplicated),
      [false, true, false],
    );
    assert.equal(messages[0].id, messages[1].id);
    assert.deepEqual(values, [5]);
    const commits = await Promise.all([
      kv
        .atomic()
        .check({ key: ["a"], versionstamp: null })
        .enqueue(4, to("y"))
        .commit(),
      kv.atomic().enqueue(5, to("y")).commit(),
      kv.set(["b"], 1),
      kv.atomic().enqueue(6, to("y")).enqueue(7, to("z")).commit(),
    ]);
    assert.deepEqual(
      commits.map(({ messages }) => messages?.map(({ deduplicated }) => deduplicated)),
      [undefined, [false], undefined, [true, false]],
    );
    const sent = await kv.transaction((tx) => void tx.enqueue(8, to("t")).enqueue(9, to("t")));
    assert.deepEqual(
      sent.messages.map(({ deduplicated }) => deduplicated),
      [false, true],
    );
  });

  test("reads see unawaited commits that tell", async () => {
    const kv = await fresh();
    const written = kv.atomic().sum(["n"], 1).commit({ values: true });
    const after = kv.set(["n"], 7);
    assert.equal((await kv.get(["n"])).value, 7);
    assert.deepEqual((await written).values, [1]);
    await after;
  });
});

test("in a file in common with Deno its queue has no ids, and named queues have", async () => {
  const kv = await open(freshPath(), { encoding: "v8" });
  const sent = await kv.enqueue(1);
  assert.deepEqual([sent.id, sent.deduplicated], [null, false]);
  const { messages } = await kv.atomic().enqueue(1).enqueue(1, { queue: "q" }).commit();
  assert.deepEqual(
    messages.map(({ id }) => typeof id),
    ["object", "string"],
  );
});
