// Duty: program order on one handle: a call that was made earlier, awaited or not, is seen by later
// reads and comes before later writes of the same keys; and it makes no other call wait.
// An outside storage adapter that saves in pieces without awaiting them lost entries here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, onEachAndServed, onEveryKind, spendTurn } from "./databases.mjs";
import { seeded } from "../property/random.mjs";

/** Entries of a deletion that needs several commits. */
const MANY = 5000;
/** Random calls of one run. */
const CALLS = 400;

onEveryKind("program order", (fresh, { elsewhere, onPostgres } = {}) => {
  test("every kind of read sees writes that were not awaited", async () => {
    const kv = await fresh();
    const key = ["k", 1];
    let n = 0;
    /** A write that nobody awaits until its read has answered. */
    const reads = async (read) => {
      const written = kv.set(key, ++n);
      assert.equal(await read(), n, String(read));
      await written;
    };
    for (let round = 0; round < 3; round++) {
      await reads(async () => (await kv.get(key)).value);
      await reads(async () => (await kv.getMany([["no"], key]))[1].value);
      await reads(async () => (await all(kv.list({ prefix: ["k"] })))[0].value);
      await reads(
        async () => (await kv.list({ prefix: [] }, { reverse: true }).next()).value.value,
      );
      await reads(async () => (await kv.paginate({ prefix: ["k"] })).entries[0].value);
      await reads(async () => (await kv.get(key, { withExpiry: true })).value);
      await reads(
        async () => (await all(kv.list({ prefix: ["k"] }, { where: { $eq: n } }))).length * n,
      );
      await reads(async () => (await kv.count({ prefix: ["k"] }, { where: { $eq: n } })) * n);
      await reads(async () => {
        const reader = kv.watch([key]).getReader();
        const {
          value: [entry],
        } = await reader.read();
        await reader.cancel();
        return entry.value;
      });
      await reads(async () => {
        const done = await kv.transaction(async (tx) => (await tx.get(key)).value, {
          maxRetries: 0,
        });
        return done.value;
      });
      await reads(
        async () => (await kv.deleteMany({ prefix: ["k"] }, { where: { $eq: n } })).count * n,
      );
    }
  });

  test("ends of entries, counts of everything and messages too", async () => {
    const kv = await fresh();
    const set = kv.set(["ends"], 1, { expireIn: 60_000 });
    assert.notEqual(await kv.ttl(["ends"]), null);
    const retimed = kv.persist(["ends"]);
    assert.equal(await kv.ttl(["ends"]), null);
    const others = [kv.set(["a"], 1), kv.set(["b"], 1), kv.delete(["ends"])];
    assert.equal((await kv.stats({ entries: true })).entries, 2);
    const queue = kv.queue("q");
    const sent = [queue.enqueue(1), queue.enqueue(2)];
    assert.equal((await queue.stats()).pending, 2);
    const more = queue.enqueue(3, { priority: 5 });
    assert.equal((await queue.receive()).value, 3);
    await Promise.all([set, retimed, ...others, ...sent, more]);
  });

  test("a list sees keys that the commit completes", async () => {
    const kv = await fresh();
    const written = [
      kv.set(["log", kv.commitVersionstamp()], 1),
      kv.set(["log", kv.uuidv7(), "tail"], 2),
      kv.atomic().set(["log", kv.uuidv7()], 3).commit(),
    ];
    const values = (await all(kv.list({ prefix: ["log"] }))).map(({ value }) => value);
    assert.deepEqual(values.sort(), [1, 2, 3]);
    await Promise.all(written);
  });

  test("mutations with an end of their own are seen, and what stands behind them", async () => {
    const kv = await fresh();
    const end = { expireIn: 60_000 };
    const mutations = [
      (op) => op.sum(["n"], 1, end).set(["behind"], 1),
      (op) => op.sum(["n"], 1, { max: 9, expireAt: Date.now() + 60_000 }).set(["behind"], 2),
      (op) => op.append(["l"], [1], end).set(["behind"], 3),
      (op) =>
        op
          .prepend(["l"], [1], end)
          .touch(["l"], { expireAt: null, ...end })
          .set(["behind"], 4),
    ];
    for (const [at, add] of mutations.entries()) {
      const written = add(kv.atomic()).commit();
      assert.equal((await kv.get(["behind"])).value, at + 1);
      await written;
    }
    const written = kv.atomic().append(["l"], [1], end).sum(["n"], 1, end).commit();
    assert.equal((await kv.get(["l"])).value.length, 3);
    assert.equal((await kv.get(["n"])).value, 3);
    await written;
  });

  test("a write that fails does not fail the read behind it", async () => {
    const kv = await fresh();
    await kv.set(["text"], "text");
    const refused = assert.rejects(kv.atomic().sum(["text"], 1).commit());
    const lost = kv
      .atomic()
      .check({ key: ["text"], versionstamp: null })
      .delete(["text"])
      .commit();
    assert.equal((await kv.get(["text"])).value, "text");
    await refused;
    assert.equal((await lost).ok, false);
  });

  test("a value whose Blob is still being read keeps its place", async () => {
    const kv = await fresh();
    const blob = (text) => new Blob([text]);
    const first = kv.set(["blob"], blob("first"));
    assert.equal(await (await kv.get(["blob"])).value.text(), "first");
    const second = kv.set(["blob"], blob("second"));
    const last = kv.set(["blob"], "last");
    const checked = kv
      .atomic()
      .check({ key: ["blob"], versionstamp: null })
      .set(["lost"], 1)
      .commit();
    const gone = kv.atomic().set(["gone"], blob("gone")).commit();
    const emptied = kv.deleteMany([["gone"]]);
    assert.equal((await kv.get(["blob"])).value, "last");
    await Promise.all([first, second, last, gone]);
    assert.equal((await kv.get(["blob"])).value, "last");
    assert.equal((await emptied).count, 1);
    assert.equal((await checked).ok, false);
    assert.equal((await kv.get(["gone"])).versionstamp, null);
  });

  test("a deletion of many commits deletes nothing that was written after it", async () => {
    const kv = await fresh({ limits: "wide" });
    for (let from = 0; from < MANY; from += 1000) {
      const operation = kv.atomic();
      for (let i = from; i < from + 1000; i++) operation.set(["n", i], 10);
      await operation.commit();
    }
    const deleted = kv.deleteMany({ prefix: ["n"] });
    const written = [
      kv.set(["n", MANY - 1], "new"),
      kv
        .atomic()
        .sum(["n", MANY - 2], 1)
        .commit(),
      kv.set(["beside"], 1),
    ];
    assert.equal((await kv.get(["n", MANY - 3])).value, null);
    const left = await all(kv.list({ prefix: ["n"] }));
    assert.deepEqual(
      left.map(({ value }) => value),
      [1, "new"],
    );
    assert.equal((await deleted).count, MANY);
    await Promise.all(written);
  });

  test("an adapter that saves in pieces without awaiting them reads them back", async () => {
    const kv = await fresh();
    const saving = [];
    const save = (name, text, bytes) => {
      const pieces = Math.ceil(text.length / bytes);
      saving.push(kv.deleteMany({ prefix: ["file", name] }));
      for (let i = 0; i < pieces; i++) {
        saving.push(kv.set(["file", name, i], text.slice(i * bytes, (i + 1) * bytes)));
      }
      saving.push(kv.set(["meta", name], { pieces }));
    };
    const load = async (name) => {
      const { value } = await kv.get(["meta", name]);
      const parts = await all(kv.list({ prefix: ["file", name] }));
      assert.equal(parts.length, value.pieces, name);
      return parts.map((part) => part.value).join("");
    };
    for (let round = 1; round <= 5; round++) {
      const text = `${round}`.repeat(1000 - 150 * round);
      save("a", text, 10);
      save("b", text, 7);
      assert.equal(await load("a"), text);
      assert.equal(await load("b"), text);
    }
    await Promise.all(saving);
  });

  test("only calls that touch the same keys wait", async () => {
    const kv = await fresh();
    await kv.set(["other", 1], 0);
    await new Promise((resolve) => setImmediate(resolve));
    // On a busy machine the contents of the Blobs may be there before a read has ended, but not always.
    for (let round = 1; round <= 50; round++) {
      const waited = await endedBefore(kv, round);
      // The contents of the Blobs arrive while a read over a network is under way.
      if (elsewhere || onPostgres || waited === 0) return;
    }
    assert.fail("in no round did the other calls end before those that wait");
  });

  /** The number of waiting calls that ended before calls of other keys. */
  async function endedBefore(kv, round) {
    // The contents of a Blob are never there at once.
    const slow = ["read", "set", "deleted"].map((name) => kv.set([name, round], new Blob(["s"])));
    let waited = 0;
    const waiting = [
      kv.get(["read", round]).then(({ value }) => value.size),
      kv
        .getMany([
          ["other", 1],
          ["read", round],
        ])
        .then(([, { value }]) => value.size),
      kv.count({ prefix: ["read"] }).then((count) => count - round + 1),
      kv.set(["set", round], 1).then(({ ok }) => Number(ok)),
      kv
        .atomic()
        .check({ key: ["set", round], versionstamp: null })
        .commit()
        .then(({ ok }) => Number(!ok)),
      kv.deleteMany({ prefix: ["deleted"] }).then(({ count }) => count),
    ].map(async (call) => {
      assert.equal(await call, 1);
      waited++;
    });
    assert.equal((await kv.get(["other", 1])).value, 0);
    assert.ok((await all(kv.list({ prefix: ["other"] }))).length >= 1);
    const before = waited;
    assert.equal((await kv.set(["other", 2], 0)).ok, true);
    await Promise.all([...slow, ...waiting]);
    return before;
  }

  test("a flood of writes is seen", async () => {
    const kv = await fresh();
    const flood = Array.from({ length: 3000 }, (_, i) => kv.set(["flood", i], "x".repeat(500)));
    await spendTurn(kv);
    assert.equal((await kv.get(["flood", 1500])).value.length, 500);
    flood.push(kv.set(["flood", 3000], "last"));
    assert.equal(await kv.count({ prefix: ["flood"] }), 3001);
    await Promise.all(flood);
  });

  test(`${CALLS} random calls without await`, () =>
    seeded("program order", async (random) => {
      const run = new Run(await fresh(), random);
      for (let i = 0; i < CALLS; i++) {
        run.step();
        if (random.chance(0.1)) await new Promise((resolve) => setImmediate(resolve));
        if (random.chance(0.02)) await run.settle();
      }
      await run.settle();
    }));
});

