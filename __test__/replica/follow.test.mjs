// Duty: a replica follows its server: the copy, the changes, a restart, and who answers which read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { admin } from "../kit/cluster.mjs";
import { freshPaths, newFolder } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { all } from "./entries.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("replica");
const eventual = { consistency: "eventual" };

/** A server with some entries, a link to it, and a handle on the server itself. */
async function started(options = {}) {
  const server = await startServer({ path: fresh(), accessToken, ...options });
  const link = await linkTo(server.url);
  const kv = await open(server.url, { accessToken });
  for (let n = 0; n < 50; n++) await kv.set(["before", n], { n, text: "x".repeat(n) });
  return { server, link, kv };
}

async function follow(link, options) {
  const kv = await open(link.url, { accessToken, timeout: 2000, replica: ":memory:", ...options });
  await kv.replica.ready();
  return kv;
}

test("a replica has what its server has, and goes on without it", async () => {
  const { link, kv } = await started();
  const near = await follow(link);
  const entries = await all(kv);
  assert.equal(entries.length, 50);
  assert.deepEqual(await all(near, eventual), entries);
  const { versionstamp } = await kv.set(["after"], 1);
  await near.replica.reached(versionstamp);
  assert.equal((await near.get(["after"], eventual)).versionstamp, versionstamp);
  const status = await near.replica.status();
  assert.deepEqual(
    { ...status, lag: 0 },
    {
      state: "following",
      version: versionstamp,
      lag: 0,
      ready: true,
      copies: 1,
      copiedBecause: "the replica is new",
      error: null,
    },
  );
  await link.refuse();
  assert.equal((await near.get(["after"], eventual)).value, 1);
  assert.equal(near.getSync(["after"], eventual).value, 1);
  assert.equal((await near.getMany([["after"], ["before", 3]], eventual))[1].value.n, 3);
  assert.equal((await all(near, eventual)).length, 51);
  await assert.rejects(near.get(["after"]), { code: "UNAVAILABLE" });
  await assert.rejects(near.set(["after"], 2), { code: "UNAVAILABLE" });
  const { state, error } = await near.replica.status();
  assert.equal(state, "disconnected");
  assert.equal(error.code, "UNAVAILABLE");
  await kv.set(["after"], 3);
  await link.accept();
  assert.equal((await near.get(["after"])).value, 3);
  const last = await kv.set(["after"], 4);
  await near.replica.reached(last.versionstamp);
  assert.equal((await near.get(["after"], eventual)).value, 4);
  assert.equal((await near.replica.status()).copies, 1);
});

test("a handle sees its own writes", async () => {
  const { link } = await started();
  const near = await follow(link, { consistency: "eventual" });
  for (let n = 0; n < 200; n++) {
    const { versionstamp } = await near.set(["own"], n);
    const entry = await near.get(["own"]);
    assert.deepEqual([entry.value, entry.versionstamp], [n, versionstamp]);
    assert.equal(near.getSync(["own"]).value, n);
  }
  await near.atomic().set(["a"], 1).set(["b"], 2).commit();
  assert.deepEqual(
    (await near.getMany([["a"], ["b"]])).map(({ value }) => value),
    [1, 2],
  );
  assert.equal(await near.count({ prefix: ["before"] }), 50);
  const { ok } = await near.transaction(async (tx) => {
    const { value } = await tx.get(["own"]);
    tx.set(["own"], value + 1);
  });
  assert.equal(ok, true);
  assert.equal((await near.get(["own"])).value, 200);
});

// A watch that the replica served began with its state, which could be the one before the handle's own write;
// a feed told of a write that was made before it was opened.
test("watches and feeds begin after what the handle has seen, and own writes follow in order", async () => {
  const { link } = await started();
  const near = await follow(link);
  const key = ["own"];
  const running = near.watch([key]).getReader();
  for (let n = 0; n < 50; n++) {
    await near.set(key, n);
    const watch = near.watch([key]).getReader();
    assert.equal((await watch.read()).value[0].value, n, "a new watch");
    assert.equal((await running.read()).value[0].value, n, "a running watch");
    await watch.cancel();
    await near.set(["fed"], n);
    const feed = near.watch({ prefix: [] }).getReader();
    await near.set(["fed"], n + 1);
    const { changes } = (await feed.read()).value;
    assert.deepEqual(
      changes.map(({ key, value }) => [key, value]),
      [[["fed"], n + 1]],
      "a new feed",
    );
    await feed.cancel();
  }
  await running.cancel();
});

