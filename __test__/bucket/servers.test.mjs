// Duty: servers in front of one object store: they share databases, tokens and quotas, one of them leads each
// database, and another takes over.

import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { clusterTests, open, PATIENCE_MS } from "../kit/cluster-suite.mjs";
import { admin, Cluster, createAt } from "../kit/cluster.mjs";
import { bucketUrl, newFolder } from "../kit/folder.mjs";
import { open as openHandle } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { killServers } from "./server-kills.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

/** Nobody waits for its end: a leader gives it back. */
const LONG = "600s";
/** A leader keeps it on a busy machine too; the tests wait for its end. */
const SHORT = "6s";

const folder = newFolder("bucket-servers");
let places = 0;
const clusters = [];
after(() => Promise.all(clusters.map((cluster) => cluster.close())));

const freshFolder = () => join(folder, `${places++}`);

function newCluster(lease = LONG) {
  const objects = freshFolder();
  const cluster = Cluster.at(`${bucketUrl(objects)}?lease=${lease}`);
  clusters.push(cluster);
  return { cluster, objects };
}

/** Two servers with a database `shop`. */
async function pair(lease, options) {
  const { cluster, objects } = newCluster(lease);
  const [one, two] = [await cluster.start(options), await cluster.start(options)];
  return { cluster, objects, one, two, accessToken: await createAt([one, two], "shop") };
}

clusterTests({
  pair: (options) => pair(LONG, options),
  mortalPair: () => pair(SHORT),
  isKnownAtOnce: true,
});

// The error was that this database offers no backup, which a handle on the object store makes.
test("a backup by a server on an object store is refused, with what to do instead", async () => {
  const { cluster } = newCluster();
  const server = await cluster.start();
  const accessToken = await createAt([server], "shop");
  const kv = await open(`${server.url}/shop`, { accessToken });
  await kv.set(["a"], 1);
  const file = `${freshFolder()}.sqlite3`;
  await assert.rejects(kv.backup(file), {
    code: "UNSUPPORTED",
    message:
      /server offers none .* object store with lead: "never" .* openkv backup .* openkv copy/,
  });
  assert.ok(!existsSync(file));
});

// Each server has a log of its own: a replica followed one of them, and failed for good once another one led.
test("a replica of servers on an object store is refused, with what to open instead", async () => {
  const { cluster, objects } = newCluster();
  const server = await cluster.start();
  const accessToken = await createAt([server], "shop");
  const refused = { code: "UNSUPPORTED", message: /option replica.*URL of the object store/ };
  const url = `${server.url}/shop`;
  const replica = join(freshFolder(), "copy.sqlite3");
  await assert.rejects(openKv(url, { accessToken, replica: ":memory:" }), refused);
  await assert.rejects(openKv(url, { accessToken, replica }), refused);
  assert.ok(!existsSync(replica));
  const reading = { path: replica, replicaOf: url, replicaToken: accessToken };
  await assert.rejects(serve({ ...reading, listen: "127.0.0.1:0" }), refused);

  const kv = await open(url, { accessToken });
  await kv.set(["a"], 1);
  const [id] = readdirSync(join(objects, "databases"));
  const copy = await open(`${bucketUrl(join(objects, "databases", id))}?lease=${LONG}`, {
    accessToken,
  });
  assert.equal((await copy.get(["a"])).value, 1);
});

test("a server keeps databases, tokens and quotas, with and without its cache", async () => {
  const { cluster, objects } = newCluster();
  const cache = freshFolder();
  let server = await cluster.start({ cache });
  const port = Number(new URL(server.url).port);
  const { token: accessToken } = await admin(server, "POST", "", { name: "shop" });
  const { token: other } = await admin(server, "POST", "", { name: "other" });
  await admin(server, "PUT", "/shop/quotas", { bytes: 1_000_000, watches: 7 });
  const write = async (n) => {
    const kv = await open(`${server.url}/shop`, { accessToken });
    assert.equal((await kv.get(["n"])).value, n - 1 || null);
    await kv.set(["n"], n);
  };
  await write(1);
  await (await open(`${server.url}/other`, { accessToken: other })).set(["n"], "other");
  await cluster.stop(server);
  server = await cluster.start({ cache, port });
  await write(2);
  // A process that is killed has its lease still, and the next one with its folder need not wait for the end.
  await cluster.kill(server);
  server = await cluster.start({ cache, port });
  await write(3);
  await cluster.stop(server);
  server = await cluster.start();
  await write(4);
  const kept = await admin(server, "GET", "/shop");
  assert.deepEqual(kept.quotas, { bytes: 1_000_000, watches: 7 });
  const second = await open(`${server.url}/other`, { accessToken: other });
  assert.equal((await second.get(["n"])).value, "other");
  await assert.rejects(open(`${server.url}/other`, { accessToken }), { code: "DENIED" });
  assert.deepEqual(readdirSync(join(objects, "databases")).length, 2);
});

