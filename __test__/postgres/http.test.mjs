// Duty: the HTTP API of servers in front of one PostgreSQL: writes at a server that does not lead, long
// answers, and what such a database lacks.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Cluster, createAt, endpointsOf } from "../kit/cluster.mjs";
import { open } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { caller } from "../server/http/calling.mjs";

const skip = process.platform === "win32" && "Windows has no PostgreSQL for tests";
const LINES = "application/x-ndjson";

const clusters = [];
after(() => Promise.all(clusters.map((cluster) => cluster.close())));

/** Two servers of the database `shop`, the leading one first, and calls of their APIs. */
async function pair(options) {
  const cluster = await Cluster.create();
  clusters.push(cluster);
  const servers = [await cluster.start(options), await cluster.start(options)];
  const accessToken = await createAt(servers, "shop");
  const kv = await open(`${servers[1].url}/shop`, { accessToken, timeout: 60_000 });
  await kv.set(["first"], 1);
  const leads = async (server) => (await endpointsOf(server, "shop", accessToken)).length === 1;
  if (!options?.forward && !(await leads(servers[0]))) servers.reverse();
  const calls = servers.map(({ url }) => caller(`${url}/shop/api`, accessToken));
  if (options?.forward) {
    // A server hears of a new leader when it next asks PostgreSQL; an import does not wait for that.
    const writes = async () => (await calls[0]("PUT", "/keys/first", { body: 1 })).status === 200;
    await until(writes, "the first server knows the leader");
  }
  return { servers, calls, kv };
}

test("a server that does not lead names the leader for writes, and reads itself", {
  skip,
}, async () => {
  const { servers, calls, kv } = await pair();
  const [leading, other] = calls;
  const line = '{"key":["b"],"value":{"type":"number","value":2}}\n';
  for (const [method, path, request] of [
    ["PUT", "/keys/a", { body: 1 }],
    ["POST", "/atomic", { body: { mutations: [{ type: "delete", key: ["a"] }] } }],
    ["POST", "/import", { body: line, type: LINES }],
    ["GET", "/queue/poll", {}],
    ["GET", "/queue/listen", {}],
  ]) {
    const { status, body } = await other(method, path, request);
    assert.deepEqual([status, body.code], [421, "MISDIRECTED"], path);
    assert.equal(body.leader, servers[0].url, path);
  }
  assert.equal((await leading("PUT", "/keys/a", { body: 1 })).status, 200);
  const imported = await leading("POST", "/import", { body: line, type: LINES });
  assert.deepEqual(imported.body, { imported: 1, skipped: 0 });
  assert.equal((await other("GET", "/keys/a")).body.value, 1);
  const exported = await other("GET", "/export");
  assert.equal(exported.bytes.toString().split("\n").length - 1, 3);
  assert.equal(await kv.count({ prefix: [] }), 3);
});

test("with forward a server hands requests over, also long bodies", { skip }, async () => {
  const { calls } = await pair({ forward: true });
  for (const [at, call] of calls.entries()) {
    const text = Array.from({ length: 2000 }, (_, n) => {
      const key = `[{"type":"string","value":"s${at}"},{"type":"number","value":${n}}]`;
      return `{"key":${key},"value":{"type":"number","value":${n}}}\n`;
    });
    const done = await call("POST", "/import", { body: text.join(""), type: LINES });
    assert.deepEqual(done.body, { imported: 2000, skipped: 0 });
    assert.equal((await call("PUT", `/keys/put/${at}`, { body: at })).status, 200);
    assert.equal((await call("GET", `/keys/count?prefix=s${at}`)).body.count, 2000);
  }
});

test("what a database on PostgreSQL lacks is refused by name", { skip }, async () => {
  const { calls } = await pair();
  for (const [method, path, request] of [
    ["GET", "/backup", {}],
    ["GET", "/search?prefix=a&query=x", {}],
  ]) {
    const { status, body } = await calls[0](method, path, request);
    assert.deepEqual([status, body.code], [422, "UNSUPPORTED"], `${path}: ${body.detail}`);
  }
});
