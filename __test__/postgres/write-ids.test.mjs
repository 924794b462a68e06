// Duty: a write whose answer is lost is repeated with its id: at the leader that has carried it out, by a
// server that hands it over, and as bytes. It happens once, and the repetition gets its answer.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, test } from "node:test";
import { Cluster, createAt } from "../kit/cluster.mjs";
import { newFolder } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { lossy } from "../remote/lossy.mjs";

const WRITE = "/openkv/write";
const OUTCOME_UNKNOWN = 5;
const clusters = [];
after(() => Promise.all(clusters.map((cluster) => cluster.close())));

async function start(count, options) {
  const cluster = await Cluster.create();
  clusters.push(cluster);
  const servers = [];
  while (servers.length < count) servers.push(await cluster.start(options));
  return { cluster, servers, accessToken: await createAt(servers, "shop") };
}

/** Calls `write(kv)` while the answer to its first request is lost. Answers what it resolves to. */
async function withLostAnswer(link, kv, write) {
  link.paths.length = 0;
  link.loseNext(WRITE);
  const result = await write(kv);
  const sent = link.paths.filter((path) => path.endsWith(WRITE)).length;
  assert.equal(sent, 2, "it was sent again");
  return result;
}

test("a write whose answer is lost happens once, and has its answer", async (t) => {
  const { servers, accessToken } = await start(1);
  const link = await lossy(`${servers[0].url}/shop`);
  t.after(() => link.close());
  const kv = await open(link.url, { accessToken });
  const lost = (write) => withLostAnswer(link, kv, write);
  const summed = await lost(() => kv.atomic().sum(["n"], 5n).commit({ values: true }));
  assert.deepEqual([summed.ok, summed.values[0].value ?? summed.values[0]], [true, 5n]);
  const entry = await kv.get(["n"]);
  assert.deepEqual([entry.value.value, entry.versionstamp], [5n, summed.versionstamp]);
  const set = await lost(() => kv.set(["at", kv.commitVersionstamp()], 1));
  assert.equal((await kv.get(["at", set.versionstamp])).versionstamp, set.versionstamp);
  const id = kv.uuidv7();
  const made = await lost(() => kv.atomic().set(["made", id], 1).commit());
  const all = await kv.list({ prefix: ["made"] }).toArray();
  assert.deepEqual(
    all.map(({ key, versionstamp }) => [key[1], versionstamp]),
    [[id.uuidIn(made), made.versionstamp]],
  );
  const enqueued = await lost(() => kv.queue("jobs").enqueue("work"));
  const message = await kv.queue("jobs").receive();
  assert.equal(message.id, enqueued.id);
  await message.ack();
  assert.equal((await kv.queue("jobs").stats()).pending, 0);
  const refused = await lost(() =>
    kv
      .atomic()
      .check({ key: ["n"], versionstamp: null })
      .set(["n"], 1)
      .commit(),
  );
  assert.equal(refused.ok, false);
  // A range makes the leader carry the write out in a transaction of its own.
  const moved = await lost(() =>
    kv.transaction(async (tx) => {
      await tx.list({ prefix: ["made"] }).toArray();
      tx.set(["moved"], 1);
    }),
  );
  assert.notEqual((await kv.get(["moved"])).versionstamp, null, `${moved}`);
});

test("a server that hands a write over hands its id over", async (t) => {
  const { servers, accessToken } = await start(2, { forward: true });
  const links = await Promise.all(servers.map(({ url }) => lossy(`${url}/shop`)));
  t.after(() => Promise.all(links.map((link) => link.close())));
  for (const [i, link] of links.entries()) {
    const kv = await open(link.url, { accessToken });
    const add = () => kv.atomic().sum(["n"], 1n).commit();
    assert.equal((await withLostAnswer(link, kv, add)).ok, true);
    assert.equal((await kv.get(["n"])).value.value, BigInt(i + 1));
  }
});