// Answers without a versionstamp told a handle nothing: an eventual read after a strong one still had what
// the strong one had seen deleted.
test("no eventual read is older than an answer of the server, whatever the answer has", async () => {
  const { link, kv } = await started();
  const near = await follow(link);
  const prefix = ["seen"];
  const key = ["seen", 1];
  const strong = { consistency: "strong" };
  const answers = {
    get: async () => (await near.get(key, strong)).value === null,
    getMany: async () => (await near.getMany([key, ["none"]], strong))[0].value === null,
    list: async () => (await near.list({ prefix }, strong).next()).done,
    "filtered list": async () =>
      (await near.list({ prefix }, { ...strong, where: { n: { $gte: 0 } } }).next()).done,
    count: async () => (await near.count({ prefix })) === 0,
    ttl: async () => (await near.ttl(key)) === null,
    "failed check": async () => {
      const versionstamp = "0".repeat(20);
      return !(await near.atomic().check({ key, versionstamp }).set(["other"], 1).commit()).ok;
    },
    deleteMany: async () => (await near.deleteMany({ prefix })).count === 0,
  };
  for (const [name, sees] of Object.entries(answers)) {
    for (let n = 0; n < 15; n++) {
      const { versionstamp } = await kv.set(key, { n });
      await near.replica.reached(versionstamp);
      await kv.delete(key);
      assert.ok(await sees(), `${name} does not see the deletion`);
      assert.equal((await near.get(key, eventual)).value, null, `after ${name}`);
    }
  }
});

test("a file of a replica goes on where it was", async () => {
  const { link, kv } = await started();
  const replica = fresh();
  const first = await openKv(link.url, { accessToken, replica });
  await first.replica.ready();
  await first.close();
  await kv.set(["while", "closed"], 1);
  await kv.delete(["before", 7]);
  const again = await openKv(link.url, { accessToken, replica });
  const { versionstamp } = await kv.set(["now"], 2);
  await again.replica.reached(versionstamp);
  assert.deepEqual(await all(again, eventual), await all(kv));
  assert.equal((await again.replica.status()).copies, 0);
  await again.close();
  const reader = await openKv(replica, { readonly: true });
  assert.deepEqual(await all(reader), await all(kv));
  await reader.close();
});

test("two handles of a process share the replica of a file", async () => {
  const { link } = await started();
  const replica = fresh();
  const one = await follow(link, { replica });
  const two = await follow(link, { replica });
  const { versionstamp } = await one.set(["shared"], 1);
  await two.replica.reached(versionstamp);
  assert.equal(two.getSync(["shared"], eventual).value, 1);
  assert.equal((await two.replica.status()).copies, 1);
  await assert.rejects(open(link.url, { accessToken, replica, prefixes: [["a"]] }), {
    name: "TypeError",
    message: /other prefixes/,
  });
});

test("expiries, deletions and large values are followed", async () => {
  const { link, kv } = await started();
  const near = await follow(link);
  await kv.set(["short"], 1, { expireIn: 60_000 });
  await kv.set(["big"], new Uint8Array(60_000).fill(7));
  await kv.touch(["before", 1], { expireIn: 90_000 });
  const { versionstamp } = await kv.deleteMany({ prefix: ["before"] });
  await near.replica.reached(versionstamp);
  const withExpiry = { withExpiry: true, ...eventual };
  assert.deepEqual(await all(near, withExpiry), await all(kv, { withExpiry: true }));
  assert.equal((await all(near, eventual)).length, 2);
});

test("watches and feeds are served by the replica", async () => {
  const { link, kv } = await started();
  const near = await follow(link);
  const watch = near.watch([["watched"]]).getReader();
  assert.equal((await watch.read()).value[0].value, null);
  const feed = near.watch({ prefix: ["fed"] }).getReader();
  const first = feed.read();
  await near.replica.reached((await kv.set(["other"], 0)).versionstamp);
  await kv.set(["watched"], "new");
  assert.equal((await watch.read()).value[0].value, "new");
  const seen = [];
  for (let n = 0; n < 100; n++) await kv.set(["fed", n % 7], n);
  for (let next = first; seen.length < 100; next = feed.read()) {
    seen.push(...(await next).value.changes.map(({ value }) => value));
  }
  assert.deepEqual(seen, [...Array(100).keys()]);
  await link.refuse();
  const offline = near.watch([["watched"]]).getReader();
  assert.equal((await offline.read()).value[0].value, "new");
  await Promise.all([watch.cancel(), feed.cancel(), offline.cancel()]);
});

