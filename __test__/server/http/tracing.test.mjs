// Duty: the `traceparent` of a request: its messages carry it to their handlers, deliveries have it, and the
// lines that the request logs name it.

import assert from "node:assert/strict";
import { tracingChannel } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { start as startCommand } from "../../cli/running.mjs";
import { adminToken, connect, freshPath, start } from "../serving.mjs";
import { caller, serveApi } from "./calling.mjs";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const headers = { traceparent, tracestate: "vendor=1" };

/** The next message of a listener of this process, with the headers of its event. */
async function handled(kv, queue) {
  const stop = new AbortController();
  const found = {};
  const subscribers = { start: (event) => (found.headers = event.headers) };
  tracingChannel("openkv:process").subscribe(subscribers);
  const handler = (value) => {
    found.value = value;
    stop.abort();
  };
  await kv.queue(queue).listen(handler, { concurrency: 1, signal: stop.signal });
  tracingChannel("openkv:process").unsubscribe(subscribers);
  return found;
}

test("a message that is enqueued over HTTP carries the context to a handler in JavaScript", async () => {
  const { server, call } = await serveApi();
  const body = { value: { n: 1 } };
  const { status } = await call("POST", "/queue/enqueue?queue=mail", { body, headers });
  assert.equal(status, 200);
  const kv = await connect(server);
  assert.deepEqual(await handled(kv, "mail"), { value: { n: 1 }, headers });
});

test("every message of an atomic operation carries it", async () => {
  const { server, call } = await serveApi();
  const value = { n: [1, 2] };
  const mutations = [
    { type: "enqueue", queue: "mail", value },
    { type: "enqueue", queue: "mail", value: "second" },
  ];
  const body = { checks: [], mutations };
  const { status, body: answer } = await call("POST", "/atomic", { body, headers });
  assert.equal(status, 200, JSON.stringify(answer));
  const kv = await connect(server);
  const first = await handled(kv, "mail");
  assert.deepEqual(first.headers, headers);
  assert.deepEqual(first.value, value);
  const second = await handled(kv, "mail");
  assert.deepEqual(second, { value: "second", headers });
});

test("a delivery over HTTP has the context of an enqueue in JavaScript", async () => {
  const { server, call } = await serveApi();
  const kv = await connect(server);
  const subscribers = { start: (event) => Object.assign(event.headers, headers) };
  tracingChannel("openkv:enqueue").subscribe(subscribers);
  await kv.queue("mail").enqueue("a");
  tracingChannel("openkv:enqueue").unsubscribe(subscribers);
  const { messages } = (await call("GET", "/queue/messages?queue=mail")).body;
  assert.equal(messages[0].value, "a");
  const { message } = (await call("GET", "/queue/poll?queue=mail")).body;
  assert.equal(message.value, "a");
  assert.deepEqual([message.traceparent, message.tracestate], [traceparent, "vendor=1"]);
  const { id, lock } = message;
  for (let attempt = 0; attempt < 4; attempt++) {
    const taken =
      attempt === 0
        ? { id, lock }
        : (await call("GET", "/queue/poll?queue=mail&wait=30000")).body.message;
    await call("POST", "/queue/nack", { body: { id: taken.id, lock: taken.lock, delay: 0 } });
  }
  const dead = (await call("GET", "/queue/dlq?queue=mail")).body;
  assert.deepEqual(
    dead.messages.map(({ value }) => value),
    ["a"],
  );
});

test("a malformed traceparent is ignored", async () => {
  const { call } = await serveApi();
  for (const bad of ["", "00-1-2-3", traceparent.toUpperCase()]) {
    const options = { body: { value: "a" }, headers: { traceparent: bad } };
    assert.equal((await call("POST", "/queue/enqueue", options)).status, 200);
    const { message } = (await call("GET", "/queue/poll")).body;
    assert.equal(message.value, "a");
    assert.equal("traceparent" in message, false, bad);
  }
});

test("what a request logs names its trace", async () => {
  const path = `${freshPath()}/`;
  const server = await start({ path, adminToken });
  const admin = caller(server.url, adminToken);
  const { body } = await admin("POST", "/v1/admin/databases", { body: { name: "shop" } });
  await caller(server.url, body.token)("PUT", "/shop/api/keys/a", { body: 1 });
  await server.close();
  const files = readdirSync(path, { recursive: true }).map(String);
  for (const name of files.filter((name) => /[0-9a-f-]{36}.*\.(?:sqlite3?|db)$/.test(name))) {
    writeFileSync(join(path, name), "this is no database".repeat(100));
  }
  const args = ["serve", "--path", path, "--listen", "127.0.0.1:0", "--log", "json", "--json"];
  const child = startCommand(args, { OPENKV_ADMIN_TOKEN: adminToken });
  let logged = "";
  child.stderr.on("data", (data) => (logged += data));
  let out = "";
  while (!out.includes("\n")) out += (await once(child.stdout, "data"))[0];
  const { url } = JSON.parse(out.split("\n")[0]);
  const { status } = await caller(url, body.token)("GET", "/shop/api/keys/a", { headers });
  assert.equal(status, 422);
  child.kill("SIGTERM");
  await once(child, "close");
  const lines = logged.split("\n").filter((line) => line.includes(traceparent));
  assert.ok(lines.length > 0, logged);
  assert.equal(JSON.parse(lines[0]).span.traceparent, traceparent);
});
