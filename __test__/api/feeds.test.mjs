// Duty: watch over a selector: what is told, from where on, to slow readers too, and what is refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KvFeedGapError, openKv } from "../../index.mjs";
import { until } from "../kit/time.mjs";
import { seeded } from "../property/random.mjs";
import { all, freshPath, onBucket, onEach, onPostgres, onServed, open } from "./databases.mjs";

/** Reads batches until `count` changes are here. */
async function take(reader, count) {
  const changes = [];
  while (changes.length < count) {
    const { value, done } = await reader.read();
    assert.equal(done, false, "the stream has ended");
    changes.push(...value.changes);
    assert.ok(value.changes.every(({ versionstamp }) => versionstamp <= value.versionstamp));
  }
  return changes;
}

onEach("feeds", feeds);
onServed("feeds", feeds);
onPostgres("feeds", feeds);
onBucket("feeds", feeds);

function feeds(fresh, { elsewhere = false } = {}) {
  test("sets and deletes after the opening are told, with keys, values and stamps", async () => {
    const kv = await fresh();
    await kv.set(["a", "before"], 0);
    const reader = kv.watch({ prefix: ["a"] }).getReader();
    const value = { n: 1n, bytes: new Uint8Array([1]) };
    const first = await kv.set(["a", 1], value);
    await kv.set(["b"], "elsewhere");
    await kv.delete(["a", "before"]);
    const last = await kv.atomic().set(["a", 2], 2).delete(["a", 2]).set(["a", 3], 3).commit();
    const [set, deleted, ...rest] = await take(reader, 4);
    assert.deepEqual(set, { type: "set", key: ["a", 1], value, versionstamp: first.versionstamp });
    const { versionstamp } = deleted;
    assert.deepEqual(deleted, { type: "delete", key: ["a", "before"], value: null, versionstamp });
    rest.sort((a, b) => a.key[1] - b.key[1]);
    assert.deepEqual(
      rest.map(({ type, key, value }) => [type, key[1], value]),
      [
        ["delete", 2, null],
        ["set", 3, 3],
      ],
      "a commit has one change of each key",
    );
    assert.ok(rest.every((change) => change.versionstamp === last.versionstamp));
  });

  test("writes are in it that nobody waited for, and rejected ones are not", async () => {
    const kv = await fresh();
    const reader = kv.watch({ start: ["a"], end: ["b"] }).getReader();
    for (let n = 0; n < 500; n++) kv.set(["a", n % 7], n);
    const lost = kv
      .atomic()
      .check({ key: ["a", 0], versionstamp: null })
      .set(["a"], "lost");
    await lost.commit();
    await assert.rejects(kv.atomic().set(["a"], "x").sum(["a"], 1n).commit(), TypeError);
    await kv.set(["b"], "behind the end");
    await kv.set(["a", "last"], true);
    const changes = await take(reader, 501);
    const values = changes.map(({ value }) => value);
    assert.equal(values.pop(), true);
    const written = Array.from({ length: 500 }, (_, n) => n);
    // Over a network writes of different keys do not wait for each other.
    if (elsewhere) for (const list of [values, written]) list.sort((x, y) => (x % 7) - (y % 7));
    assert.deepEqual(values, written);
    const stamps = changes.map(({ versionstamp }) => versionstamp);
    assert.deepEqual(stamps, [...new Set(stamps)].sort());
  });

  test("initial: the present entries, then what they do not show", async () => {
    const kv = await fresh();
    for (let n = 0; n < 250; n += 50) {
      const operation = kv.atomic();
      for (let i = n; i < n + 50; i++) operation.set(["a", i], i);
      await operation.commit();
    }
    await kv.set(["a", "soon"], 1, { expireIn: 3_600_000 });
    await kv.set(["b"], "behind the end");
    await kv.delete(["a", 7]);
    const reader = kv.watch({ prefix: ["a"] }, { initial: true }).getReader();
    const copy = new Map();
    const stamps = new Map();
    let parts = 0;
    const apply = ({ changes }) => {
      for (const { type, key, value, versionstamp } of changes) {
        const name = `${key[1]}`;
        assert.ok(!(stamps.get(name) >= versionstamp), "shown once, and never an older state");
        stamps.set(name, versionstamp);
        if (type === "set") copy.set(name, value);
        else copy.delete(name);
      }
    };
    let at;
    do {
      at = (await reader.read()).value;
      assert.equal(at.initial, at.changes.length === 100 && parts < 2 ? "more" : "last");
      parts++;
      apply(at);
      const soon = at.changes.find(({ key }) => key[1] === "soon");
      assert.equal(soon?.expireAt instanceof Date, parts === 1, "strings are before numbers");
      // Changes of listed and of unlisted keys, between the parts.
      await kv.set(["a", 0], `new ${parts}`);
      await kv.set(["a", 249], `new ${parts}`);
      await kv.delete(["a", 200 + parts]);
    } while (at.initial === "more");
    assert.equal(parts, 3);
    await kv.set(["a", "end"], true);
    while (!copy.has("end")) apply((await reader.read()).value);
    const now = await all(kv.list({ prefix: ["a"] }));
    assert.deepEqual([...copy].sort(), now.map(({ key, value }) => [`${key[1]}`, value]).sort());
    // The last part is a place to continue from.
    const later = kv.watch({ prefix: ["a"] }, { since: at.versionstamp }).getReader();
    assert.ok((await take(later, 1)).length > 0);
    await Promise.all([reader.cancel(), later.cancel()]);
  });

  test("initial: a stream that is cancelled while its entries are read leaves no feed", async () => {
    const kv = await fresh();
    await kv.set(["a"], 1);
    for (let later = 0; later < 4; later++) {
      const reader = kv.watch({ prefix: [] }, { initial: true }).getReader();
      const first = reader.read();
      for (let i = 0; i < later; i++) await null;
      await reader.cancel();
      await first;
    }
    // It makes the same steps behind them, so they have made theirs.
    const behind = kv.watch({ prefix: [] }, { initial: true }).getReader();
    assert.equal((await behind.read()).value.initial, "last");
    await behind.cancel();
    const isForgotten = async () => (await kv.metrics()).feeds === 0;
    await until(isForgotten, "no feed is left", 10_000);
    await kv.close();
  });

  test("initial: nothing there, wrong options, and the end", async () => {
    const kv = await fresh();
    const ending = new AbortController();
    const options = { initial: true, signal: ending.signal };
    const reader = kv.watch({ prefix: ["none"] }, options).getReader();
    const { value } = await reader.read();
    assert.deepEqual([value.changes, value.initial], [[], "last"]);
    const { versionstamp } = await kv.set(["none", 1], 1);
    assert.equal((await take(reader, 1))[0].versionstamp, versionstamp);
    const waiting = reader.read();
    ending.abort();
    assert.equal((await waiting).done, true);
    assert.equal((await kv.watch({ prefix: [] }, options).getReader().read()).done, true);
    const refused = { name: "TypeError", message: /initial must be a boolean: received 1/ };
    assert.throws(() => kv.watch({ prefix: [] }, { initial: 1 }), refused);
    assert.throws(() => kv.watch({ prefix: [] }, { initial: true, since: versionstamp }), {
      name: "TypeError",
      message: /give one of them/,
    });
    assert.throws(() => kv.watch({}, { initial: true }), TypeError);
    const closing = kv.watch({ prefix: [] }, { initial: true }).getReader();
    kv.close();
    assert.equal((await closing.read()).done, true);
    assert.throws(() => kv.watch({ prefix: [] }, { initial: true }), { name: "BadResource" });
  });

  test("every kind of write is in it", async () => {
    const kv = await fresh();
    for (let n = 0; n < 5; n++) await kv.set(["a", n], { n });
    const reader = kv.watch({ prefix: ["a"] }).getReader();
    await kv.deleteMany({ prefix: ["a"] }, { where: { n: { $gte: 3 } } });
    await kv.deleteMany([
      ["a", 0],
      ["a", "absent"],
    ]);
    await kv.atomic().sum(["a", "sum"], 2n).append(["a", "list"], [1]).commit();
    await kv.touch(["a", 1], { expireIn: 60_000 });
    const id = kv.uuidv7();
    await kv.set(["a", id], id);
    const changes = await take(reader, 6);
    const told = changes.slice(0, 3).map(({ type, key }) => [type, key[1]]);
    assert.deepEqual(told, [
      ["delete", 3],
      ["delete", 4],
      ["delete", 0],
    ]);
    const [list, sum] = changes.slice(3, 5).sort((x, y) => (x.key[1] < y.key[1] ? -1 : 1));
    assert.deepEqual(list.value, [1]);
    assert.equal(sum.value.value, 2n);
    assert.equal(changes[5].key[1], changes[5].value);
  });

  test("a feed goes on after a versionstamp", async () => {
    const kv = await fresh();
    const { versionstamp } = await kv.set(["a", 1], 1);
    await kv.set(["a", 2], 2);
    const reader = kv.watch({ prefix: ["a"] }, { since: versionstamp }).getReader();
    const { value } = await reader.read();
    assert.deepEqual(
      value.changes.map(({ key }) => key[1]),
      [2],
    );
    await kv.delete(["a", 1]);
    await kv.set(["a", 3], 3);
    const again = kv.watch({ prefix: ["a"] }, { since: value.versionstamp }).getReader();
    const changes = await take(again, 2);
    assert.deepEqual(
      changes.map(({ type, key }) => [type, key[1]]),
      [
        ["delete", 1],
        ["set", 3],
      ],
    );
    const upper = kv.watch({ prefix: ["a"] }, { since: value.versionstamp.toUpperCase() });
    assert.equal((await take(upper.getReader(), 2)).length, 2);
  });

  test("a gap is an error of the first read, and of a class of its own", async () => {
    const kv = await fresh();
    const { versionstamp } = await kv.set(["a", 1], 1);
    await kv.delete(["a", 1]);
    await kv.set(["a", 2], 2);
    for (const since of [versionstamp, "f".repeat(16) + "0000"]) {
      const reader = kv.watch({ prefix: ["a"] }, { since }).getReader();
      const gap = await reader.read().then(assert.fail, (error) => error);
      assert.ok(gap instanceof KvFeedGapError, String(gap));
      assert.equal(gap.code, "FEED_GAP");
      assert.match(gap.message, new RegExp(`from ${since}.*read the present state`));
      await assert.rejects(reader.closed, KvFeedGapError);
    }
  });

  test("the end of an entry is told when it is swept", async () => {
    const kv = await fresh();
    const reader = kv.watch({ prefix: ["short"] }).getReader();
    const expireAt = new Date(Date.now() + 50);
    const { versionstamp } = await kv.set(["short", 1], 1, { expireAt });
    const [set, { versionstamp: last, ...end }] = await take(reader, 2);
    assert.deepEqual(set, { type: "set", key: ["short", 1], value: 1, versionstamp, expireAt });
    assert.deepEqual(end, { type: "delete", key: ["short", 1], value: null, expired: true });
    assert.ok(last > versionstamp);
  });

  test("a set has its entry's expiry, a deletion is not expired, and a new expiry is not told", async () => {
    const kv = await fresh();
    const reader = kv.watch({ prefix: ["a"] }).getReader();
    const [soon, later] = [60_000, 120_000].map((ms) => new Date(Date.now() + ms));
    await kv.set(["a", 1], 1, { expireAt: soon });
    await kv.touch(["a", 1], { expireAt: later });
    await kv.atomic().sum(["a", 1], 1).commit();
    await kv.persist(["a", 1]);
    await kv.atomic().sum(["a", 1], 1).commit();
    await kv.delete(["a", 1]);
    const changes = await take(reader, 4);
    assert.deepEqual(
      changes.map(({ key, versionstamp, ...rest }) => rest),
      [
        { type: "set", value: 1, expireAt: soon },
        { type: "set", value: 2, expireAt: later },
        { type: "set", value: 3 },
        { type: "delete", value: null },
      ],
    );
  });

  test("replayed on an empty map, every feed gives what a list gives", () =>
    seeded("feeds", async (random) => {
      const kv = await fresh();
      const key = () => random.list(random.int(1, 3), () => random.pick(["a", "b", 1, 2n, true]));
      const selectors = random.list(6, () => {
        const prefix = key().slice(0, random.int(0, 2));
        return { prefix };
      });
      const followers = selectors.map((selector) => follow(kv, selector));
      for (let step = 0; step < 300; step++) {
        const op = kv.atomic();
        for (let n = random.int(0, 4); n >= 0; n--) {
          if (random.chance(0.3)) op.delete(key());
          else op.set(key(), { step, n });
        }
        const done = op.commit();
        if (random.chance(0.2)) await done;
      }
      const { versionstamp } = await kv.set(["end"], 1);
      for (const [i, follower] of followers.entries()) {
        // One that sees nothing of the end is compared by what it has seen up to there.
        const seen = await follower.upTo(versionstamp);
        const listed = await all(kv.list(selectors[i]));
        const entry = ({ key, value, versionstamp }) => [key, value, versionstamp];
        assert.deepEqual([...seen.values()].map(entry), listed.map(entry));
      }
    }));

  test("close() ends it, cancel() too, and both leave the handle usable", async () => {
    const kv = await fresh();
    const [closed, cancelled] = [0, 1].map(() => kv.watch({ prefix: ["a"] }).getReader());
    const waiting = cancelled.read();
    await cancelled.cancel();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    await kv.set(["a", 1], 1);
    assert.equal((await closed.read()).value.changes.length, 1);
    const last = closed.read();
    await kv.close();
    assert.deepEqual(await last, { done: true, value: undefined });
  });

  test("a reader that comes late finds everything, in batches of bounded size", async () => {
    const kv = await fresh();
    const reader = kv.watch({ prefix: ["a"] }).getReader();
    for (let n = 0; n < 50; n++) {
      const op = kv.atomic();
      for (let i = 0; i < 100; i++) op.set(["a", i], n);
      await op.commit();
    }
    const sizes = [];
    for (let left = 5000; left > 0; left -= sizes.at(-1)) {
      const { value } = await reader.read();
      sizes.push(value.changes.length);
    }
    assert.ok(
      sizes.every((size) => size <= 1000),
      sizes.join(" "),
    );
  });
}

