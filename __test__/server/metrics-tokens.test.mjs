// Duty: tokens with the rights `metrics`, of a database and of the server, by the admin API and the command line.
//
// A scraper of `GET /metrics` of a folder needed the admin token, which drops databases.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { caller } from "./http/calling.mjs";
import { adminToken, freshPath, start } from "./serving.mjs";

/** A server of a folder with a database `shop`, and calls of its admin. */
async function started() {
  const path = `${freshPath()}/`;
  const server = await start({ path, adminToken });
  const admin = caller(server.url, adminToken);
  const made = await admin("POST", "/v1/admin/databases", { body: { name: "shop" } });
  const first = made.body.token;
  await caller(`${server.url}/shop/api`, first)("PUT", "/keys/secret", { body: 1 });
  return { path, server, admin, first };
}

/** Every route of the server with a token, by the document and the admin API. */
async function refusals(server, token) {
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
  const routes = Object.entries(paths).flatMap(([path, item]) =>
    ["get", "put", "post", "delete"]
      .filter((method) => item[method])
      .map((method) => [method.toUpperCase(), path]),
  );
  routes.push(
    ["POST", "/{database}"],
    ["GET", "/v1/admin/databases"],
    ["POST", "/v1/admin/databases"],
    ["GET", "/v1/admin/databases/shop"],
    ["GET", "/v1/admin/tokens"],
    ["POST", "/v1/admin/tokens"],
    ["POST", "/v1/admin/databases/shop/tokens"],
    ["GET", "/metrics"],
  );
  const call = caller(server.url, token);
  const found = await Promise.all(
    routes.map(async ([method, route]) => {
      const path = route.replace("{database}", "shop").replace(/\{\w+\}/, "a");
      return [`${method} ${route}`, (await call(method, path)).status];
    }),
  );
  return found;
}

test("a token of a database reads its metrics, and nothing else", async () => {
  const { server, admin } = await started();
  const rights = { body: { rights: "metrics" } };
  const { status, body } = await admin("POST", "/v1/admin/databases/shop/tokens", rights);
  assert.equal(status, 201);
  const open = ["GET /{database}/api/metrics", "GET /{database}/api/metrics/prometheus"];
  for (const [route, status] of await refusals(server, body.token)) {
    if (open.includes(route)) assert.equal(status, 200, route);
    else assert.ok([401, 403].includes(status), `${route}: ${status}`);
  }
  const text = await caller(server.url, body.token)("GET", "/shop/api/metrics/prometheus");
  assert.match(text.body, /openkv_operations_total\{operation="set"\} 1/);
  await assert.rejects(openKv(`${server.url}/shop`, { accessToken: body.token }), {
    code: "DENIED",
    message: /it may only read metrics/,
  });
});

test("a token of the server reads the metrics of all databases, and nothing else", async () => {
  const { server, admin, first } = await started();
  const { status, body } = await admin("POST", "/v1/admin/tokens", { body: { rights: "metrics" } });
  assert.equal(status, 201);
  assert.equal(body.rights, "metrics");
  for (const [route, status] of await refusals(server, body.token)) {
    if (route === "GET /metrics") assert.equal(status, 200, route);
    else assert.ok([401, 403].includes(status), `${route}: ${status}`);
  }
  const scraped = await caller(server.url, body.token)("GET", "/metrics");
  assert.match(scraped.body, /openkv_operations_total\{database="shop",operation="set"\} 1/);
  for (const rights of ["read", "write", "admin"]) {
    const refused = await admin("POST", "/v1/admin/tokens", { body: { rights } });
    assert.equal(refused.status, 400);
    assert.match(refused.body.detail, /has the rights 'metrics'/);
  }
  // An admin of a database makes tokens of that, and none of the server.
  const own = await caller(server.url, first)("POST", "/v1/admin/tokens", {
    body: { rights: "metrics" },
  });
  assert.equal(own.status, 401);
  const listed = (await admin("GET", "/v1/admin/tokens")).body;
  assert.deepEqual(
    listed.map(({ id, rights, token }) => ({ id, rights, token })),
    [{ id: body.id, rights: "metrics", token: undefined }],
  );
  assert.equal((await admin("DELETE", `/v1/admin/tokens/${body.id}`)).status, 204);
  assert.equal((await admin("DELETE", `/v1/admin/tokens/${body.id}`)).status, 404);
  assert.equal((await caller(server.url, body.token)("GET", "/metrics")).status, 401);
});

test("the registry keeps them, in a format that earlier versions refuse", async () => {
  const { path, server, admin } = await started();
  const registry = join(path, "openkv-server.json");
  const format = () => JSON.parse(readFileSync(registry, "utf8")).format;
  assert.equal(format(), 1);
  const of = (place) => admin("POST", place, { body: { rights: "metrics" } });
  const one = (await of("/v1/admin/databases/shop/tokens")).body;
  assert.equal(format(), 3);
  const two = (await of("/v1/admin/tokens")).body;
  await server.close();
  assert.ok(!readFileSync(registry, "utf8").includes(two.token));
  const again = await start({ path, adminToken });
  assert.equal((await caller(again.url, two.token)("GET", "/metrics")).status, 200);
  assert.equal((await caller(again.url, one.token)("GET", "/shop/api/metrics")).status, 200);
  const admin2 = caller(again.url, adminToken);
  await admin2("DELETE", `/v1/admin/tokens/${two.id}`);
  await admin2("DELETE", `/v1/admin/databases/shop/tokens/${one.id}`);
  assert.equal(format(), 1);
  await again.close();
  // A later version's, with rights of which this one has not heard.
  const later = JSON.parse(readFileSync(registry, "utf8"));
  later.format = 5;
  later.databases[0].tokens[0].rights = "search";
  const text = JSON.stringify(later);
  writeFileSync(registry, text);
  await assert.rejects(serve({ path, adminToken, listen: "127.0.0.1:0" }), {
    code: "UNSUPPORTED",
    message: /has format 5; this openkv knows 1 to 4: update openkv/,
  });
  assert.equal(readFileSync(registry, "utf8"), text);
});

test("the command line creates, lists and revokes them", async () => {
  const { server } = await started();
  const at = ["--server", server.url, "--admin-token", adminToken];
  const json = async (...args) => {
    const { code, out, err } = await openkv("--json", ...args, ...at);
    assert.equal(code, 0, err);
    return out
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  const [of] = await json("token", "create", "--rights", "metrics");
  const [shop] = await json("token", "create", "shop", "--rights", "metrics");
  assert.equal((await caller(server.url, of.token)("GET", "/metrics")).status, 200);
  assert.equal((await caller(server.url, shop.token)("GET", "/shop/api/metrics")).status, 200);
  assert.deepEqual(
    (await json("token", "list")).map(({ id }) => id),
    [of.id],
  );
  assert.ok((await json("token", "list", "shop")).some(({ id }) => id === shop.id));
  const wrong = await openkv("token", "create", "--rights", "read", ...at);
  assert.deepEqual([wrong.code, /one of a database: give its name/.test(wrong.err)], [2, true]);
  await json("token", "revoke", of.id);
  await json("token", "revoke", "shop", shop.id);
  assert.equal((await caller(server.url, of.token)("GET", "/metrics")).status, 401);
  assert.equal((await caller(server.url, shop.token)("GET", "/shop/api/metrics")).status, 401);
});
