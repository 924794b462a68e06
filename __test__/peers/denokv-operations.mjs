// Duty: what our client does with a server that is not ours, beyond values: every operation that KV
// Connect has. Where denokv differs from our server, both are written down here.

import assert from "node:assert/strict";
import { KvU64, openKv } from "../../index.mjs";

/** Runs all of them; answers what failed. */
export async function operations(url, accessToken, which) {
  const kv = await openKv(url, { accessToken });
  const failures = [];
  for (const [name, run] of Object.entries(cases)) {
    try {
      await run(kv, which);
      console.log(`ok ${name}`);
    } catch (error) {
      failures.push(`${name}: ${error.stack}`);
    }
  }
  await kv.close();
  return failures;
}

const cases = {
  async "set, get, getMany, delete"(kv) {
    const { versionstamp } = await kv.set(["o", "a"], 1);
    assert.deepEqual(await kv.get(["o", "a"]), { key: ["o", "a"], value: 1, versionstamp });
    const many = await kv.getMany(Array.from({ length: 10 }, (_, n) => ["o", n === 3 ? "a" : n]));
    assert.deepEqual(
      many.map(({ value }) => value),
      many.map((_, n) => (n === 3 ? 1 : null)),
    );
    await kv.delete(["o", "a"]);
    assert.equal((await kv.get(["o", "a"], { consistency: "eventual" })).versionstamp, null);
  },

  async "every kind of key part"(kv) {
    const parts = [new Uint8Array([0, 255]), "text\u0000é", -1.5, 7, -(2n ** 70n), 5n, false, true];
    for (const part of parts) await kv.set(["parts", part], String(part));
    const found = await all(kv.list({ prefix: ["parts"] }));
    assert.deepEqual(
      found.map(({ key }) => key[1]),
      [parts[0], parts[1], -(2n ** 70n), 5n, -1.5, 7, false, true],
    );
  },

  async "lists of many pages, both ways, and cursors"(kv) {
    for (let n = 0; n < 700; n += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, m) => kv.set(["l", n + m], n + m)));
    }
    const numbers = Array.from({ length: 700 }, (_, n) => n);
    const values = async (list) => (await all(list)).map(({ value }) => value);
    assert.deepEqual(await values(kv.list({ prefix: ["l"] })), numbers);
    const reverse = { reverse: true, batchSize: 33 };
    assert.deepEqual(await values(kv.list({ prefix: ["l"] }, reverse)), numbers.toReversed());
    const first = kv.list({ prefix: ["l"] }, { limit: 10 });
    await values(first);
    const cursor = first.cursor;
    assert.deepEqual(await values(kv.list({ prefix: ["l"] }, { cursor, limit: 2 })), [10, 11]);
    assert.equal(await kv.count({ prefix: ["l"] }, { where: { $lt: 5 } }).catch((e) => e.code), 5);
  },

  async checks(kv) {
    const { versionstamp } = await kv.set(["c"], 1);
    const absent = { key: ["c"], versionstamp: null };
    const refused = await kv.atomic().check(absent).set(["c"], 2).commit();
    assert.deepEqual(refused, { ok: false, failed: [0] });
    const { ok } = await kv
      .atomic()
      .check({ key: ["c"], versionstamp })
      .set(["c"], 3)
      .commit();
    assert.equal(ok, true);
    assert.equal((await kv.get(["c"])).value, 3);
  },

  async "sums of 64 bits, round the end"(kv) {
    await kv.set(["sum"], new KvU64(2n ** 64n - 1n));
    await kv.atomic().sum(["sum"], 3n).commit();
    assert.equal((await kv.get(["sum"])).value.value, 2n);
    await kv.atomic().max(["sum"], 9n).min(["sum"], 5n).commit();
    assert.equal((await kv.get(["sum"])).value.value, 5n);
  },

  async "sums of numbers"(kv) {
    await kv.set(["number"], 1);
    await kv.atomic().sum(["number"], 1.5).commit();
    assert.equal((await kv.get(["number"])).value, 2.5);
  },

  async "versionstamped keys"(kv) {
    const { versionstamp } = await kv
      .atomic()
      .set(["v", kv.commitVersionstamp()], "stamped")
      .commit();
    assert.deepEqual(await kv.get(["v", versionstamp]), {
      key: ["v", versionstamp],
      value: "stamped",
      versionstamp,
    });
  },

  async ends(kv) {
    await kv.set(["ends"], 1, { expireIn: 3_600_000 });
    assert.equal((await kv.get(["ends"])).value, 1);
  },

  async "an error of the server is a TypeError in its words"(kv) {
    await kv.set(["text"], "text");
    await assert.rejects(kv.atomic().sum(["text"], 1n).commit(), TypeError);
  },

  async "a commit that fails: denokv keeps what came before the fault"(kv, which) {
    await kv.set(["text"], "text");
    const failing = kv.atomic().set(["half"], 1).sum(["text"], 1n).commit();
    await assert.rejects(failing, TypeError);
    assert.equal((await kv.get(["half"])).value, which === "denokv" ? 1 : null);
  },

  async "more than ten checks: denokv takes no more"(kv, which) {
    let many = kv.atomic();
    for (let n = 0; n < 11; n++) many = many.check({ key: ["none", n], versionstamp: null });
    if (which === "denokv") await assert.rejects(many.commit(), /Too many checks/);
    else assert.equal((await many.commit()).ok, true);
  },

  async "a transaction that only reads compares what it has read"(kv) {
    await kv.set(["read", 1], "before");
    const { value } = await kv.transaction(async (tx) => [
      (await tx.get(["read", 1])).value,
      (await tx.get(["read", 2])).value,
    ]);
    assert.deepEqual(value, ["before", null]);
    let runs = 0;
    const later = await kv.transaction(async (tx) => {
      runs++;
      const { value } = await tx.get(["read", 1]);
      if (runs === 1) await kv.set(["read", 1], "after");
      return value;
    });
    assert.deepEqual([runs, later.value], [2, "after"]);
  },

  async "messages are taken"(kv) {
    assert.equal((await kv.enqueue("a message", { delay: 1000 })).ok, true);
    const options = { keysIfUndelivered: [["dead"]], backoffSchedule: [10, 20] };
    assert.equal((await kv.enqueue("another", options)).ok, true);
  },

  async watches(kv) {
    const reader = kv.watch([["w"], ["c"]]).getReader();
    const [absent, present] = (await reader.read()).value;
    assert.deepEqual([absent.value, present.value], [null, 3]);
    await kv.set(["w"], "news");
    assert.equal((await reader.read()).value[0].value, "news");
    await reader.cancel();
  },

  async "what the server lacks is refused by name"(kv, which) {
    if (which !== "denokv") return;
    await assert.rejects(kv.queue("mail").enqueue(1), { code: "UNSUPPORTED" });
    await assert.rejects(kv.ttl(["a"]), { code: "UNSUPPORTED" });
    await assert.rejects(kv.deleteMany({ prefix: ["a"] }), { code: "UNSUPPORTED" });
  },
};

async function all(list) {
  const found = [];
  for await (const entry of list) found.push(entry);
  return found;
}