/** Replays a feed on a map that is kept in the order of the keys. */
function follow(kv, selector) {
  const reader = kv.watch(selector).getReader();
  const encoded = new Map();
  return {
    async upTo(end) {
      const marker = [...(selector.prefix ?? []), "marker"];
      // Others' markers may be of the same name.
      const { versionstamp: ours } = await kv.set(marker, 0);
      assert.ok(ours > end);
      for (let found = false; !found; ) {
        const { value } = await reader.read();
        for (const change of value.changes) {
          const name = change.key.map((part) => `${typeof part}:${part}`).join("/");
          const last = encoded.get(name)?.versionstamp ?? "";
          assert.ok(change.versionstamp > last, "the changes of a key go forward");
          encoded.set(name, change);
          found ||= change.versionstamp >= ours;
        }
      }
      await kv.delete(marker);
      const alive = [...encoded].filter(([name, change]) => {
        return change.type === "set" && name !== marker.map((p) => `${typeof p}:${p}`).join("/");
      });
      const listed = await all(kv.list(selector));
      const order = listed.map(({ key }) => key.map((p) => `${typeof p}:${p}`).join("/"));
      alive.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
      return new Map(alive);
    },
  };
}

describe("feeds: what is refused", () => {
  const wrong = {
    "no selector": [{}, undefined, /Selector must specify/],
    "a misspelt bound": [{ prefix: [], ende: [] }, undefined, /'ende': did you mean 'end'/],
    "a key that is none": [{ prefix: "ab", start: 1 }, undefined, /array/],
    "a part that is none": [{ prefix: [{}] }, undefined, /./],
    "a bound that is too long": [{ prefix: ["x".repeat(2050)] }, undefined, /Key too large/],
    "an unknown option": [{ prefix: [] }, { raw: true }, /unknown option 'raw': known are since/],
    "options that are none": [{ prefix: [] }, 5, /options must be an object/],
    "since, a number": [{ prefix: [] }, { since: 1 }, /expected: string, got: number/],
    "since, too short": [
      { prefix: [] },
      { since: "12" },
      /since must be a versionstamp.*the string "12"/,
    ],
    "since, not hexadecimal": [{ prefix: [] }, { since: "z".repeat(20) }, /hexadecimal/],
  };
  for (const [name, [selector, options, message]] of Object.entries(wrong)) {
    test(name, async () => {
      const kv = await open(":memory:");
      const refused = (error) => error instanceof TypeError && message.test(error.message);
      assert.throws(() => kv.watch(selector, options), refused);
    });
  }

  test("a closed handle", async () => {
    const kv = await openKv(":memory:");
    await kv.close();
    assert.throws(() => kv.watch({ prefix: [] }), { name: "BadResource" });
  });

  test("a read-only handle, until a writing one has opened a feed", async () => {
    const path = freshPath();
    const kv = await open(path);
    const readonly = await open(path, { readonly: true });
    const early = readonly.watch({ prefix: [] }).getReader();
    await assert.rejects(early.read(), { name: "KvError", code: "DENIED" });
    const ours = kv.watch({ prefix: [] }).getReader();
    await kv.set(["a"], 0);
    await ours.read();
    const reader = readonly.watch({ prefix: [] }).getReader();
    const waiting = reader.read();
    let told;
    waiting.then(({ value }) => (told = value.changes[0].value));
    // The position of a read-only feed is taken by a read, and nothing tells when: there are commits until then.
    await readonly.get(["a"]);
    let written = 0;
    const isTold = async () => {
      await kv.set(["a"], ++written);
      return told !== undefined;
    };
    await until(isTold, "the read-only feed tells of a commit");
    assert.ok(0 < told && told <= written, `${told} of ${written}`);
  });
});
