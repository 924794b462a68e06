// Duty: what a client sees of a refusal, over raw sockets and as a page of another origin.
//
// A body over the limit got its 413 only if the client had stopped sending: the server closed the socket with
// unread data, which resets it, and about half of the clients lost the answer. A body in a content coding was
// stored as it came, so every reader got compressed bytes. Refusals outside of the routes of the API had no
// CORS headers, so a page saw a network error instead of the reason.

import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { until } from "../../kit/time.mjs";
import { accessToken, adminToken, folder, freshPath, serveFile, start } from "../serving.mjs";
import { serveApi } from "./calling.mjs";

const origin = "https://app.example.com";
const OVER_BYTES = 8 * 1024 * 1024;

/** Sends a whole request, and only then reads: what came, and how the connection ended. */
async function sendThenRead(server, head, body) {
  const { hostname, port, host } = new URL(server.url);
  const socket = net.connect(Number(port), hostname);
  const found = { text: "", error: undefined };
  socket.on("error", (error) => {
    found.error ??= error.code;
  });
  socket.pause();
  const lines = [head, `host: ${host}`, `authorization: Bearer ${accessToken}`];
  await new Promise((resolve) => {
    socket.once("close", resolve);
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    socket.write(body, resolve);
  });
  socket.on("data", (data) => {
    found.text += data.toString("latin1");
  });
  socket.resume();
  await until(() => found.text.includes("\r\n\r\n") || socket.destroyed);
  return { ...found, socket };
}

test("a body over the limit gets its 413, and the connection its next request", async () => {
  const server = await serveFile();
  const type = "content-type: application/octet-stream";
  for (let time = 0; time < 5; time++) {
    const head = `PUT /api/keys/a HTTP/1.1\r\n${type}\r\ncontent-length: ${OVER_BYTES}`;
    const { text, error, socket } = await sendThenRead(server, head, Buffer.alloc(OVER_BYTES));
    assert.equal(error, undefined);
    assert.match(text, /^HTTP\/1.1 413 /);
    assert.match(text, /"code":"TOO_LARGE"/);
    let next = "";
    socket.on("data", (data) => {
      next += data.toString("latin1");
    });
    socket.write("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    await until(() => next.includes("HTTP/1.1 200 ") || socket.destroyed);
    assert.match(next, /HTTP\/1.1 200 /);
    socket.destroy();
  }
});

test("every refusal before the body reaches a client that is still sending", async () => {
  const server = await serveFile();
  for (const [head, status] of [
    ["PUT /api/nothing HTTP/1.1", 404],
    ["POST /api/keys/a HTTP/1.1", 405],
    ["PUT /api/keys/a HTTP/1.1\r\nauthorization: Basic eDp5", 401],
    ["POST /v2/atomic_write HTTP/1.1", 401],
    ["PUT /api/keys/a HTTP/1.1\r\ncontent-type: text/unknown", 415],
  ]) {
    const whole = `${head}\r\ncontent-length: ${OVER_BYTES}`;
    const { text, error, socket } = await sendThenRead(server, whole, Buffer.alloc(OVER_BYTES));
    assert.equal(error, undefined, head);
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `), head);
    socket.destroy();
  }
});

test("a client that holds its body back is not asked for it", async () => {
  const server = await serveFile();
  const head = "PUT /api/nothing HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 5";
  const { text, socket } = await sendThenRead(server, head, "");
  assert.match(text, /^HTTP\/1.1 404 /);
  assert.doesNotMatch(text, / 100 /);
  socket.destroy();
});

test("a body in a content coding is refused, and nothing is stored", async () => {
  const { server, call } = await serveApi();
  const body = gzipSync("true");
  for (const coding of ["gzip", "br", "identity, gzip", "x-gzip"]) {
    const headers = { "content-encoding": coding };
    for (const [method, path, type] of [
      ["PUT", "/keys/a", "application/json"],
      ["PUT", "/keys/a", "application/octet-stream"],
      ["POST", "/atomic", "application/json"],
      ["POST", "/import", "application/x-ndjson"],
    ]) {
      const refused = await call(method, path, { body, type, headers });
      assert.deepEqual([refused.status, refused.body.code], [415, "UNSUPPORTED_MEDIA_TYPE"], path);
    }
    const metadata = await fetch(server.url, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${accessToken}` },
      body: gzipSync('{"supportedVersions":[3]}'),
    });
    assert.equal(metadata.status, 415);
  }
  assert.equal((await call("GET", "/keys/a")).status, 404);
  const identity = { "content-encoding": "Identity" };
  assert.equal((await call("PUT", "/keys/a", { body: 1, headers: identity })).status, 200);
});