test("the quota of bytes counts what is stored", async () => {
  const { cluster } = newCluster();
  const server = await cluster.start();
  const { token } = await admin(server, "POST", "", { name: "shop", quotas: { bytes: 500_000 } });
  const authorization = `Bearer ${token}`;
  const put = (n) =>
    fetch(`${server.url}/shop/api/keys/k/${n}`, {
      method: "PUT",
      headers: { authorization, "content-type": "application/octet-stream" },
      body: new Uint8Array(50_000),
    });
  const statuses = new Set();
  let count = 0;
  await until(async () => {
    const { status } = await put(count++);
    statuses.add(status);
    return status >= 400;
  }, "the database is full");
  assert.ok([...statuses].some((status) => status < 300) && statuses.has(429), `${[...statuses]}`);
});

const optionsOf = (engine) => ({
  engine,
  adminToken: "the-admin-token-of-all",
  advertise: "http://127.0.0.1:1",
  listen: "127.0.0.1:0",
});

test("a place of something else is refused by name, and shows no secret", async () => {
  const start = (engine) => serve(optionsOf(engine));
  const single = bucketUrl(freshFolder());
  await (await openKv(single)).close();
  await assert.rejects(start(single), /is one database, which openKv opens by this URL/);
  const foreign = freshFolder();
  await (await openKv(bucketUrl(join(foreign, "below")))).close();
  writeFileSync(join(foreign, "photo.jpg"), "");
  await assert.rejects(start(bucketUrl(foreign)), /has other objects in it/);
  for (const wrong of [
    "s3://me:hidden@bucket/x",
    "s3://bucket/x?AWS_SECRET=hidden",
    "s3:///hidden",
  ]) {
    const error = await start(wrong).then(
      () => assert.fail("started"),
      (failure) => failure,
    );
    assert.doesNotMatch(error.message, /hidden/);
  }
  const { cluster } = newCluster();
  await cluster.start();
  await assert.rejects(openKv(cluster.engine), /has other objects in it .*catalog/);
  const cache = freshFolder();
  await cluster.start({ cache });
  const other = serve({ ...optionsOf(cluster.engine), cache });
  await assert.rejects(other, { code: "UNAVAILABLE", message: /cache: .*only this server uses/ });
});

test("no answered write is lost, and none done twice, when leaders are killed", async () => {
  const { cluster, one, two, accessToken } = await pair(SHORT);
  await killServers({ cluster, servers: [one, two], accessToken, kills: 2, writes: 100 });
});

test("a message is received where nobody leads yet", async () => {
  const { one, two, accessToken } = await pair();
  const kv = await open(`${one.url}/shop`, { accessToken });
  const receiving = kv.queue("jobs").receive({ wait: PATIENCE_MS });
  const other = await open(`${two.url}/shop`, { accessToken });
  await other.queue("jobs").enqueue("hello");
  const message = await receiving;
  assert.equal(message.value, "hello");
  assert.equal(await message.ack(), true);
});

test("a leader that stops beyond its lease answers nothing that is not in the log", {
  skip,
}, async () => {
  const { one, two, accessToken } = await pair(SHORT);
  const atOne = await open(`${one.url}/shop`, { accessToken });
  await atOne.set(["n"], 1);
  one.child.kill("SIGSTOP");
  const takesOver = async () => {
    const kv = await open(`${two.url}/shop`, { accessToken, timeout: 2000 });
    return (await kv.set(["n"], 2)).ok;
  };
  await until(() => takesOver().catch(() => false), "the other server takes writes");
  one.child.kill("SIGCONT");
  // Also a client that has nobody else's address is answered by what the next leader has written.
  const answer = await fetch(`${one.url}/shop/api/keys/n`, {
    headers: { authorization: `Bearer ${accessToken}`, accept: "application/json" },
  });
  assert.equal((await answer.json()).value, 2);
  const check = await atOne.get(["n"]);
  assert.equal(check.value, 2);
  assert.equal((await atOne.atomic().check(check).set(["n"], 3).commit()).ok, true);
  const kv = await open(`${two.url}/shop`, { accessToken });
  assert.equal((await kv.get(["n"])).value, 3);
});

test("a dropped database leaves a mark that keeps it from coming back, and its name is free", async () => {
  const { cluster, objects } = newCluster();
  const cache = freshFolder();
  const [one, two] = [await cluster.start({ cache }), await cluster.start()];
  const accessToken = await createAt([one, two], "shop");
  const kv = await open(`${one.url}/shop`, { accessToken });
  await kv.set(["a"], "x".repeat(1000));
  const [id] = readdirSync(join(objects, "databases"));
  assert.ok(existsSync(join(cache, id)));
  assert.equal((await admin(two, "DELETE", "/shop")).status, 204);
  const left = readdirSync(join(objects, "databases", id), { recursive: true });
  assert.deepEqual(
    left.filter((name) => !["log", "snapshots"].includes(name)),
    ["openkv-dropped.json"],
  );
  assert.ok(!existsSync(join(cache, id)), "the copy of the other server is gone too");
  await assert.rejects(kv.set(["a"], 1), { code: "DENIED" });
  await assert.rejects(openKv(`${bucketUrl(join(objects, "databases", id))}`), /has other objects/);
  const again = await createAt([two, one], "shop");
  const fresh = await open(`${one.url}/shop`, { accessToken: again });
  assert.equal((await fresh.get(["a"])).value, null);
});

