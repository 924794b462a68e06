// Duty: admission to the HTTP API: every route with every wrong token, hosts, origins, quotas, and
// servers without tokens. The routes are those of the OpenAPI document.

import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "../../kit/server.mjs";
import { accessToken, adminToken, folder, freshPath, serveFile, start } from "../serving.mjs";
import { caller, readToken, serveApi } from "./calling.mjs";

const METHODS = ["get", "put", "post", "delete"];

/** Routes that write, take messages, or give out everything, by other methods than PUT and DELETE. */
const WRITING =
  /atomic|delete-batch|import|backup|queue\/(?:enqueue|poll|listen|ack|nack|extend|progress$|pause|resume|drain)|cancel|requeue|post .*indexes/;

/** Streams, with a parameter that is refused: they would not end. */
const ENDLESS = [
  ["/watch/prefix", "limit=0"],
  ["/queue/listen", "concurrency=0"],
];

/** The requests of the document: `[method, path]`, with values for the parameters of paths. */
async function routes(url, database) {
  const { paths } = await (await fetch(`${url}/openapi.json`)).json();
  return Object.entries(paths).flatMap(([path, item]) => {
    const named = path.replace("{database}", database).replace("{path}", "a").replace("{id}", "1");
    const [, refused] = ENDLESS.find(([route]) => named.endsWith(route)) ?? [];
    const filled = refused ? `${named}?${refused}` : named;
    return METHODS.filter((method) => item[method]).map((method) => ({
      method: method.toUpperCase(),
      path: filled,
      writes: ["put", "delete"].includes(method) || WRITING.test(`${method} ${path}`),
    }));
  });
}

/** A status, with `host` as the header. */
function statusWith(url, headers) {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (answer) => resolve(answer.resume().statusCode))
      .on("error", reject)
      .end();
  });
}

test("every route refuses every wrong token before it reads a body", async () => {
  const { server } = await serveApi();
  const other = await serveApi();
  const found = await routes(server.url, "");
  assert.ok(found.length >= 15, `${found.length} routes`);
  const call = caller(server.url);
  for (const { method, path, writes } of found) {
    const status = async (token) => (await call(method, path, { token })).status;
    for (const token of [null, "", "wrong-token", `${accessToken}x`, accessToken.slice(1)]) {
      assert.equal(await status(token), 401, `${method} ${path} ${token}`);
    }
    const read = await status(readToken);
    assert.equal(read === 403, writes, `${method} ${path}: ${read}`);
    assert.ok(![401, 403].includes(await status(accessToken)), `${method} ${path}`);
  }
  assert.equal((await other.call("GET", "/keys", { token: "x".repeat(20) })).status, 401);
});

test("a database of a folder accepts its own tokens and the admin token only", async () => {
  const server = await start({ path: join(folder(), "databases/"), adminToken });
  const admin = caller(server.url, adminToken);
  const made = {};
  for (const name of ["one", "two"]) {
    made[name] = (await admin("POST", "/v1/admin/databases", { body: { name } })).body.token;
  }
  const found = await routes(server.url, "one");
  for (const { method, path } of found) {
    const status = async (token) => (await admin(method, path, { token })).status;
    assert.equal(await status(made.two), 401, `${method} ${path}`);
    // The server's admin token has the rights of an admin's of each database.
    assert.ok(![401, 403].includes(await status(adminToken)), `${method} ${path}`);
    assert.ok(![401, 403].includes(await status(made.one)), `${method} ${path}`);
  }
  const one = caller(`${server.url}/one/api`, made.one);
  await one("PUT", "/keys/a", { body: 1 });
  assert.equal((await one("GET", "/keys/a")).body.value, 1);
  assert.equal((await admin("GET", "/none/api/keys", { token: made.one })).status, 401);
  const metrics = await admin("GET", "/metrics");
  assert.equal(metrics.status, 200);
  assert.match(metrics.body, /openkv_operations_total\{database="one",operation="set"\} 1/);
  assert.equal((await admin("GET", "/metrics", { token: made.one })).status, 401);
});

test("unknown routes and methods are problems", async () => {
  const { call } = await serveApi();
  const none = await call("GET", "/none");
  assert.deepEqual([none.status, none.body.code], [404, "NOT_FOUND"]);
  const method = await call("PATCH", "/keys/a");
  assert.deepEqual([method.status, method.body.code], [405, "METHOD_NOT_ALLOWED"]);
});

