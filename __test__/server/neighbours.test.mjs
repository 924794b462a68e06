// Duty: tenants that take no answers, or export slowly, keep neither their neighbours nor their own writers waiting.
//
// Two tenants within their quotas asked over HTTP/2 with a window of 0. Each unread answer kept the
// place of its request, so that the two held all requests of the server, and a third tenant's get of
// a small entry waited for 10 s and got 503.

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { sleep, until } from "../kit/time.mjs";
import { message } from "../remote/protobuf.mjs";
import {
  adminToken,
  fill,
  serveTenants,
  slowExports,
  takeNothing,
  tenant,
  untaken,
} from "./neighbours.mjs";

/** Of crates/core/src/model/limits/server.rs. */
const DATABASE_REQUESTS_MAX = 512;

test("two tenants that take no answers do not keep a third one waiting", async () => {
  const { beside, attacks } = await untaken(12, 1);
  assert.deepEqual(Object.keys(beside.statuses), ["200"]);
  for (const { asked, closed, statuses } of attacks) {
    assert.ok(asked > 100 && statuses[200] > 0, JSON.stringify(statuses));
    assert.ok(closed > 0, "a connection that takes nothing is closed");
  }
});

// A read token exported over HTTP/2 with a window of 0. The log that its snapshot kept counted towards the quota, so
// that a third of these writes was 429.
test("a read token that exports and takes nothing does not stop the writer", async () => {
  const { written, beside, attack } = await slowExports({ bytes: 100_000_000, seconds: 60 }, 0);
  assert.deepEqual(Object.keys(written.statuses), ["200"]);
  assert.deepEqual(Object.keys(beside.statuses), ["200"]);
  assert.ok(attack.statuses[200] > 0, JSON.stringify(attack.statuses));
});

// One connection with a window of 0 kept all requests of its database, until it was closed.
test("a connection that takes nothing leaves places to the others of its tenant", async () => {
  const server = await serveTenants("neighbours-own");
  const own = await tenant(server, "own");
  await fill(own, 1);
  const attack = takeNothing(server, own, "/keys/small", 1);
  await until(() => attack.told.asked > DATABASE_REQUESTS_MAX + 50, "more requests than places");
  const { status } = await own.call("GET", "/keys/small");
  const { closed } = attack.told;
  attack.end();
  await server.end();
  assert.equal(status, 200);
  assert.equal(closed, 0, "the other connection is served while this one goes on");
});

// A poll that waited kept the place of its request, so that as many polls with a read token stopped a database.
test("polls that wait take no places of running requests", async () => {
  const server = await serveTenants("neighbours-polls");
  const own = await tenant(server, "own");
  await fill(own, 1);
  const ending = new AbortController();
  const ask = (path, token) =>
    fetch(server.url + path, {
      headers: { authorization: `Bearer ${token}` },
      signal: ending.signal,
    });
  const poll = `${own.api}/watch/poll?keys=none&versionstamps=null&wait=60000`;
  for (let n = 0; n < DATABASE_REQUESTS_MAX + 50; n++) ask(poll, own.readToken).catch(() => {});
  const watches = async () =>
    (await (await ask("/v1/admin/databases", adminToken)).json())[0].watches;
  await until(async () => (await watches()) > DATABASE_REQUESTS_MAX, "more polls than places");
  const { status } = await own.call("GET", "/keys/small");
  ending.abort();
  await server.end();
  assert.equal(status, 200);
});

// Each stream kept a piece of up to a megabyte for a client with a window of 0: together all the memory that the
// database has for long answers, which waited and were refused.
test("streams that nobody reads keep no memory", async () => {
  const server = await serveTenants("neighbours-streams");
  const own = await tenant(server, "own");
  const session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
  session.on("error", () => {});
  const open = (path) => {
    const authorization = `Bearer ${own.readToken}`;
    const stream = session.request({ ":path": own.api + path, authorization });
    stream.on("error", () => {});
    stream.end();
    return once(stream, "response");
  };
  // The first stream turns the log on.
  await open("/watch/prefix?prefix=large");
  const answer = await own.call("PUT", "/keys/small", "1", "application/json");
  const { versionstamp } = JSON.parse(answer.text);
  await fill(own, 10);
  const since = `/watch/prefix?prefix=large&since=${versionstamp}`;
  await Promise.all(Array.from({ length: 250 }, () => open(since)));
  await sleep(500);
  const { status } = await own.call("GET", "/keys?prefix=large");
  const { destroyed } = session;
  session.destroy();
  await server.end();
  assert.equal(status, 200);
  assert.equal(destroyed, false, "streams may wait for their reader");
});

/** Opens watches of KV Connect of these keys, whose answers nobody takes. Returns how many there are. */
async function watchAndTakeNothing(server, { name, readToken }, keys, count) {
  const answer = await fetch(`${server.url}/${name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${readToken}`, "content-type": "application/json" },
    body: JSON.stringify({ supportedVersions: [3] }),
  });
  const { databaseId, endpoints, token } = await answer.json();
  const session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
  session.on("error", () => {});
  // Watch { keys: [WatchKey { key }] }, whose key is one text.
  const watch = message(...keys.map((key) => [1, message([1, Buffer.from(`\x02${key}\x00`)])]));
  const open = () => {
    const stream = session.request({
      ":method": "POST",
      ":path": `${new URL(endpoints[0].url, answer.url).pathname}/watch`,
      authorization: `Bearer ${token}`,
      "x-denokv-database-id": databaseId,
      "x-denokv-version": "3",
    });
    stream.on("error", () => {});
    stream.end(watch);
    return once(stream, "response");
  };
  const answers = await Promise.all(Array.from({ length: count }, open));
  return { session, statuses: new Set(answers.map(([headers]) => headers[":status"])) };
}

// The HTTP library asks for one piece before it knows whether the client takes any. Each watch kept its first state.
test("watches of KV Connect that nobody reads keep no memory", async () => {
  const server = await serveTenants("neighbours-connect");
  const own = await tenant(server, "own");
  await own.call("PUT", "/keys/small", "1", "application/json");
  const keys = Array.from({ length: 10 }, (_, n) => `large${n}`);
  for (const key of keys) await own.call("PUT", `/keys/${key}`, Buffer.alloc(60_000, 1));
  const { session, statuses } = await watchAndTakeNothing(server, own, keys, 250);
  // Each write is news for each watch.
  for (const key of keys) await own.call("PUT", `/keys/${key}`, Buffer.alloc(60_000, 2));
  await sleep(500);
  const { status } = await own.call("GET", "/keys?limit=20");
  const written = await own.call("PUT", "/keys/small", "2", "application/json");
  const { destroyed } = session;
  session.destroy();
  await server.end();
  assert.deepEqual([...statuses], [200]);
  assert.deepEqual([status, written.status], [200, 200]);
  assert.equal(destroyed, false, "streams may wait for their reader");
});