/** The URL by which a program opens the only database of servers itself. */
function urlBeside(objects, lease) {
  const [id] = readdirSync(join(objects, "databases"));
  return `${bucketUrl(join(objects, "databases", id))}?lease=${lease}`;
}

test("a program that opens a database of servers reads it, and is told where to write", async () => {
  const { objects, one, accessToken } = await pair();
  const kv = await open(`${one.url}/shop`, { accessToken });
  await kv.set(["a"], 1);
  const direct = await openHandle(urlBeside(objects, LONG));
  assert.equal((await direct.get(["a"])).value, 1);
  await assert.rejects(direct.set(["a"], 2), {
    code: "UNAVAILABLE",
    message: new RegExp(`${one.url} leads the database`),
  });
});

test("a program with an access token reads its copy, and writes through the server that leads", async () => {
  const { cluster, objects, one, two, accessToken } = await pair();
  const atOne = await open(`${one.url}/shop`, { accessToken });
  await atOne.set(["a"], 1);
  const kv = await open(urlBeside(objects, LONG), { accessToken });
  const seen = [];
  const watching = (async () => {
    for await (const [{ value }] of kv.watch([["a"]])) {
      seen.push(value);
      if (value === 5) return;
    }
  })();
  const { versionstamp } = await kv.set(["a"], 2);
  const read = await kv.get(["a"]);
  assert.deepEqual([read.value, read.versionstamp], [2, versionstamp]);
  assert.equal((await atOne.get(["a"])).value, 2);
  const absent = { key: ["a"], versionstamp: null };
  assert.equal((await kv.atomic().check(absent).commit()).ok, false);
  assert.equal((await kv.atomic().check(read).set(["a"], 3).commit()).ok, true);
  await kv.createIndex({ prefix: ["a"], fields: ["text"] });
  const taken = [];
  const listening = kv.queue("jobs").listen((value) => taken.push(value));
  await kv.queue("jobs").enqueue("hello");
  await until(() => taken.length === 1, "the message is handled");
  assert.equal((await kv.deleteMany({ prefix: ["none"] })).count, 0);
  // The leader changes: the address is looked up again.
  await cluster.stop(one);
  const atTwo = await open(`${two.url}/shop`, { accessToken });
  await atTwo.set(["a"], 4);
  assert.equal((await kv.get(["a"])).value, 4);
  await kv.set(["a"], 5);
  assert.equal((await atTwo.get(["a"])).value, 5);
  await watching;
  assert.equal(seen.at(-1), 5);
  await kv.close();
  await listening;
});

test("every write of a program beside the servers happens once when the leader is killed", async () => {
  const { cluster, objects, one, two, accessToken } = await pair(SHORT);
  await (await open(`${one.url}/shop`, { accessToken })).set(["one"], 1);
  const kv = await open(urlBeside(objects, SHORT), { accessToken });
  let [done, isOver] = [0, false];
  const add = async () => {
    while (!isOver) {
      assert.equal((await kv.atomic().sum(["n"], 1n).commit()).ok, true);
      done++;
    }
  };
  const adding = Promise.all(Array.from({ length: 8 }, add));
  await until(() => done > 50, "the leader takes writes");
  await cluster.kill(one);
  // A client of the other server makes it lead.
  await (await open(`${two.url}/shop`, { accessToken })).set(["two"], 2);
  const before = done;
  await until(() => done > before + 50, "the other server takes them");
  isOver = true;
  await adding;
  assert.equal((await kv.get(["n"])).value.value, BigInt(done));
});

test("access that a program beside the servers cannot have is refused by name", async () => {
  const { objects, one, accessToken } = await pair();
  await (await open(`${one.url}/shop`, { accessToken })).set(["a"], 1);
  const url = urlBeside(objects, LONG);
  for (const [options, message] of [
    [{ accessToken, lead: "auto" }, /'accessToken' hands writes to the server .* lead: "auto"/],
    [{ accessToken, readonly: true }, /'accessToken' is for writes/],
    [{ timeout: 1000 }, /'timeout' is not for .* without the option accessToken/],
  ]) {
    await assert.rejects(openKv(url, options), { message });
  }
  const kv = await open(url, { accessToken: "another-token-than-that" });
  await assert.rejects(kv.set(["a"], 2), { code: "DENIED" });
  assert.equal((await kv.get(["a"])).value, 1);
  // Nobody has led a database that only a program has.
  const own = bucketUrl(freshFolder());
  await (await openKv(own)).close();
  const alone = await open(own, { accessToken, timeout: 1000 });
  await assert.rejects(alone.set(["a"], 1), {
    code: "UNAVAILABLE",
    message: /no server has led the database/,
  });
});
