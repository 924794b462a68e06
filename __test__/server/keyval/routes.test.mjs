// Duty: every route of /keyval/api answers what routes.mjs says, in a file and in a folder of databases, and refuses wrong
// tokens, hosts and methods.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import { test } from "node:test";
import { page, written } from "../../../scripts/keyval-reference.mjs";
import { caller, readToken, serveApi } from "../http/calling.mjs";
import { accessToken, adminToken, folder, freshPath, serveFile, start } from "../serving.mjs";
import { ERROR, EVENTS, RAW, ROUTES, SAVE } from "./routes.mjs";

/** What differs between an answer and what is expected; saves what has a name. */
function difference(expected, got, saved, place = "") {
  const told = `${place}: ${JSON.stringify(got)}`;
  if (typeof expected === "function") return expected(got) ? undefined : told;
  if (expected instanceof RegExp) return expected.test(got) ? undefined : told;
  if (expected?.[SAVE] !== undefined) {
    saved[expected[SAVE]] = got;
    return typeof got === "string" && got !== "" ? undefined : told;
  }
  if (typeof expected !== "object" || expected === null)
    return Object.is(expected, got) ? undefined : told;
  if (typeof got !== "object" || got === null || Array.isArray(got) !== Array.isArray(expected))
    return told;
  const names = Object.keys(expected);
  if (Object.keys(got).sort().join() !== names.sort().join()) return told;
  return names
    .map((name) => difference(expected[name], got[name], saved, `${place}.${name}`))
    .find(Boolean);
}

const filled = (text, saved) =>
  text.replace(/\$(\w+)/g, (all, name) => (name in saved ? encodeURIComponent(saved[name]) : all));

function filledBody(body, saved) {
  if (body === undefined) return undefined;
  if (body?.[RAW] !== undefined) return body[RAW];
  const replaced = JSON.stringify(body).replace(/"\$(\w+)"/g, (all, name) =>
    name in saved ? JSON.stringify(saved[name]) : all,
  );
  return replaced;
}

/** The head of a stream of events, and its first event. */
async function firstEvent(url, headers) {
  const end = new AbortController();
  const response = await fetch(url, { headers, signal: end.signal });
  const { value } = await response.body.getReader().read();
  end.abort();
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    text: Buffer.from(value).toString(),
  };
}

async function follow({ route, steps }, call, base, headers) {
  const saved = {};
  for (const [method, path, body, expected] of steps) {
    const named = `${route}: ${method} ${path} ${JSON.stringify(body)}`;
    if (expected === EVENTS) {
      const { status, type, text } = await firstEvent(base + path, headers);
      assert.deepEqual([status, type], [200, "text/event-stream"], named);
      assert.match(text, /^event: /, named);
      continue;
    }
    const answer = await call(method, filled(path, saved), { body: filledBody(body, saved) });
    const status = expected?.[ERROR] ?? 200;
    assert.equal(answer.status, status, `${named}: ${JSON.stringify(answer.body)}`);
    const wanted = status === 200 ? expected : { error: expected.text };
    const type = answer.headers.get("content-type");
    if (typeof wanted !== "function" || path !== "/metrics/prometheus") {
      assert.equal(type, "application/json", named);
    } else assert.equal(type, "text/plain; version=0.0.4; charset=utf-8");
    assert.equal(difference(wanted, answer.body, saved), undefined, named);
  }
}

test("every route of a file answers what the list says", async () => {
  await Promise.all(
    ROUTES.map(async (route) => {
      const { server } = await serveApi();
      const base = `${server.url}/keyval/api`;
      await follow(route, caller(base), base, { authorization: `Bearer ${accessToken}` });
    }),
  );
});

test("every route of a database in a folder answers what the list says", async () => {
  const server = await start({ path: `${folder()}/keyval-many/` });
  const call = caller(server.url, null);
  for (const [at, route] of ROUTES.entries()) {
    const name = `d${at}`;
    const made = await call("POST", "/v1/admin/databases", { body: { name } });
    assert.ok(made.status < 300, JSON.stringify(made.body));
    const base = `${server.url}/${name}/keyval/api`;
    await follow(route, caller(base, null), base, {});
  }
});

/** A path of a route. */
const pathOf = (route) => route.split(" ")[1].replace("{*path}", "users/1").replace("{id}", "5");

