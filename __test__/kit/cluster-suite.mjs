// Duty: the tests of servers that share their databases, whatever the place of these: one of them leads each database,
// and another takes over.

import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, endpointsOf, metadata } from "./cluster.mjs";
import { open as openHandle } from "./server.mjs";
import { until } from "./time.mjs";

/** A hang guard: another server takes over within seconds, but not on a machine that stands still. */
export const PATIENCE_MS = 60_000;
export const open = (url, options) => openHandle(url, { timeout: PATIENCE_MS, ...options });

/**
 * `pair(options)` starts two servers with a database `shop`, `mortalPair` two of which one can be killed. `isKnownAtOnce`: a
 * server looks a token up that it does not know.
 */
export function clusterTests({ pair, mortalPair = pair, isKnownAtOnce = false }) {
  test("servers share databases and tokens, and one leads", async () => {
    const { one, two, accessToken } = await pair();
    const atTwo = await open(`${two.url}/shop`, { accessToken });
    await atTwo.set(["a"], 1);
    // Each names the same leader, and itself for reads that may be older.
    await until(async () => {
      const told = await Promise.all([one, two].map((at) => endpointsOf(at, "shop", accessToken)));
      const leads = told.findIndex(([first]) => first === "strong ./v2");
      const expected = `strong ${[one, two][leads]?.url}/v2,eventual ./v2`;
      return told[leads]?.length === 1 && told[1 - leads].join() === expected;
    }, "both name the leader");
    const atOne = await open(`${one.url}/shop`, { accessToken });
    assert.equal((await atOne.get(["a"])).value, 1);
    await Promise.all(Array.from({ length: 50 }, () => atOne.atomic().sum(["n"], 1n).commit()));
    assert.equal((await atTwo.get(["n"])).value.value, 50n);
    const near = await open(`${one.url}/shop`, { accessToken });
    assert.equal((await near.get(["n"], { consistency: "eventual" })).value.value, 50n);
    const second = await admin(two, "POST", "/shop/tokens", { rights: "read" });
    const reads = async (at) => (await metadata(at, "shop", second.token)).status;
    if (isKnownAtOnce) assert.equal(await reads(one), 200);
    else await until(async () => (await reads(one)) === 200, "the other server knows the token");
    assert.equal((await admin(two, "DELETE", `/shop/tokens/${second.id}`)).status, 204);
    await until(async () => (await reads(one)) === 401, "the other server has revoked it");
  });

  test("a leader that closes hands over, with its listeners, to clients that know another leader", async () => {
    const { cluster, one, two, accessToken } = await pair();
    // Both get their metadata while nobody leads.
    const [atOne, atTwo] = [
      await open(`${one.url}/shop`, { accessToken }),
      await open(`${two.url}/shop`, { accessToken }),
    ];
    await atOne.set(["first"], 1);
    await atTwo.set(["second"], 2);
    const taken = [];
    const listening = atTwo.listenQueue((message) => taken.push(message));
    await atOne.enqueue("hello");
    await until(() => taken.includes("hello"), "the message is there");
    await cluster.stop(one);
    // It has handed over, so that nobody waits for its lease.
    await atTwo.set(["third"], 3);
    assert.deepEqual(await endpointsOf(two, "shop", accessToken), ["strong ./v2"]);
    await atTwo.enqueue("again");
    // The first one too comes again, if its lock ends before the next leader knows its acknowledgement.
    await until(() => taken.includes("again"), "the second message is there");
    atTwo.close();
    await listening;
  });

  test("another server leads when the leader was killed, within the same handle", async () => {
    const { cluster, one, two, accessToken } = await mortalPair();
    const kv = await open(`${one.url}/shop,${two.url}/shop`, { accessToken });
    await kv.set(["a"], 1);
    await cluster.kill(one);
    assert.equal((await kv.set(["b"], 2)).ok, true);
    assert.deepEqual(
      (await kv.getMany([["a"], ["b"]])).map(({ value }) => value),
      [1, 2],
    );
    assert.deepEqual(await endpointsOf(two, "shop", accessToken), ["strong ./v2"]);
  });

  test("every call is answered, and happens once, when the leader is killed meanwhile", async () => {
    const { cluster, one, two, accessToken } = await mortalPair();
    const handles = await Promise.all(
      Array.from({ length: 8 }, () => open(`${one.url}/shop,${two.url}/shop`, { accessToken })),
    );
    await handles[0].set(["a"], 1);
    const stamps = new Set();
    let isOver = false;
    const adds = async (kv) => {
      while (!isOver) {
        const { ok, versionstamp } = await kv.atomic().sum(["n"], 1n).commit();
        assert.equal(ok, true);
        assert.ok(!stamps.has(versionstamp), "each has a commit of its own");
        stamps.add(versionstamp);
      }
    };
    const adding = Promise.all(handles.flatMap((kv) => [adds(kv), adds(kv)]));
    await until(() => stamps.size > 300, "the leader takes writes");
    await cluster.kill(one);
    const before = stamps.size;
    await until(() => stamps.size > before + 300, "the other server takes writes");
    isOver = true;
    await adding;
    assert.equal((await handles[0].get(["n"])).value.value, BigInt(stamps.size));
  });

  test("changes at several servers at once are all kept", async () => {
    const { one, two } = await pair();
    const servers = [one, two];
    const names = Array.from({ length: 12 }, (_, i) => `db${i}`);
    const made = names.map((name, i) => admin(servers[i % 2], "POST", "", { name }));
    const statuses = (await Promise.all(made)).map(({ status, text }) => `${status} ${text}`);
    assert.ok(
      statuses.every((status) => status.startsWith("201")),
      `${statuses}`,
    );
    const again = await admin(servers[1], "POST", "", { name: "db0" });
    assert.equal(again.status, 409);
    for (const at of servers) {
      const listed = async () => JSON.parse((await admin(at, "GET", "")).text);
      await until(async () => (await listed()).length === names.length + 1, "all are known");
      assert.deepEqual((await listed()).map(({ name }) => name).sort(), [...names, "shop"].sort());
    }
  });

  test("servers behind one address hand writes and listeners over", async () => {
    const { one, two, accessToken } = await pair({ forward: true });
    const atOne = await open(`${one.url}/shop`, { accessToken });
    const atTwo = await open(`${two.url}/shop`, { accessToken });
    const writes = [atOne, atTwo].map((kv, i) => kv.set([`at ${i}`], "x".repeat(50_000)));
    assert.ok((await Promise.all(writes)).every(({ ok }) => ok));
    for (const at of [one, two]) {
      assert.deepEqual(await endpointsOf(at, "shop", accessToken), ["strong ./v2"]);
    }
    // A message whose acknowledgement takes longer than its lock comes again.
    const taken = new Set();
    const listening = [atOne, atTwo].map((kv) => kv.listenQueue((value) => taken.add(value)));
    const sent = Array.from({ length: 20 }, (_, i) => i);
    await Promise.all(sent.map((i) => [atOne, atTwo][i % 2].enqueue(i)));
    await until(() => taken.size === sent.length, "all messages are there");
    assert.equal((await atTwo.deleteMany({ start: ["at 0"], end: ["at 2"] })).count, 2);
    atOne.close();
    atTwo.close();
    await Promise.all(listening);
  });
}