test("a missing authorization header is told from a malformed one", async () => {
  const { call } = await serveApi();
  const detail = async (headers) =>
    (await call("GET", "/keys", { token: null, headers })).body.detail;
  assert.match(await detail({}), /^Missing authorization header/);
  assert.match(await detail({ authorization: "Bearer" }), /^Malformed authorization header/);
  assert.match(await detail({ authorization: "Bearer another-token" }), /^Invalid access token/);
});

test("every refusal can be read by a page of the origin, and has a code", async () => {
  const { server } = await serveApi({ corsOrigin: origin, quotas: { operationsPerSecond: 0 } });
  const many = await start({ path: `${folder()}/many/`, adminToken, corsOrigin: origin });
  const at = (url, method, path, token, body) =>
    fetch(url + path, {
      method,
      body,
      headers: { origin, ...(token && { authorization: `Bearer ${token}` }) },
    });
  for (const [url, method, path, token, status, code, body] of [
    [server.url, "GET", "/nothing", accessToken, 404, "NOT_FOUND"],
    [server.url, "GET", "/api/nothing", accessToken, 404, "NOT_FOUND"],
    [server.url, "PATCH", "/api/keys/a", accessToken, 405, "METHOD_NOT_ALLOWED"],
    [server.url, "GET", "/api/keys", undefined, 401, "UNAUTHORIZED"],
    [server.url, "GET", "/api/keys", accessToken, 429, "OVER_QUOTA"],
    [many.url, "GET", "/a/b/c", adminToken, 404, "NOT_FOUND"],
    [many.url, "GET", "/v1/admin/databases", undefined, 401, "UNAUTHORIZED"],
    [many.url, "GET", "/v1/admin/databases/none", adminToken, 404, "NOT_FOUND"],
    [many.url, "PUT", "/v1/admin/databases", adminToken, 405, "METHOD_NOT_ALLOWED"],
    [many.url, "POST", "/v1/admin/databases", adminToken, 400, "INVALID", "{"],
    [many.url, "GET", "/metrics", undefined, 401, "UNAUTHORIZED"],
  ]) {
    const answer = await at(url, method, path, token, body);
    const where = `${method} ${path}`;
    assert.equal(answer.status, status, where);
    assert.equal(answer.headers.get("access-control-allow-origin"), origin, where);
    assert.equal((await answer.json()).code, code, where);
  }
  for (const [url, path] of [
    [server.url, ""],
    [server.url, "/v2/snapshot_read"],
    [many.url, "/none"],
  ]) {
    const answer = await at(url, "POST", path);
    assert.equal(answer.status, 401, path);
    assert.equal(answer.headers.get("access-control-allow-origin"), origin, path);
  }
  const open = await start({ path: freshPath(), corsOrigin: origin });
  const other = await at(open.url, "GET", "/nothing");
  assert.equal(other.headers.get("access-control-allow-origin"), origin);
});

test("entity tags with commas, and weak ones, are tags of a list", async () => {
  const { call } = await serveApi();
  const { etag } = Object.fromEntries((await call("PUT", "/keys/a", { body: 1 })).headers);
  const tag = etag ?? (await call("GET", "/keys/a")).headers.get("etag");
  const ask = async (method, headers, body) =>
    (await call(method, "/keys/a", { headers, body })).status;
  assert.equal(await ask("GET", { "if-none-match": `"a,b", W/${tag}` }), 304);
  assert.equal(await ask("GET", { "if-none-match": `"a,b", "c"` }), 200);
  assert.equal(await ask("PUT", { "if-match": `"a,b", W/${tag}` }, 2), 412);
  assert.equal(await ask("PUT", { "if-match": `"a,b" , ${tag}` }, 2), 200);
  assert.equal(await ask("GET", { "if-none-match": `"a" "b"` }), 400);
});