test("wrong tokens are refused on every route, and a token that reads on those that write", async () => {
  const { server } = await serveApi();
  const call = caller(`${server.url}/keyval/api`);
  for (const { route, writes = false } of ROUTES) {
    const [method] = route.split(" ");
    const body = method === "GET" ? {} : { body: {} };
    for (const token of [null, "a-token-of-nobody", `${readToken}x`]) {
      const refused = await call(method, pathOf(route), { token, ...body });
      assert.equal(refused.status, 401, `${route} ${token}`);
      assert.deepEqual(Object.keys(refused.body), ["error"], route);
      assert.equal(refused.headers.get("www-authenticate"), "Bearer", route);
    }
    if (writes) {
      const refused = await call(method, pathOf(route), { token: readToken, ...body });
      assert.equal(refused.status, 403, route);
      assert.deepEqual(Object.keys(refused.body), ["error"], route);
    } else if (!route.startsWith("GET /watch")) {
      const allowed = await call(method, pathOf(route), { token: readToken, ...body });
      assert.ok([200, 400, 404].includes(allowed.status), `${route} ${allowed.status}`);
    }
  }
  const writing = ROUTES.filter(({ writes }) => writes).length;
  assert.ok(writing > 10 && writing < ROUTES.length);
});

test("other methods and paths, a database that there is not, and a body that is too long are errors", async () => {
  const { server, call: api } = await serveApi();
  const call = caller(`${server.url}/keyval/api`);
  for (const [method, path, status] of [
    ["PATCH", "/keys/a", 405],
    ["PUT", "/atomic", 405],
    ["GET", "/nothing", 404],
    ["GET", "", 404],
  ]) {
    const refused = await call(method, path);
    assert.equal(refused.status, status, `${method} ${path}`);
    assert.deepEqual(Object.keys(refused.body), ["error"]);
  }
  const long = await call("PUT", "/keys/a", { body: `"${"x".repeat(3 * 1024 * 1024)}"` });
  assert.deepEqual([long.status, Object.keys(long.body)], [400, ["error"]]);
  const coded = await call("PUT", "/keys/a", {
    body: "1",
    headers: { "content-encoding": "gzip" },
  });
  assert.deepEqual([coded.status, Object.keys(coded.body)], [400, ["error"]]);
  assert.equal((await api("GET", "/keys/count")).body.count, 0);
  const many = await start({ path: `${folder()}/keyval-none/`, adminToken });
  const none = await caller(`${many.url}/none/keyval/api`)("GET", "/keys");
  assert.equal(none.status, 401);
});

test("a server without tokens answers no other host and no page of another origin", async () => {
  const server = await start({ path: freshPath() });
  const ask = (headers) =>
    new Promise((resolve, reject) => {
      const request = http.get(`${server.url}/keyval/api/keys`, { headers }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode));
      });
      request.on("error", reject);
    });
  assert.equal(await ask({}), 200);
  assert.equal(await ask({ host: "evil.example.com" }), 403);
  assert.equal(await ask({ origin: "https://evil.example.com" }), 403);
});

test("keyvalStrings keeps whole numbers of paths as strings, and keyvalLockDuration locks messages as long", async () => {
  const server = await serveFile({ keyvalStrings: true, keyvalLockDuration: "100ms" });
  const call = caller(`${server.url}/keyval/api`);
  await call("PUT", "/keys/users/1", { body: '"Ada"' });
  const { body } = await call("GET", "/keys?prefix=users");
  assert.deepEqual(
    body.map(({ key }) => key),
    [["users", "1"]],
  );
  const { versionstamps } = (await call("GET", "/watch/prefix/poll?prefix=users")).body;
  assert.match(versionstamps, /^users\/1:/);
  const options = { backoffSchedule: [0] };
  await call("POST", "/queue/enqueue", { body: { value: 1, options } });
  const { message: first } = (await call("GET", "/queue/poll")).body;
  let second = null;
  while (second === null) second = (await call("GET", "/queue/poll")).body.message;
  assert.deepEqual([first.attempts, second.attempts], [1, 2]);
  assert.notEqual(first.id, second.id);
  // The one that was too late settles nothing.
  await call("POST", "/queue/ack", { body: { id: first.id } });
  assert.equal((await call("GET", "/queue/stats")).body.total, 1);
  await call("POST", "/queue/ack", { body: { id: second.id } });
  assert.equal((await call("GET", "/queue/stats")).body.total, 0);
});

test("docs/keyval.md has the table of the list", () => {
  assert.ok(readFileSync(page, "utf8") === written(), "run npm run generate");
});