/** Calls that nobody awaits, and the states that each key goes through in the order of the calls. */
class Run {
  #kv;
  #random;
  #keys = Array.from({ length: 12 }, (_, i) => [i < 6 ? "p" : "q", i]);
  /** For each key its states: numbers, `"blob"`, or undefined for none. */
  #states = this.#keys.map(() => [undefined]);
  #calls = [];

  constructor(kv, random) {
    this.#kv = kv;
    this.#random = random;
  }

  async settle() {
    await Promise.all(this.#calls);
    this.#calls = [];
    for (const [at, key] of this.#keys.entries()) {
      const { value } = await this.#kv.get(key);
      assert.equal(this.#shown(value), this.#states[at].at(-1), `finally ${key}`);
      this.#states[at] = [this.#states[at].at(-1)];
    }
  }

  step() {
    const kv = this.#kv;
    const random = this.#random;
    const at = random.int(0, this.#keys.length - 1);
    const key = this.#keys[at];
    const n = random.int(1, 99);
    const is = this.#states[at].at(-1);
    const prefix = random.pick(["p", "q"]);
    const below = this.#keys
      .map((key, at) => (key[0] === prefix ? at : -1))
      .filter((at) => at >= 0);
    const kind = random.pick([
      "set",
      "set",
      "delete",
      "sum",
      "check",
      "blob",
      "empty",
      "where",
      "keys",
      "get",
      "get",
      "getMany",
      "list",
      "reverse",
      "count",
    ]);
    const called = {
      set: () => (this.#put(at, n), kv.set(key, n)),
      delete: () => (this.#put(at, undefined), kv.delete(key)),
      sum: () => {
        if (is !== "blob") this.#put(at, (is ?? 0) + n);
        const summed = kv.atomic().sum(key, n).commit();
        return is === "blob" ? assert.rejects(summed) : summed;
      },
      check: async () => {
        if (is === undefined) this.#put(at, n);
        const check = { key, versionstamp: null };
        const { ok } = await kv.atomic().check(check).set(key, n).commit();
        assert.equal(ok, is === undefined, `check of ${key}`);
      },
      blob: () => (this.#put(at, "blob"), kv.set(key, new Blob(["b"]))),
      empty: () => {
        for (const at of below) this.#put(at, undefined);
        return kv.deleteMany({ prefix: [prefix] });
      },
      where: () => {
        const small = (at) =>
          typeof this.#states[at].at(-1) === "number" && this.#states[at].at(-1) < 50;
        for (const at of below) if (small(at)) this.#put(at, undefined);
        return kv.deleteMany({ prefix: [prefix] }, { where: { $lt: 50 } });
      },
      keys: () => (this.#put(at, undefined), kv.deleteMany([key])),
      get: () => this.#reads([at], async () => [(await kv.get(key)).value]),
      getMany: () => {
        const several = below.slice(0, 5);
        const keys = several.map((at) => this.#keys[at]);
        return this.#reads(several, async () => (await kv.getMany(keys)).map(({ value }) => value));
      },
      list: () => this.#reads(below, () => this.#listed(below, prefix, {})),
      reverse: () =>
        this.#reads(below, () => this.#listed(below, prefix, { reverse: true, batchSize: 2 })),
      count: async () => {
        const from = below.map((at) => this.#states[at].length - 1);
        const count = await kv.count({ prefix: [prefix] });
        const may = (at, i, there) =>
          this.#states[at].slice(from[i]).some((s) => (s !== undefined) === there);
        const most = below.filter((at, i) => may(at, i, true)).length;
        const least = below.filter((at, i) => !may(at, i, false)).length;
        assert.ok(count >= least && count <= most, `count ${count}, not ${least} to ${most}`);
      },
    }[kind]();
    this.#calls.push(called);
  }

  #put(at, state) {
    this.#states[at].push(state);
  }

  #shown(value) {
    return value instanceof Blob ? "blob" : (value ?? undefined);
  }

  async #listed(below, prefix, options) {
    const entries = await all(this.#kv.list({ prefix: [prefix] }, options));
    const byKey = new Map(entries.map(({ key, value }) => [String(key), value]));
    return below.map((at) => byKey.get(String(this.#keys[at])));
  }

  /** What is read is a state that the key has at the call, or gets later. */
  async #reads(places, read) {
    const from = places.map((at) => this.#states[at].length - 1);
    const states = places.map((at) => this.#states[at]);
    const values = await read();
    for (const [i, value] of values.entries()) {
      const told = `${this.#keys[places[i]]}: ${value} is none of ${states[i].slice(from[i])}`;
      assert.ok(states[i].slice(from[i]).includes(this.#shown(value)), told);
    }
  }
}

onEachAndServed("program order and searches", (fresh) => {
  test("a search sees writes that were not awaited", async () => {
    const kv = await fresh();
    await kv.createIndex({ prefix: ["doc"], fields: ["text"] });
    const written = [1, 2, 3].map((id) => kv.set(["doc", id], { text: `word ${id}` }));
    assert.equal((await kv.search(["doc"], "word")).entries.length, 3);
    await Promise.all(written);
  });
});
