// Duty: read servers: what they answer from their replica, what they leave to their primary, whose tokens they
// take, how clients are led to them, and replicas that follow them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "./entries.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const readToken = "a-read-token-";
const fresh = freshPaths("read-server");
const eventual = { consistency: "eventual" };
const bearer = (token) => ({ authorization: `Bearer ${token}` });

/** A primary with some entries, a link to it, and a handle on it. */
async function started() {
  const primary = await startServer({ path: fresh(), accessToken, readToken });
  const link = await linkTo(primary.url);
  const kv = await open(primary.url, { accessToken });
  for (let n = 0; n < 50; n++) await kv.set(["entry", `${n}`], { n });
  return { primary, link, kv };
}

/** A read server that follows through a link, once it can answer. */
async function follow(url, options) {
  const server = await startServer({
    path: fresh(),
    replicaOf: url,
    replicaToken: readToken,
    ...options,
  });
  await until(async () => (await get(server, "/api/keys/entry/0")).ok, "a complete copy");
  return server;
}

const get = (server, path, token = readToken) =>
  fetch(server.url + path, { headers: bearer(token) });

/** The metadata that a client of openkv gets. */
async function metadata(server, token = accessToken) {
  const answer = await fetch(server.url, {
    method: "POST",
    headers: { ...bearer(token), "x-openkv-extensions": "1" },
    body: JSON.stringify({ supportedVersions: [2, 3] }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

/** Waits until a read server has a commit that the handle makes now; answers its versionstamp. */
async function caughtUp(server, kv) {
  const { versionstamp } = await kv.set(["mark"], 0);
  const has = async () =>
    (await (await get(server, "/api/keys/mark")).json()).versionstamp === versionstamp;
  await until(has, "the newest commit");
  return versionstamp;
}

test("a read server answers eventual reads, and strong ones and writes go to its primary", async () => {
  const { primary, link, kv } = await started();
  const near = await follow(link.url);
  const { endpoints, databaseId } = await metadata(near);
  assert.deepEqual(endpoints, [
    { url: `${link.url}v2`, consistency: "strong" },
    { url: "./v2", consistency: "eventual" },
  ]);
  assert.equal((await metadata(primary)).databaseId, databaseId);
  const client = await open(near.url, { accessToken, timeout: 2000 });
  const { versionstamp } = await client.set(["written"], 1);
  assert.equal((await kv.get(["written"])).versionstamp, versionstamp);
  assert.equal((await client.get(["written"])).value, 1);
  await caughtUp(near, kv);
  assert.deepEqual(await all(client, eventual), await all(kv));
  await link.refuse();
  assert.equal((await client.get(["entry", "7"], eventual)).value.n, 7);
  const many = await client.getMany([["written"], ["none"]], eventual);
  assert.deepEqual(
    many.map(({ value }) => value),
    [1, null],
  );
  assert.equal((await all(client, eventual)).length, 52);
  await assert.rejects(client.get(["entry", "7"]), { code: "UNAVAILABLE" });
  await assert.rejects(client.set(["entry", "7"], 0), { code: "UNAVAILABLE" });
  await link.accept();
  assert.equal((await client.get(["entry", "7"])).value.n, 7);
});

test("the HTTP API of a read server reads, watches, and names the primary for all else", async () => {
  const { link, kv } = await started();
  const near = await follow(link.url);
  assert.equal(
    (await (await get(near, "/api/keys?prefix=entry&limit=100")).json()).entries.length,
    50,
  );
  const stream = await get(near, "/api/watch/prefix?prefix=live");
  assert.equal(stream.status, 200);
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  await kv.set(["live", 1], "shown");
  for (let text = ""; !text.includes("shown"); ) text += (await reader.read()).value;
  await reader.cancel();
  const other = link.url.replace(/\/$/, "");
  const write = await fetch(`${near.url}/api/keys/entry/1`, {
    method: "PUT",
    headers: { ...bearer(accessToken), "content-type": "application/json" },
    body: "1",
  });
  for (const refused of [write, await get(near, "/api/queue/stats?queue=a")]) {
    assert.equal(refused.status, 421);
    assert.equal((await refused.json()).leader, other);
  }
  assert.equal((await kv.get(["entry", "1"])).value.n, 1);
  const text = await (await get(near, "/metrics")).text();
  assert.match(text, /^openkv_replica_state\{database="",state="following"\} 1$/m);
  assert.match(text, /^openkv_replica_lag_seconds\{database=""\} \d/m);
  const { replica } = await (await get(near, "/api/metrics")).json();
  assert.equal(replica.state, "following");
  assert.equal(replica.copies, 1);
});

test("clients of a read server present the tokens of its primary", async () => {
  const { link } = await started();
  const near = await follow(link.url);
  const wrong = "a-wrong-token";
  assert.equal((await get(near, "/api/keys/entry/1", wrong)).status, 401);
  await assert.rejects(open(near.url, { accessToken: wrong }), { code: "DENIED" });
  const { token } = await metadata(near, readToken);
  // A token of the data path is none of the HTTP API, and the reverse.
  assert.equal((await get(near, "/api/keys/entry/1", token)).status, 401);
  const reader = await open(near.url, { accessToken: readToken });
  assert.equal((await reader.get(["entry", "3"], eventual)).value.n, 3);
  await assert.rejects(reader.set(["entry", "3"], 0), { code: "DENIED" });
  await link.refuse();
  // What is known stays good for a time; nothing is known of another token.
  assert.equal((await get(near, "/api/keys/entry/1")).status, 200);
  assert.equal((await get(near, "/api/keys/entry/1", accessToken)).status, 503);
  await link.accept();
  assert.equal((await get(near, "/api/keys/entry/1", accessToken)).status, 200);
});

test("a primary names an advertised read server while it follows", async () => {
  const { primary, link, kv } = await started();
  const first = await metadata(primary);
  assert.deepEqual(first.endpoints, [{ url: "./v2", consistency: "strong" }]);
  const near = await follow(link.url, { replicaToken: accessToken });
  const url = near.url;
  await near.close();
  const advertised = {
    replicaToken: accessToken,
    listen: new URL(url).host,
    advertise: url,
    region: "eu-1",
  };
  const again = await follow(link.url, advertised);
  const named = async () => (await metadata(primary)).endpoints.slice(1);
  const told = await until(async () => {
    const endpoints = await named();
    return endpoints.length === 1 && endpoints;
  }, "the endpoint");
  assert.deepEqual(told, [{ url: `${url}/v2`, consistency: "eventual" }]);
  await caughtUp(again, kv);
  // A client of the primary reads at the read server, also while the primary is gone.
  const client = await open(link.url, { accessToken, timeout: 1500 });
  assert.equal((await client.get(["entry", "5"], eventual)).value.n, 5);
  await link.refuse();
  assert.equal((await client.get(["entry", "6"], eventual)).value.n, 6);
  await assert.rejects(client.get(["entry", "6"]), { code: "UNAVAILABLE" });
  await link.accept();
  await again.close();
  await until(async () => (await named()).length === 0, "no endpoint");
});

test("a client reads at the read server that answers soonest, and at another one when that is gone", async () => {
  const { primary, kv } = await started();
  const places = [];
  for (const [name, delay] of [
    ["far", 500],
    ["near", 0],
  ]) {
    const listen = `127.0.0.1:${await freePort()}`;
    const link = await linkTo(`http://${listen}/`);
    link.delay = delay;
    const advertise = link.url.replace(/\/$/, "");
    const options = { replicaToken: accessToken, listen, advertise, region: name };
    await caughtUp(await follow(primary.url, options), kv);
    places.push(link);
  }
  const [far, near] = places;
  const named = async () => (await metadata(primary)).endpoints.length === 3;
  await until(named, "both endpoints");
  const client = await open(primary.url, { accessToken, timeout: 3000 });
  const read = async (n) =>
    assert.equal((await client.get(["entry", `${n}`], eventual)).value.n, n);
  for (let n = 0; n < 4; n++) await read(n);
  const before = far.bytes;
  for (let n = 0; n < 40; n++) await read(n);
  assert.equal(far.bytes, before);
  await near.refuse();
  // At the far one or at the primary, whichever is known to be sooner.
  for (let n = 0; n < 4; n++) await read(n);
});

test("only the highest rights advertise, and the admin API shows who follows", async () => {
  const adminToken = "an-admin-token";
  const primary = await startServer({ path: `${fresh()}/`, adminToken });
  const admin = async (path, init) => {
    const answer = await fetch(`${primary.url}/v1/admin/databases${path}`, {
      headers: bearer(adminToken),
      ...init,
    });
    return answer.json();
  };
  const post = (body) => ({ method: "POST", body: JSON.stringify(body) });
  const { token } = await admin("", post({ name: "shop" }));
  const { token: writeToken } = await admin("/shop/tokens", post({ rights: "write" }));
  const kv = await open(`${primary.url}/shop`, { accessToken: token });
  await kv.set(["entry", "0"], 0);
  const replicaOf = `${primary.url}/shop`;
  const advertise = "http://127.0.0.1:1";
  const refused = await startServer({
    path: fresh(),
    replicaOf,
    replicaToken: writeToken,
    advertise,
  });
  await until(async () => {
    const answer = await get(refused, "/api/keys/entry/0", token);
    return answer.status === 503 && /highest rights/.test(await answer.text());
  }, "the refusal");
  const options = { path: fresh(), replicaOf, replicaToken: token, advertise, region: "eu-1" };
  const near = await startServer(options);
  await until(async () => (await get(near, "/api/keys/entry/0", token)).ok, "a copy");
  const plain = await open(replicaOf, { accessToken: token, replica: ":memory:" });
  await plain.replica.ready();
  const { versionstamp } = await kv.set(["entry", "1"], 1);
  await plain.replica.reached(versionstamp);
  const seen = async () =>
    (await admin("/shop")).replicas.filter((of) => of.version === versionstamp);
  await until(async () => (await seen()).length === 2, "both followers");
  const [read] = (await seen()).filter((of) => of.url !== undefined);
  assert.deepEqual(read, { url: advertise, region: "eu-1", version: versionstamp, complete: true });
});

test("a replica and a read server follow a read server", async () => {
  const { link, kv } = await started();
  const first = await follow(link.url);
  const between = await linkTo(first.url);
  const second = await follow(between.url);
  const replica = await open(between.url, { accessToken, replica: ":memory:", timeout: 2000 });
  await replica.replica.ready();
  const { versionstamp } = await replica.set(["through"], 1);
  await replica.replica.reached(versionstamp);
  assert.equal(replica.getSync(["through"], eventual).value, 1);
  await replica.replica.reached(await caughtUp(second, kv));
  assert.deepEqual(await all(replica, eventual), await all(kv));
  const text = await (await get(second, "/api/keys/through")).json();
  assert.equal(text.versionstamp, versionstamp);
  // It follows the read server, not the primary.
  const isDisconnected = async () => (await replica.replica.status()).state === "disconnected";
  await between.refuse();
  await until(isDisconnected, "the loss of the read server");
  await between.accept();
  await link.refuse();
  await until(async () => !(await isDisconnected()), "the read server again");
  assert.equal((await all(replica, eventual)).length, 52);
});

test("a watch waits for an own write that the replica does not have", async () => {
  const { link } = await started();
  const between = await linkTo((await follow(link.url)).url);
  const near = await open(between.url, { accessToken, replica: ":memory:", timeout: 2000 });
  await near.replica.ready();
  await near.replica.reached((await near.set(["own"], 1)).versionstamp);
  await between.refuse();
  // The write goes to the primary, past the read server.
  await near.set(["own"], 2);
  const signal = AbortSignal.timeout(200);
  const ended = near.watch([["own"]], { signal }).getReader();
  assert.deepEqual(await ended.read(), { done: true, value: undefined });
  const state = near
    .watch([["own"]])
    .getReader()
    .read();
  const changes = near.watch({ prefix: [] }).getReader().read();
  await between.accept();
  assert.equal((await state).value[0].value, 2);
  await near.set(["own"], 3);
  assert.equal((await changes).value.changes[0].value, 3);
  await between.refuse();
  await near.set(["own"], 4);
  const closed = near
    .watch([["own"]])
    .getReader()
    .read();
  near.close();
  assert.equal((await closed).done, true);
});

test("a read server goes on where it was, and starts without its primary once it has a copy", async () => {
  const { link, kv } = await started();
  const path = fresh();
  const near = await follow(link.url, { path });
  await caughtUp(near, kv);
  await near.close();
  await kv.delete(["entry", "0"]);
  await kv.set(["entry", "1"], "later");
  await link.refuse();
  const options = { path, replicaOf: link.url, replicaToken: readToken, listen: "127.0.0.1:0" };
  await assert.rejects(serve({ ...options, path: fresh() }), {
    code: "UNAVAILABLE",
    message: /failed to connect to '.*Nothing has been copied yet/,
  });
  const again = await startServer(options);
  assert.equal((await get(again, "/readyz")).status, 200);
  // The primary alone knows tokens.
  assert.equal((await get(again, "/api/keys/entry/1")).status, 503);
  await link.accept();
  await until(async () => (await get(again, "/api/keys/entry/0")).status === 404, "the changes");
  await caughtUp(again, kv);
  const { replica } = await (await get(again, "/api/metrics")).json();
  assert.equal(replica.copies, 0);
  await again.close();
  const reader = await openKv(path, { readonly: true });
  assert.deepEqual(await all(reader), await all(kv));
  await reader.close();
});

test("the file of a read server is a replica of its primary, or nothing is changed", async () => {
  const { link, kv } = await started();
  const path = fresh();
  const own = await openKv(path);
  await own.set(["own"], 1);
  await own.close();
  const options = { path, replicaOf: link.url, replicaToken: readToken, listen: "127.0.0.1:0" };
  await assert.rejects(serve(options), { code: "DENIED", message: /a database of its own/ });
  await assert.rejects(serve({ ...options, path: fresh(), replicaToken: "a-wrong-token" }), {
    code: "DENIED",
  });
  const after = await openKv(path);
  assert.equal((await after.get(["own"])).value, 1);
  await after.close();
  assert.equal((await all(kv)).length, 50);
});