test("a request that names another host is refused, by the API alone", async () => {
  const { server } = await serveApi({ publicUrl: "https://kv.example.com/" });
  const authorization = `Bearer ${accessToken}`;
  const status = (host, path = "/api/keys") =>
    statusWith(server.url + path, { host, authorization });
  assert.equal(await status(`127.0.0.1:${server.port}`), 200);
  assert.equal(await status("localhost"), 200);
  assert.equal(await status("kv.example.com"), 200);
  assert.equal(await status("evil.example.com"), 403);
  assert.equal(await status("10.0.0.1"), 403);
  assert.equal(await status("evil.example.com", "/openapi.json"), 403);
  assert.equal(await status("evil.example.com", "/metrics"), 403);
  assert.equal(await status("evil.example.com", "/healthz"), 200);
  const headers = { host: "evil.example.com", authorization };
  const body = JSON.stringify({ supportedVersions: [3] });
  const exchanged = await new Promise((resolve, reject) => {
    request(server.url, { method: "POST", headers }, (answer) => {
      resolve(answer.resume().statusCode);
    })
      .on("error", reject)
      .end(body);
  });
  assert.equal(exchanged, 200, "KV Connect works behind proxies");
});

test("pages of the origin in corsOrigin may use the API, and no others", async () => {
  const origin = "https://app.example.com";
  const { call } = await serveApi({ corsOrigin: origin });
  const asked = { "access-control-request-method": "PUT", origin };
  const preflight = await call("OPTIONS", "/keys/a", { token: null, headers: asked });
  assert.equal(preflight.status, 200);
  assert.equal(preflight.headers.get("access-control-allow-origin"), origin);
  assert.match(preflight.headers.get("access-control-allow-methods"), /PUT/);
  const headers = { ...asked, origin: "https://evil.example.com" };
  const refused = await call("OPTIONS", "/keys/a", { token: null, headers });
  assert.equal(refused.headers.get("access-control-allow-origin"), null);
  const without = await serveApi();
  const none = await without.call("GET", "/keys", { headers: { origin } });
  assert.equal(none.headers.get("access-control-allow-origin"), null);
});

test("a server without tokens serves this machine, and no pages of other sites", async () => {
  const server = await start({ path: freshPath() });
  const call = caller(`${server.url}/api`, null);
  assert.equal((await call("PUT", "/keys/a", { body: 1 })).status, 200);
  assert.equal((await call("GET", "/keys/a")).body.value, 1);
  assert.equal((await call("GET", "/keys/a", { token: "any-token-at-all" })).status, 200);
  const origin = "https://evil.example.com";
  assert.equal((await call("GET", "/keys", { headers: { origin } })).status, 403);
  assert.equal((await call("GET", "/keys", { headers: { origin: "null" } })).status, 403);
  const own = { origin: server.url };
  assert.equal((await call("GET", "/keys", { headers: own })).status, 200);
  const host = "evil.example.com";
  assert.equal(await statusWith(`${server.url}/api/keys`, { host }), 403);
  assert.equal(await statusWith(`${server.url}/`, { host }), 403);
  const metadata = await fetch(server.url, { method: "POST", body: '{"supportedVersions":[3]}' });
  assert.equal(metadata.status, 200);
});

test("quotas and limits are those of the data path", async () => {
  const server = await serveFile({ quotas: { operationsPerSecond: 2 } });
  const call = caller(`${server.url}/api`);
  const answers = await Promise.all(Array.from({ length: 6 }, () => call("GET", "/keys")));
  const over = answers.find(({ status }) => status === 429);
  assert.ok(over, answers.map(({ status }) => status).join());
  assert.equal(over.body.code, "OVER_QUOTA");
  assert.ok(Number(over.headers.get("retry-after")) >= 1);
  const path = freshPath();
  await open(path);
  const other = await serveApi({ path, readonly: true });
  const denied = await other.call("PUT", "/keys/a", { body: 1 });
  assert.deepEqual([denied.status, denied.body.code], [403, "DENIED"]);
  const third = await serveApi();
  const large = `"${"x".repeat(3 * 1024 * 1024)}"`;
  const refused = await third.call("PUT", "/keys/a", { body: large });
  assert.deepEqual([refused.status, refused.body.code], [413, "TOO_LARGE"]);
});

test("metrics are JSON, Prometheus' text and OpenMetrics", async () => {
  const { server, call } = await serveApi();
  await call("PUT", "/keys/a", { body: 1 });
  assert.equal((await call("GET", "/metrics")).body.commits, 1);
  const text = await call("GET", "/metrics/prometheus", { token: readToken });
  assert.match(text.headers.get("content-type"), /^text\/plain; version=0\.0\.4/);
  assert.match(text.body, /^openkv_commits_total 1$/m);
  const accept = "application/openmetrics-text; version=1.0.0";
  const open = await caller(server.url)("GET", "/metrics", { headers: { accept } });
  assert.match(open.headers.get("content-type"), /^application\/openmetrics-text/);
  assert.match(open.body, /^# TYPE openkv_commits counter$/m);
  assert.match(open.body, /^openkv_commits_total\{database=""\} 1$/m);
  assert.ok(open.body.endsWith("# EOF\n"));
});
