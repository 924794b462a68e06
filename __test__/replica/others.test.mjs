// Duty: what a replica does when its server is another one than before, and which files it refuses.

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { test } from "node:test";
import { openKv, restore } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "./entries.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("replica-others");
const eventual = { consistency: "eventual" };

/** A server that can be stopped and started on its file, behind a link. */
async function movable(path = fresh()) {
  let server = await startServer({ path, accessToken });
  const link = await linkTo(server.url);
  return {
    path,
    link,
    async stop() {
      link.cut();
      await server.close();
    },
    async start() {
      server = await startServer({ path, accessToken });
      link.port = Number(new URL(server.url).port);
    },
  };
}

const untilCopied = (near, copies) =>
  until(async () => {
    const status = await near.replica.status();
    return status.copies >= copies && status.state === "following" && status;
  }, `copy ${copies}`);

test("a restored server is noticed, copied again, and told", async () => {
  const place = await movable();
  const kv = await open(place.link.url, { accessToken });
  await kv.set(["kept"], 1);
  const backup = fresh();
  await kv.backup(backup);
  for (let n = 0; n < 20; n++) await kv.set(["lost", n], n);
  const near = await open(place.link.url, {
    accessToken,
    replica: fresh(),
    consistency: "eventual",
  });
  await near.replica.ready();
  assert.equal((await all(near)).length, 21);
  await place.stop();
  await restore(backup, place.path, { force: true });
  await place.start();
  const { copiedBecause } = await untilCopied(near, 2);
  assert.match(copiedBecause, /restored/);
  assert.deepEqual(
    (await all(near)).map(({ key }) => key),
    [["kept"]],
  );
  const { versionstamp } = await near.set(["after"], 2);
  assert.equal((await near.get(["after"])).versionstamp, versionstamp);
  await near.close();
});

test("an older file in the place of the server's is noticed", async () => {
  const place = await movable();
  const kv = await open(place.link.url, { accessToken });
  await kv.set(["kept"], 1);
  const replica = fresh();
  const first = await openKv(place.link.url, { accessToken, replica });
  await first.replica.ready();
  await first.close();
  await place.stop();
  const older = fresh();
  copyFileSync(place.path, older);
  await place.start();
  for (let n = 0; n < 20; n++) await kv.set(["lost", n], n);
  const near = await open(place.link.url, { accessToken, replica, ...eventual });
  await near.replica.ready();
  await near.replica.reached((await near.set(["lost", 20], 20)).versionstamp);
  await place.stop();
  copyFileSync(older, place.path);
  await place.start();
  assert.match((await untilCopied(near, 1)).copiedBecause, /fewer commits|other commits/);
  assert.deepEqual(
    (await all(near)).map(({ key }) => key),
    [["kept"]],
  );
});

test("a log that no longer reaches back leads to another copy", async () => {
  const place = await movable();
  const kv = await open(place.link.url, { accessToken });
  await kv.set(["a"], 1);
  const replica = fresh();
  const first = await openKv(place.link.url, { accessToken, replica });
  await first.replica.ready();
  await first.close();
  await place.stop();
  const local = await openKv(place.path, { log: false });
  await local.set(["b"], 2);
  await local.close();
  await place.start();
  const near = await open(place.link.url, { accessToken, replica, ...eventual });
  assert.match((await untilCopied(near, 1)).copiedBecause, /reaches back/);
  assert.equal((await near.get(["b"])).value, 2);
});

test("files that are no replica of this server are refused and stay as they are", async () => {
  const one = await movable();
  const two = await movable();
  const [kv, other] = await Promise.all(
    [one, two].map(({ link }) => open(link.url, { accessToken })),
  );
  await kv.set(["of"], "one");
  await other.set(["of"], "two");
  const own = fresh();
  const written = await openKv(own);
  await written.set(["mine"], 1);
  await written.close();
  await assert.rejects(openKv(one.link.url, { accessToken, replica: own }), {
    code: "DENIED",
    message: /a database of its own, not a replica/,
  });
  const replica = fresh();
  const first = await openKv(one.link.url, { accessToken, replica });
  await first.replica.ready();
  await first.close();
  await assert.rejects(openKv(replica), { code: "DENIED", message: /openkv promote/ });
  const wrong = await openKv(two.link.url, { accessToken, replica });
  // What it has from before is there, but it is not this database.
  for (let state = ""; state !== "failed"; ) ({ state } = await wrong.replica.status());
  const { error } = await wrong.replica.status();
  assert.equal(error.code, "DENIED");
  assert.match(error.message, /another database/);
  await assert.rejects(wrong.replica.reached("f".repeat(20)), { code: "DENIED" });
  await wrong.close();
  const again = await openKv(one.link.url, { accessToken, replica });
  await again.replica.reached((await kv.set(["more"], 1)).versionstamp);
  assert.equal((await again.get(["of"], eventual)).value, "one");
  assert.equal((await again.replica.status()).copies, 0);
  await again.close();
});

test("a promoted replica is a database of its own, which others can follow", async () => {
  const place = await movable();
  const kv = await open(place.link.url, { accessToken });
  await kv.set(["of"], "the primary");
  const [replica, follower] = [fresh(), fresh()];
  for (const file of [replica, follower]) {
    const near = await openKv(place.link.url, { accessToken, replica: file });
    await near.replica.ready();
    await near.close();
  }
  await place.stop();
  assert.equal((await openkv("promote", replica)).code, 0);
  const again = await openkv("promote", replica);
  assert.notEqual(again.code, 0);
  assert.match(again.err, /not a replica/);
  const own = await openKv(replica);
  await own.set(["of"], "the promoted one");
  await own.close();
  const promoted = await movable(replica);
  const near = await open(promoted.link.url, { accessToken, replica: follower, ...eventual });
  assert.match((await untilCopied(near, 1)).copiedBecause, /promoted/);
  assert.equal((await near.get(["of"])).value, "the promoted one");
});
