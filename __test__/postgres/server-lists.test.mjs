// Duty: a client with the URLs of all servers in front of one PostgreSQL, whose leader is killed.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Cluster, createAt, endpointsOf } from "../kit/cluster.mjs";
import { open } from "../kit/server.mjs";
import { guard, HANG_MS } from "../kit/time.mjs";

const clusters = [];
after(() => Promise.all(clusters.map((cluster) => cluster.close())));

test("calls, a watch and a listener of one handle continue at the next leader", async () => {
  const cluster = await Cluster.create();
  clusters.push(cluster);
  const servers = [await cluster.start(), await cluster.start(), await cluster.start()];
  const accessToken = await createAt(servers, "shop");
  const list = servers.map(({ url }) => `${url}/shop`).join(",");
  const kv = await open(list, { accessToken, timeout: 30_000 });
  await kv.set(["n"], 0);
  const reader = kv.watch([["n"]]).getReader();
  assert.equal((await guard(reader.read(), HANG_MS, "a state")).value[0].value, 0);
  let received;
  const message = new Promise((resolve) => (received = resolve));
  const listening = kv.listenQueue(received);

  const told = await Promise.all(servers.map((at) => endpointsOf(at, "shop", accessToken)));
  const leader = servers[told.findIndex((endpoints) => endpoints.length === 1)];
  await cluster.kill(leader);
  // The first one may have been sent by a connection that ended meanwhile; the others must happen.
  await kv.set(["n"], 1).catch((error) => assert.equal(error.code, "OUTCOME_UNKNOWN"));
  const calls = Array.from({ length: 20 }, (_, i) => kv.set(["at", i], i));
  assert.ok((await Promise.all(calls)).every(({ ok }) => ok));
  await kv.set(["n"], 2);
  await kv.enqueue("hello");
  assert.equal((await kv.get(["n"])).value, 2);
  for (let seen = 0; seen !== 2; ) {
    seen = (await guard(reader.read(), HANG_MS, "the last state")).value[0].value;
  }
  assert.equal(await guard(message, HANG_MS, "the message"), "hello");
  kv.close();
  await listening;
});
