// Duty: what an opening says of a server that is not there, or is none of KV Connect.
//
// A server that was down, or whose name was misspelt, was asked again and again for ten seconds before the first
// error, although the first attempt had said what is wrong.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import net from "node:net";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { ACCESS_TOKEN, NOBODY, start } from "./mock.mjs";
import { failWith } from "./misbehaviour.mjs";

const accessToken = ACCESS_TOKEN;
const fresh = freshPaths("opening");

/** The port of a server of this machine. */
async function listening(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return server.address().port;
}

/** The error of an opening, which names the URL once and in words of Deno's. */
async function refusal(url, options) {
  const error = await openKv(url, { accessToken, ...options }).then(
    () => assert.fail(`${url} was opened`),
    (error) => error,
  );
  assert.equal(error.name, "KvError");
  assert.match(error.message, /^Could not open Deno KV database: /);
  for (const one of url.split(",")) {
    assert.equal(error.message.split(`'${one}`).length, 2, `${one} in: ${error.message}`);
  }
  return error;
}

test("nothing listens at the port", async () => {
  for (const url of [NOBODY, NOBODY.replace("http:", "https:")]) {
    const { code, message } = await refusal(url);
    assert.equal(code, "UNAVAILABLE");
    assert.match(
      message,
      /failed to connect to 'https?:.*refused.*: does the server run, and is its port right\?$/,
    );
  }
});

test("the host is unknown", async () => {
  const { code, message } = await refusal("http://no-such-host.invalid/shop");
  assert.equal(code, "UNAVAILABLE");
  assert.match(message, /failed to connect to '.*: is the name of the host right\?$/);
});

test("the scheme is the other one, or the server is none of HTTP", async (t) => {
  const page = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hello</h1>");
  });
  const port = await listening(t, page);
  const tls = await refusal(`https://127.0.0.1:${port}`);
  assert.equal(tls.code, "UNAVAILABLE");
  assert.match(tls.message, /does not speak TLS: does its URL begin with http:\/\/\?$/);
  const html = await refusal(`http://127.0.0.1:${port}`);
  assert.equal(html.code, "CORRUPT");
  assert.match(html.message, /is not a valid KV Connect endpoint: it answers with text\/html/);
  const other = net.createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.end("220 ready for mail\r\n"));
  });
  const { code, message } = await refusal(`http://127.0.0.1:${await listening(t, other)}`);
  assert.equal(code, "UNAVAILABLE");
  assert.match(message, /the server does not speak HTTP$/);
});

test("a server that fails is asked once, and again until the timeout that was given", async () => {
  const mock = await start();
  mock.scripts.metadata = failWith(502);
  const { code, message } = await refusal(mock.url);
  assert.equal(code, "UNAVAILABLE");
  assert.match(message, /the metadata endpoint at '.*' responded with status 502 Bad Gateway/);
  assert.equal(mock.counts.metadata, 1);
  await refusal(mock.url, { timeout: 3000 });
  assert.ok(mock.counts.metadata > 2, `${mock.counts.metadata}`);
});

/** The error said that no answer came in time, and not why the attempts before had failed. */
test("an attempt that the timeout cuts off leaves the reason of the one before", async () => {
  const mock = await start();
  mock.scripts.metadata = (...args) => args[3] > 1 || failWith(502)(...args);
  await assert.rejects(openKv(mock.url, { accessToken, timeout: 2000 }), {
    code: "UNAVAILABLE",
    message: /no answer in time; before that, the metadata endpoint at .* 502 Bad Gateway/,
  });
});

test("each URL of a list is asked once", async () => {
  const mock = await start();
  mock.scripts.metadata = failWith(500);
  const { message } = await refusal(`${NOBODY},${mock.url}`);
  assert.match(message, /none of 2 URLs gives access: .*refused.*; .*500 Internal Server Error/);
  assert.equal(mock.counts.metadata, 1);
});

test("a server that says when to ask again is asked then", async () => {
  const mock = await start();
  mock.scripts.metadata = (request, response, body, count) =>
    count === 1 && failWith(503, { "retry-after": "1" })(request, response, body, count);
  const kv = await openKv(mock.url, { accessToken });
  assert.equal(mock.counts.metadata, 2);
  await kv.close();
});

test("with a timeout, a server that starts meanwhile is opened", async () => {
  const mock = await start();
  const port = new URL(mock.url).port;
  await mock.close();
  const opening = openKv(mock.url, { accessToken, timeout: 20_000 });
  await mock.listen(port);
  const kv = await opening;
  assert.equal((await kv.set(["a"], 1)).ok, true);
  await kv.close();
});

test("a session bridges a restart, whether or not it has a timeout", async () => {
  const mock = await start();
  const port = new URL(mock.url).port;
  const kv = await openKv(mock.url, { accessToken });
  await kv.set(["a"], 1);
  await mock.close();
  const read = kv.get(["a"]);
  await mock.listen(port);
  assert.equal((await read).value, 1);
  await kv.close();
});

test("a replica that has copied nothing names the reason of its server", async () => {
  const replica = fresh();
  const { code, message } = await refusal(`http://127.0.0.1:${await freePort()}`, { replica });
  assert.equal(code, "UNAVAILABLE");
  assert.match(message, /refused.*Nothing has been copied yet/);
});
