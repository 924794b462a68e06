// Duty: replicas of databases on PostgreSQL: in the process that has the database open, and of a server in
// front of PostgreSQL.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { createAt, Cluster } from "../kit/cluster.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { sharedPostgres, startPostgres } from "../kit/postgres.mjs";
import { open } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "../replica/entries.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";
const fresh = freshPaths("postgres-replica");
const eventual = { consistency: "eventual" };
const busyTimeout = 2000;

let server;
before(async () => {
  server = await sharedPostgres();
});

async function follow(url, options) {
  const kv = await open(url, { replica: ":memory:", ...options });
  await kv.replica.ready();
  return kv;
}

test("a replica has what the database has, and follows every process", async () => {
  const url = server.url();
  const other = await open(url);
  for (let n = 0; n < 300; n++) await other.set(["before", n], { n, text: "x".repeat(n * 7) });
  const near = await follow(url);
  assert.deepEqual(await all(near, eventual), await all(other));
  await other.set(["short"], 1, { expireIn: 60_000 });
  await other.touch(["before", 1], { expireIn: 90_000 });
  await other.queue("jobs").enqueue("a message");
  await other.deleteMany({ prefix: ["before"], start: ["before", 100] });
  const { versionstamp } = await other
    .atomic()
    .sum(["n"], 7n)
    .set(["big"], "x".repeat(60_000))
    .commit();
  await near.replica.reached(versionstamp);
  const withExpiry = { withExpiry: true, ...eventual };
  assert.deepEqual(await all(near, withExpiry), await all(other, { withExpiry: true }));
  assert.equal(near.getSync(["n"], eventual).value.value, 7n);
  const { state, copies, copiedBecause } = await near.replica.status();
  assert.deepEqual([state, copies, copiedBecause], ["following", 1, "the replica is new"]);
  assert.throws(() => near.getSync(["n"]), { code: "UNSUPPORTED" });
});

test("a handle sees its own writes, and strong reads are PostgreSQL's", async () => {
  const near = await follow(server.url(), eventual);
  for (let n = 0; n < 100; n++) {
    const { versionstamp } = await near.set(["own"], n);
    const entry = await near.get(["own"]);
    assert.deepEqual([entry.value, entry.versionstamp], [n, versionstamp]);
  }
  await near.atomic().set(["a"], 1).set(["b"], 2).commit();
  const strong = { consistency: "strong" };
  const read = await near.getMany([["a"], ["b"]], strong);
  assert.deepEqual(
    read.map(({ value }) => value),
    [1, 2],
  );
  const { ok } = await near.transaction(async (tx) => {
    const { value } = await tx.get(["own"]);
    tx.set(["own"], value + 1);
  });
  assert.equal(ok, true);
  assert.equal((await near.get(["own"])).value, 100);
  assert.equal(await near.count({ prefix: [] }), 3);
  const queue = near.queue("jobs");
  await queue.enqueue("work");
  const message = await queue.receive();
  assert.equal(message.value, "work");
  await message.ack();
});

test("a copy is made while writes go on, and a file goes on where it was", async () => {
  const url = server.url();
  const other = await open(url);
  const writes = Array.from({ length: 400 }, (_, n) =>
    other.set(["k", n % 150], "x".repeat(n * 20)),
  );
  const replica = fresh();
  const options = { replica, prefixes: [["k"]] };
  const near = await follow(url, options);
  await Promise.all(writes);
  const { versionstamp } = await other.set(["other"], 1);
  await near.replica.reached(versionstamp);
  assert.deepEqual(await all(near, eventual, ["k"]), await all(other, {}, ["k"]));
  assert.equal((await near.get(["other"], eventual)).value, 1, "from PostgreSQL");
  await near.close();
  await other.delete(["k", 7]);
  const again = await follow(url, options);
  const last = await other.set(["k", 8], "later");
  await again.replica.reached(last.versionstamp);
  assert.deepEqual(await all(again, eventual, ["k"]), await all(other, {}, ["k"]));
  assert.equal((await again.replica.status()).copies, 0);
  await again.close();
  const elsewhere = await open(server.url(), { replica });
  await assert.rejects(elsewhere.replica.ready(), { code: "DENIED" });
});

test("a database that another process leads is followed too", async () => {
  const url = server.url();
  const leader = await open(`${url}&lead=web-1`);
  await leader.set(["a"], 1);
  // Another user makes it another store of this process, which turns the log on beside the leader.
  await server.sql(
    "DO $$ BEGIN CREATE ROLE near SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
  );
  const near = await follow(url.replace("postgres@", "near@"));
  const writes = Array.from({ length: 50 }, (_, n) =>
    leader.atomic().sum(["n"], BigInt(n)).commit(),
  );
  const commits = await Promise.all(writes);
  await near.replica.reached(commits.at(-1).versionstamp);
  assert.deepEqual(await all(near, eventual), await all(leader));
});