// The log of a new copy begins with it: the feed failed with a gap, also that of a watch with initial which was
// reading its entries when the copy was complete.
test("a feed that goes on behind the beginning of the copy is served by the server", async () => {
  const { link, kv } = await started();
  const selector = { prefix: ["fed"] };
  const first = kv.watch(selector).getReader();
  const opened = first.read();
  const { versionstamp: since } = await kv.set(["fed", "seen"], 0);
  await opened;
  await first.cancel();
  await kv.set(["fed", "new"], 1);
  await kv.delete(["fed", "seen"]);
  const near = await follow(link);
  const feed = near.watch(selector, { since }).getReader();
  const { changes } = (await feed.read()).value;
  assert.deepEqual(
    changes.map(({ type, key }) => [type, key[1]]),
    [
      ["set", "new"],
      ["delete", "seen"],
    ],
  );
  await feed.cancel();
});

test("the full-text indexes of the server are built on the replica", async () => {
  const { link, kv } = await started();
  await kv.set(["notes", 1], { text: "the quick fox" });
  await kv.createIndex({ name: "notes", prefix: ["notes"], fields: ["text"] });
  const near = await follow(link, { consistency: "eventual" });
  await near.set(["notes", 2], { text: "another fox" });
  for (let hits = 0; hits < 2; ) {
    const found = await near.search(["notes"], "fox").catch(() => ({ entries: [] }));
    hits = found.entries.length;
  }
  await link.refuse();
  const { entries } = await near.search(["notes"], "another");
  assert.deepEqual(
    entries.map(({ key }) => key),
    [["notes", 2]],
  );
});

test("a replica of prefixes has no other keys, and asks the server for those", async () => {
  const { link, kv } = await started();
  await kv.set(["public", 1], "p");
  await kv.set(["secret", 1], "s");
  const replica = fresh();
  const near = await follow(link, { replica, prefixes: [["public"]], consistency: "eventual" });
  assert.equal((await near.get(["secret", 1])).value, "s");
  assert.equal(
    (
      await near.getMany([
        ["public", 1],
        ["secret", 1],
      ])
    )[1].value,
    "s",
  );
  await near.set(["public", 2], "q");
  await near.set(["secret", 2], "t");
  assert.equal((await near.get(["secret", 2])).value, "t");
  assert.equal((await near.get(["public", 2])).value, "q");
  await link.refuse();
  assert.equal(near.getSync(["public", 2]).value, "q");
  assert.equal(await near.count({ prefix: ["public"] }), 2);
  await assert.rejects(near.get(["secret", 1]), { code: "UNAVAILABLE" });
  await near.close();
  const reader = await openKv(replica, { readonly: true });
  assert.deepEqual(
    (await all(reader)).map(({ key }) => key),
    [
      ["public", 1],
      ["public", 2],
    ],
  );
  await reader.close();
});

// A replica took commits of keys that are not in its prefixes for missing ones: it failed, or was copied.
test("a partial replica passes commits of other keys, also over a reconnect", async () => {
  for (const replica of [":memory:", fresh()]) {
    const { link, kv } = await started();
    await kv.set(["public", 1], 0);
    let near = await follow(link, { replica, prefixes: [["public"]] });
    const write = async (key, value) => {
      const { versionstamp } = await kv.set(key, value);
      return versionstamp;
    };
    for (let round = 1; round <= 3; round++) {
      for (let n = 0; n < 5; n++) await write(["secret", n], round);
      await near.replica.reached(await write(["public", 1], round));
      assert.equal(near.getSync(["public", 1], eventual).value, round);
      await near.replica.reached(await write(["secret", 9], round));
      await link.refuse();
      await write(["secret", 8], round);
      await write(["public", 2], round);
      await write(["secret", 8], -round);
      await link.accept();
      await near.replica.reached(await write(["public", 3], round));
    }
    assert.equal((await near.replica.status()).copies, 1);
    assert.deepEqual(await all(near, eventual, ["public"]), await all(kv, {}, ["public"]));
    await near.close();
    if (replica === ":memory:") continue;
    await write(["secret", 1], "later");
    near = await follow(link, { replica, prefixes: [["public"]] });
    await near.replica.reached(await write(["public", 4], "last"));
    assert.equal((await near.replica.status()).copies, 0);
    await near.close();
  }
});

