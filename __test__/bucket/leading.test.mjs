// Duty: one process at a time leads a database in an object store; others read it, and take over.

import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { open as openAt } from "../kit/server.mjs";
import { HANG_MS, guard, until } from "../kit/time.mjs";

const folder = newFolder("bucket-leading");
let places = 0;

/** A leader keeps it on a busy machine too: another one leads only because the leader closes. */
const LEASE = "6s";
const fresh = () => `${bucketUrl(join(folder, `bucket-${places++}`))}?lease=${LEASE}`;

/** Each has a cache of its own, so each is as another process. */
const open = (url, options) =>
  openAt(url, { cache: join(folder, `cache-${places++}`), ...options });

test("a reader sees every commit that was answered before its read", async () => {
  const url = fresh();
  const leader = await open(url);
  const reader = await open(url, { lead: "never" });
  for (let n = 1; n <= 20; n++) {
    await leader.set(["n"], n);
    assert.equal((await reader.get(["n"])).value, n);
  }
  await assert.rejects(reader.set(["n"], 0), { code: "DENIED", message: /lead: "never"/ });
  await assert.rejects(reader.enqueue("x"), { code: "DENIED" });
  const eventual = await open(url, { lead: "never", consistency: "eventual" });
  assert.equal((await eventual.get(["n"])).value, 20);
});

// They waited without end for messages, which only the leader delivers.
test("a reader has no consumers, as a file that was opened for reading", async () => {
  const url = fresh();
  await (await open(url)).queue("q").enqueue(1);
  for (const options of [{ lead: "never" }, { readonly: true }]) {
    const reader = await open(url, options);
    const refused = { code: "DENIED", message: /opened with readonly: true/ };
    await assert.rejects(
      guard(reader.queue("q").receive({ wait: "1h" }), HANG_MS, "a refusal"),
      refused,
    );
    await assert.rejects(guard(reader.queue("q").receive(), HANG_MS, "a refusal"), refused);
    await assert.rejects(
      guard(
        reader.queue("q").listen(() => {}),
        HANG_MS,
        "a refusal",
      ),
      refused,
    );
    await assert.rejects(
      guard(
        reader.listenQueue(() => {}),
        HANG_MS,
        "a refusal",
      ),
      refused,
    );
    assert.equal((await reader.queue("q").stats()).pending, 1);
  }
});

// They went on waiting, where reads were refused.
test("streams and consumers end with the error of a database whose log is damaged", async () => {
  const url = fresh();
  const leader = await open(url);
  await leader.set(["a"], 1);
  const second = await open(url);
  const ends = [
    untilItEnds(second.watch([["a"]])),
    untilItEnds(second.watch({ prefix: ["a"] })),
    second.listenQueue(() => {}),
    second.queue("q").listen(() => {}),
    second.queue("q").receive({ wait: "1h" }),
  ];
  const log = join(fileURLToPath(new URL(url).href.replace("bucket+", "").split("?")[0]), "log");
  const last = readdirSync(log).sort().at(-1);
  const next = (BigInt(`0x${last}`) + 1n).toString(16).padStart(last.length, "0");
  writeFileSync(join(log, next), "damaged");
  const isRejected = (end) => assert.rejects(guard(end, HANG_MS, "an end"), { code: "CORRUPT" });
  await Promise.all(ends.map(isRejected));
  await assert.rejects(second.get(["a"]), { code: "CORRUPT" });
  // And those that begin only now.
  await assert.rejects(untilItEnds(second.watch([["a"]])), { code: "CORRUPT" });
  await assert.rejects(untilItEnds(second.watch({ prefix: ["a"] })), { code: "CORRUPT" });
  await assert.rejects(second.queue("q").receive({ wait: "1h" }), { code: "CORRUPT" });
});

async function untilItEnds(stream) {
  for await (const _ of stream);
}

test("watches and feeds of a reader get the commits of the leader", async () => {
  const url = fresh();
  const leader = await open(url);
  const reader = await open(url, { lead: "never" });
  const states = reader.watch([["n"]])[Symbol.asyncIterator]();
  assert.equal((await states.next()).value[0].value, null);
  const changes = reader.watch({ prefix: ["f"] })[Symbol.asyncIterator]();
  const change = changes.next();
  await leader.set(["n"], 1);
  assert.equal((await states.next()).value[0].value, 1);
  await leader.set(["f", 1], "one");
  assert.ok((await change).value !== undefined);
  await states.return();
  await changes.return();
});

test("a second process is refused by the name of the leader, and leads once that closes", async () => {
  const url = fresh();
  const first = await open(url);
  await first.set(["a"], 1);
  const second = await open(url);
  await assert.rejects(second.set(["a"], 2), {
    code: "UNAVAILABLE",
    message: new RegExp(`process ${process.pid}.* leads the database`),
  });
  assert.equal((await second.get(["a"])).value, 1);
  const waiting = open(url, { lead: "wait" }).then((kv) => kv.close());
  await first.close();
  const leads = () =>
    second.set(["a"], 2).catch((error) => {
      assert.equal(error.code, "UNAVAILABLE");
      return false;
    });
  await until(leads, "the second process leads");
  assert.equal((await second.get(["a"])).value, 2);
  await second.close();
  await guard(waiting, HANG_MS, "the process that waits leads too");
});

test("messages that were not acknowledged are due again for the next leader", async () => {
  const url = fresh();
  const first = await open(url);
  await first.queue("jobs").enqueue({ n: 1 });
  await first.queue("jobs").enqueue({ n: 2 });
  const done = await first.queue("jobs").receive();
  await done.ack();
  await first.queue("jobs").receive();
  await first.close();
  const second = await open(url);
  const left = await second.queue("jobs").receive();
  assert.deepEqual(left.value, { n: done.value.n === 1 ? 2 : 1 });
  const reader = await open(url, { lead: "never" });
  assert.equal((await reader.queue("jobs").stats()).total, 1);
  assert.equal(await left.ack(), true);
  await second.close();
  assert.equal((await reader.queue("jobs").stats()).total, 0);
});

test("refused checks, sums, expiry and large values are as on a file", async () => {
  const url = fresh();
  const kv = await open(url, { limits: "wide" });
  const [one, two] = await Promise.all([
    kv
      .atomic()
      .check({ key: ["c"], versionstamp: null })
      .set(["c"], 1)
      .commit(),
    kv
      .atomic()
      .check({ key: ["c"], versionstamp: null })
      .set(["c"], 2)
      .commit(),
  ]);
  assert.deepEqual([one.ok, two.ok].toSorted(), [false, true]);
  await Promise.all(Array.from({ length: 200 }, () => kv.atomic().sum(["s"], 1n).commit()));
  const large = new Uint8Array(3_000_000).fill(7);
  await kv.set(["large"], large);
  await kv.set(["gone"], 1, { expireIn: 1 });
  const reader = await open(url, { lead: "never" });
  assert.equal((await reader.get(["s"])).value.value, 200n);
  assert.deepEqual((await reader.get(["large"])).value, large);
  assert.equal((await reader.get(["gone"])).value, null);
});
