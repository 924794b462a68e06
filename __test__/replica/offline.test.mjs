// Duty: a replica that is opened while its server cannot be reached.
//
// `openKv(url, { replica })` failed while the server was away, although the file had a complete copy: an application
// that started without a network could not read it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "./entries.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("offline");
const eventual = { consistency: "eventual" };

/** A file with a copy of a server, which is away, and a handle on the server itself. */
async function away(options) {
  const path = fresh();
  const server = await startServer({ path, accessToken });
  const link = await linkTo(server.url);
  const kv = await open(server.url, { accessToken });
  for (let n = 0; n < 20; n++) await kv.set(["before", n], n);
  const replica = fresh();
  const near = await openKv(link.url, { accessToken, replica, ...options });
  await near.replica.ready();
  await near.close();
  await link.refuse();
  return { server, link, kv, replica, path };
}

test("it opens, is read, says so, and follows once the server is back", async () => {
  const { link, kv, replica } = await away();
  const known = await all(kv);
  await kv.set(["while", "away"], 1);
  const near = await open(link.url, { accessToken, replica });
  const { state, ready, version, lag, error } = await near.replica.status();
  assert.deepEqual({ state, ready, lag }, { state: "disconnected", ready: false, lag: null });
  assert.equal(version, known.at(-1).versionstamp);
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.message, /failed to connect to '/);
  assert.deepEqual(await all(near, eventual), known);
  assert.equal(near.getSync(["before", 3], eventual).value, 3);
  assert.equal(await near.getMany([["before", 1]], eventual).then(([one]) => one.value), 1);
  const changes = near.watch([["while", "away"]]).getReader();
  assert.equal((await changes.read()).value[0].value, null);
  let isReady = false;
  const ready2 = near.replica.ready().then(() => (isReady = true));
  await until(async () => (await near.replica.status()).state === "disconnected", "an attempt");
  assert.equal(isReady, false);
  await link.accept();
  await ready2;
  assert.equal((await changes.read()).value[0].value, 1);
  const { versionstamp } = await near.set(["own"], 2);
  await near.replica.reached(versionstamp);
  assert.deepEqual(await all(near, eventual), await all(kv));
  assert.equal((await near.replica.status()).copies, 0);
  assert.equal(await near.count({ prefix: ["before"] }), 20);
});

test("strong reads and writes reject, and so does an age that is not known", async () => {
  const { link, replica } = await away();
  const near = await open(link.url, { accessToken, replica, timeout: 400, maxLag: 100 });
  for (const call of [
    () => near.get(["before", 1]),
    () => near.set(["before", 1], 0),
    () => near.count({ prefix: [] }),
    () => near.enqueue("message"),
  ]) {
    await assert.rejects(call(), { code: "UNAVAILABLE" });
  }
  // The copy of the handle before may still be open for a moment: then its age is known, and longer by now.
  await assert.rejects(near.get(["before", 1], eventual), {
    code: "UNAVAILABLE",
    message:
      /(has not heard from the server since it was opened, so that .* may be older|\d+ ms old, older) than maxLag \(\d+ ms\)/,
  });
});

test("counts, searches and lists of a handle that reads the copy by default", async () => {
  const { link, replica } = await away();
  const near = await open(link.url, { accessToken, replica, consistency: "eventual" });
  assert.equal(await near.count({ prefix: ["before"] }), 20);
  assert.equal((await all(near)).length, 20);
  assert.equal(await near.ttl(["before", 1]), null);
});

test("a second handle joins it, and each of two processes may have one", async () => {
  const { link, replica } = await away();
  const one = await open(link.url, { accessToken, replica });
  const two = await open(link.url, { accessToken, replica });
  assert.equal(two.getSync(["before", 3], eventual).value, 3);
  await one.close();
  assert.equal((await two.get(["before", 4], eventual)).value, 4);
  await link.accept();
  await two.replica.ready();
});

test("nothing copied, in a file or in memory, or another part: the error says so", async () => {
  const { link, replica } = await away({ prefixes: [["before"]] });
  const nothing = {
    code: "UNAVAILABLE",
    message: /failed to connect to '.*refused.*[a-z)][?.] Nothing has been copied yet/,
  };
  await assert.rejects(openKv(link.url, { accessToken, replica: fresh() }), nothing);
  await assert.rejects(openKv(link.url, { accessToken, replica: ":memory:" }), nothing);
  await assert.rejects(openKv(link.url, { accessToken, replica }), nothing);
  // With a timeout, the error of the last attempt did not say it. The time may be over during that attempt.
  const inTime = {
    ...nothing,
    message: /failed to connect to '.*[a-z)][?.] Nothing has been copied yet/,
  };
  await assert.rejects(openKv(link.url, { accessToken, replica: fresh(), timeout: 300 }), inTime);
  const part = await open(link.url, { accessToken, replica, prefixes: [["before"]] });
  assert.equal((await part.get(["before", 2], eventual)).value, 2);
});

test("a server that refuses the token is an error, and the copy stays", async () => {
  const { server, link, replica } = await away();
  const wrong = { accessToken: "another-access-token", replica };
  await link.accept();
  await assert.rejects(openKv(link.url, wrong), { code: "DENIED" });
  await link.refuse();
  const near = await open(link.url, wrong);
  assert.equal((await near.get(["before", 1], eventual)).value, 1);
  await link.accept();
  await assert.rejects(near.replica.ready(), { code: "DENIED" });
  const { state, error } = await near.replica.status();
  assert.deepEqual([state, error.code], ["failed", "DENIED"]);
  await near.close();
  const again = await open(server.url, { accessToken, replica });
  await again.replica.ready();
  assert.equal((await again.replica.status()).copies, 0);
});

test("a server with another database: the copy is not read any more, and stays", async () => {
  const { link, kv, replica } = await away();
  const near = await open(link.url, { accessToken, replica });
  assert.equal((await near.get(["before", 1], eventual)).value, 1);
  const other = await startServer({ path: fresh(), accessToken });
  link.port = Number(new URL(other.url).port);
  await link.accept();
  await assert.rejects(near.replica.ready(), { code: "DENIED", message: /another database/ });
  assert.equal((await near.get(["before", 1], eventual)).value, null);
  await near.close();
  const reader = await openKv(replica, { readonly: true });
  assert.deepEqual(await all(reader), await all(kv));
  await reader.close();
});

test("with a timeout, an opening without a copy waits for the server", async () => {
  const { link, kv } = await away();
  const opening = openKv(link.url, { accessToken, replica: fresh(), timeout: 20_000 });
  await link.accept();
  const near = await opening;
  await near.replica.ready();
  assert.deepEqual(await all(near, eventual), await all(kv));
  await near.close();
});

test("a database of its own is refused, with or without the server", async () => {
  const { link } = await away();
  const path = fresh();
  const own = await openKv(path);
  await own.set(["own"], 1);
  await own.close();
  await assert.rejects(openKv(link.url, { accessToken, replica: path }), {
    code: "DENIED",
    message: /database of its own/,
  });
});