test("maxLag sends a read to the server, or refuses it", async () => {
  const { link, kv } = await started();
  const near = await follow(link, { consistency: "eventual", maxLag: 400 });
  for (let lag = null; lag === null; ) ({ lag } = await near.replica.status());
  assert.equal((await near.get(["before", 1])).value.n, 1);
  await link.refuse();
  let refused;
  while (refused === undefined) {
    await near.get(["before", 1]).catch((error) => void (refused = error));
  }
  assert.equal(refused.code, "UNAVAILABLE");
  await link.accept();
  const { versionstamp } = await kv.set(["before", 1], "changed");
  await near.replica.reached(versionstamp);
  assert.equal((await near.get(["before", 1])).value, "changed");
});

test("options of a replica are checked", async () => {
  const { link, server } = await started();
  const opening = (options) => openKv(link.url, { accessToken, ...options });
  for (const [options, message] of [
    [{ replica: 7 }, /replica must be the path of a file/],
    [{ replica: server.url }, /received a URL/],
    [{ prefixes: [["a"]] }, /pass the option replica too/],
    [{ maxLag: 5 }, /pass the option replica too/],
    [{ replica: ":memory:", maxLag: -1 }, /maxLag must be a duration/],
    [{ replica: ":memory:", prefixes: [] }, /prefixes must be an array of 1 to 100 keys/],
    [{ replica: ":memory:", prefixes: [[]] }, /at least one part/],
    [{ replica: ":memory:", consistency: "now" }, /unknown variant/],
  ]) {
    await assert.rejects(opening(options), { name: "TypeError", message });
  }
  await assert.rejects(openKv(":memory:", { replica: ":memory:" }), { name: "TypeError" });
  const near = await follow(link);
  assert.throws(() => near.getSync(["a"]), { code: "UNSUPPORTED" });
  await assert.rejects(near.replica.reached("7"), { name: "TypeError" });
  await assert.rejects(near.replica.ready({ sginal: 1 }), /unknown option 'sginal'/);
  const waiting = near.replica.reached("f".repeat(20), { signal: AbortSignal.timeout(20) });
  await assert.rejects(waiting, { name: "TimeoutError" });
  const plain = await open(link.url, { accessToken });
  assert.equal(plain.replica, null);
  const { replica } = near;
  await near.close();
  for (const call of [
    () => replica.status(),
    () => replica.ready(),
    () => replica.reached("0".repeat(20)),
  ]) {
    await assert.rejects(call(), { code: "CLOSED" });
  }
});

// They went on waiting for a replica that gets nothing any more, where those without a replica are refused.
test("watches and feeds of a replica that has failed reject with its error", async () => {
  const adminToken = "the-admin-token-of-all";
  const server = await startServer({ path: newFolder("replica"), adminToken });
  const { token } = await admin(server, "POST", "", { name: "shop" });
  const second = await admin(server, "POST", "/shop/tokens", { rights: "read" });
  const url = `${server.url}/shop`;
  const kv = await open(url, { accessToken: token });
  await kv.set(["f", 1], 0);
  const near = await open(url, { accessToken: second.token, replica: ":memory:" });
  await near.replica.ready();
  const [watch, feed] = [
    near.watch([["f", 1]]),
    near.watch({ prefix: ["f"] }, { initial: true }),
  ].map((stream) => stream[Symbol.asyncIterator]());
  assert.equal((await watch.next()).value[0].value, 0);
  assert.equal((await feed.next()).value.changes[0].value, 0);
  const waiting = [untilItEnds(watch), untilItEnds(feed)];
  await admin(server, "DELETE", `/shop/tokens/${second.id}`);
  for (const end of waiting) await assert.rejects(end, { code: "DENIED" });
  const { state, error } = await near.replica.status();
  assert.deepEqual([state, error.code], ["failed", "DENIED"]);
});

async function untilItEnds(stream) {
  for (;;) if ((await stream.next()).done) return;
}