test("an index is built by replicas, and its definition stays", async () => {
  const url = server.url();
  const plain = await open(url);
  await plain.set(["docs", 1], { title: "The quick fox" });
  const index = { prefix: ["docs"], fields: ["title"], name: "titles" };
  await plain.createIndex(index);
  const refused = { code: "UNSUPPORTED", message: /option replica/ };
  await assert.rejects(plain.search(["docs"], "fox"), refused);
  assert.equal((await plain.listIndexes())[0].name, "titles");
  const replica = fresh();
  const near = await follow(url, { replica });
  const found = async (kv, words) =>
    (await kv.search(["docs"], words)).entries.map(({ key }) => key[1]);
  await until(async () => (await near.search(["docs"], "fox")).complete, "the index is built");
  assert.deepEqual(await found(near, "fox"), [1]);
  // A strong search sees what another handle has committed.
  for (let n = 2; n < 20; n++) {
    await plain.set(["docs", n], { title: `fox ${n}` });
    assert.deepEqual(await found(near, `${n}`), [n]);
  }
  await plain.set(["docs", "ja"], { title: "東京都に行きました" });
  assert.deepEqual(await found(near, "東京"), ["ja"]);
  await plain.delete(["docs", "ja"]);
  await near.createIndex({ prefix: ["notes"], fields: ["text"], name: "notes" });
  await near.set(["notes", 1], { text: "a word" });
  assert.equal((await near.search(["notes"], "word")).entries.length, 1);
  assert.equal(await near.dropIndex("notes"), true);
  await assert.rejects(near.search(["notes"], "word"), { name: "TypeError" });
  await near.close();
  const again = await follow(url, { replica: ":memory:" });
  await until(async () => (await again.search(["docs"], "fox")).complete, "the index is built");
  assert.equal((await found(again, "fox")).length, 19);
});

test("moments are read from PostgreSQL, also by a handle with a replica", async () => {
  const near = await follow(server.url(), { history: "7d", ...eventual });
  const { versionstamp } = await near.set(["a"], 1);
  await near.set(["a"], 2);
  const then = await near.at(versionstamp);
  assert.deepEqual([(await then.get(["a"])).value, (await near.get(["a"])).value], [1, 2]);
  await then.close();
});

test("options that make no sense are refused by name", async () => {
  const url = server.url();
  await assert.rejects(openKv(url, eventual), {
    message: /consistency.* without the option replica/,
  });
  await assert.rejects(openKv(url, { maxLag: 5 }), { message: /pass the option replica too/ });
  const kv = await open(url, { log: { retention: "1h" } });
  const history = { code: "UNSUPPORTED", message: /keeps no history/ };
  await assert.rejects(async () => await (await kv.at(new Date())).get(["a"]), history);
});

test("eventual reads go on without PostgreSQL", { skip }, async (t) => {
  const own = await startPostgres();
  t.after(() => own.close());
  const near = await follow(own.url(), { busyTimeout, ...eventual });
  await near.createIndex({ prefix: ["docs"], fields: ["text"] });
  await near.set(["docs", 1], { text: "offline" });
  await near.get(["docs", 1]);
  await own.stop("immediate");
  assert.equal((await near.get(["docs", 1])).value.text, "offline");
  assert.equal((await near.search(["docs"], "offline")).entries.length, 1);
  await assert.rejects(near.set(["a"], 1), { code: "UNAVAILABLE" });
  await until(
    async () => (await near.replica.status()).state === "disconnected",
    "the replica knows that it is disconnected",
  );
  await own.start();
  await until(async () => {
    const set = await near.set(["a"], 2).catch(() => null);
    return set !== null && (await near.get(["a"])).value === 2;
  }, "the replica follows again");
  assert.equal((await near.replica.status()).copies, 1, "a crash is no other timeline");
});

test("after a failover the replica is copied again", { skip }, async (t) => {
  const own = await startPostgres({ standby: true });
  t.after(() => own.close());
  const near = await follow(own.url({ also: [own.standby] }), { busyTimeout });
  await near.set(["a"], 1);
  own.kill();
  await own.standby.promote();
  await until(async () => near.set(["b"], 2).catch(() => null), "the standby is written to");
  await until(async () => (await near.replica.status()).copies === 2, "the replica is copied");
  assert.match((await near.replica.status()).copiedBecause, /restored, copied or promoted/);
  assert.deepEqual(await all(near, eventual), await all(near));
});

test("a server in front of PostgreSQL has replicas", async (t) => {
  const cluster = await Cluster.create();
  t.after(() => cluster.close());
  const [one, two] = [await cluster.start(), await cluster.start()];
  const accessToken = await createAt([one, two], "shop");
  const kv = await open(`${one.url}/shop`, { accessToken });
  for (let n = 0; n < 100; n++) await kv.set(["before", n], n);
  await kv.createIndex({ prefix: ["docs"], fields: ["text"] });
  // One of the two servers leads, the other one polls.
  for (const { url } of [one, two]) {
    const options = { accessToken, timeout: 30_000, ...eventual };
    const near = await follow(`${url}/shop`, options);
    const { versionstamp } = await kv.set(["docs", url], { text: "everywhere" });
    await near.replica.reached(versionstamp);
    assert.deepEqual(await all(near), await all(kv));
    const search = () => near.search(["docs"], "everywhere");
    await until(async () => (await search().catch(() => ({}))).complete, "the index is built");
    assert.ok((await search()).entries.length >= 1);
    assert.equal((await near.replica.status()).copies, 1);
  }
});