test("a refused repetition stays refused when its first attempt arrives late", async (t) => {
  const { cluster, servers, accessToken } = await start(2, { forward: true });
  const link = await lossy(`${servers[0].url}/shop`);
  t.after(() => link.close());
  const [kv, other] = [link.url, `${servers[1].url}/shop`].map((url) => open(url, { accessToken }));
  await (await kv).set(["n"], "there");
  const held = link.holdNext(WRITE);
  const absent = { key: ["n"], versionstamp: null };
  const refused = await (await kv).atomic().check(absent).set(["n"], "late").commit();
  assert.equal(refused.ok, false);
  // From here on the check would hold.
  await (await kv).delete(["n"]);
  const answer = await held.release(servers[0].url);
  assert.equal((await (await kv).get(["n"])).versionstamp, null);
  // The leader after this one reads the refusal from the log.
  await cluster.stop(servers[0]);
  assert.deepEqual(await held.release(servers[1].url), answer);
  assert.equal((await (await other).get(["n"])).versionstamp, null);
  assert.equal((await (await other).atomic().check(absent).set(["n"], "new").commit()).ok, true);
});

/** Sends DELETE of the key `["a"]`, with this id if there is one; answers status and body. */
async function sendDelete({ url }, name, accessToken, id) {
  const asked = await fetch(`${url}/${name}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${accessToken}`,
      "x-openkv-extensions": "1",
      "x-openkv-packed": "1",
    },
    body: JSON.stringify({ supportedVersions: [3] }),
  });
  const { token, databaseId, extensions, time } = await asked.json();
  const record = id === undefined ? [] : [0x10, ...id];
  const answer = await fetch(`${url}/v2${WRITE}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/octet-stream",
      "x-denokv-version": "3",
      "x-denokv-database-id": databaseId,
    },
    body: new Uint8Array([1, 0, 0, 0, ...record, 3, 3, 0, 0, 0, 2, 0x61, 0, 0]),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, body, extensions, time };
}

function newId(atMs) {
  const id = randomBytes(16);
  id.writeUIntBE(atMs, 0, 6);
  return id;
}

test("the bytes: an id is answered once, an old one is unknown, none is as before", async () => {
  const { servers, accessToken } = await start(1);
  const send = (id) => sendDelete(servers[0], "shop", accessToken, id);
  const [first, second] = [await send(), await send()];
  assert.ok(first.extensions.includes("write-ids-1"));
  assert.equal(first.status, 200);
  assert.notDeepEqual(first.body, second.body, "two commits");
  const id = newId(Date.parse(second.time));
  const [third, again] = [await send(id), await send(id)];
  assert.deepEqual([...third.body.subarray(0, 2)], [0, 0], "committed");
  assert.deepEqual(again.body, third.body);
  for (const atMs of [Date.parse(first.time) - 3_600_000, Date.parse(first.time) + 3_600_000]) {
    const { body } = await send(newId(atMs));
    assert.deepEqual([...body.subarray(0, 3)], [0, 2, OUTCOME_UNKNOWN]);
  }
  const both = await Promise.all([send(newId(Date.now() - 1)), send(newId(Date.now() - 1))]);
  assert.notDeepEqual(both[0].body, both[1].body, "two ids");
});

test("a server of files offers no ids and refuses them", async () => {
  const path = `${newFolder("write-ids")}/a.db`;
  const server = await startServer({ path, accessToken: "a-token-of-a-file" });
  const url = { url: new URL(server.url).origin };
  const name = new URL(server.url).pathname.slice(1);
  const plain = await sendDelete(url, name, "a-token-of-a-file");
  assert.equal(plain.status, 200);
  assert.deepEqual([plain.extensions.includes("write-ids-1"), plain.time], [false, undefined]);
  const refused = await sendDelete(url, name, "a-token-of-a-file", newId(Date.now()));
  assert.equal(refused.status, 400);
  assert.match(`${refused.body}`, /ids of writes/);
});
