// Duty: in which version of HTTP the client sends its requests to openkv's server without TLS: a read alone in
// HTTP/1.1, writes and several reads at a time in HTTP/2, and all in HTTP/2 where HTTP/1.1 does not get through.

import assert from "node:assert/strict";
import net from "node:net";
import { after, test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";

const ACCESS_TOKEN = "access-token-of-http-versions";
const TIMEOUT_MS = 4000;
const freshPath = freshPaths("http-versions");
const open = [];

after(async () => {
  for (const each of open.toReversed()) await each.close();
});

/** A way to a server that knows the version of each connection. `passes` decides about each. */
class Way {
  connections = { "HTTP/1.1": 0, "HTTP/2": 0 };
  /** Requests in HTTP/1.1. */
  requests = 0;
  passes = () => "on";
  #sockets = new Set();
  #target;
  #server;

  constructor(url) {
    this.#target = new URL(url);
  }

  async listen() {
    this.#server = net.createServer((socket) => this.#accept(socket));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}${this.#target.pathname}`;
  }

  #accept(socket) {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (first) => {
      const version = first.toString("latin1").startsWith("PRI ") ? "HTTP/2" : "HTTP/1.1";
      this.connections[version] += 1;
      const fate = this.passes(version);
      if (fate === "cut") return socket.destroy();
      if (fate === "silence") return socket.resume();
      if (version === "HTTP/1.1") {
        this.#count(first);
        socket.on("data", (data) => this.#count(data));
      }
      const further = net.connect(Number(this.#target.port), this.#target.hostname);
      further.on("error", () => socket.destroy());
      further.write(first);
      socket.pipe(further).pipe(socket);
    });
  }

  #count(data) {
    this.requests += data.toString("latin1").split("POST /").length - 1;
  }

  async close() {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function served() {
  const server = await serve({
    path: freshPath(),
    listen: "127.0.0.1:0",
    accessToken: ACCESS_TOKEN,
  });
  const way = new Way(server.url);
  await way.listen();
  open.push(server, way);
  return way;
}

async function connect(way) {
  const kv = await openKv(way.url, { accessToken: ACCESS_TOKEN, timeout: TIMEOUT_MS });
  open.push(kv);
  return kv;
}

/** Writes and reads, one after the other. Returns the values. */
async function alone(kv, from, to) {
  const values = [];
  for (let n = from; n < to; n++) {
    await kv.set(["n", n], n);
    values.push((await kv.get(["n", n])).value);
  }
  return values;
}

test("a read alone goes in HTTP/1.1, writes and several reads in HTTP/2", async () => {
  const way = await served();
  const kv = await connect(way);
  assert.deepEqual(await alone(kv, 0, 5), [0, 1, 2, 3, 4]);
  assert.equal(way.requests, 5, "the reads");
  const many = Array.from({ length: 20 }, async (_, n) => {
    // Each in a request of its own.
    await new Promise((resolve) => setImmediate(resolve, n));
    return (await kv.get(["n", n % 5])).value;
  });
  assert.deepEqual(
    await Promise.all(many),
    Array.from({ length: 20 }, (_, n) => n % 5),
  );
  assert.equal(way.connections["HTTP/2"], 1, "the metadata's, used again");
  assert.ok(way.requests < 25, `${way.requests} requests`);
  // A large request is no better off alone.
  const between = way.requests;
  const keys = Array.from({ length: 10 }, (_, n) => ["long", n, "x".repeat(1900)]);
  assert.equal((await kv.getMany(keys)).length, 10);
  assert.equal(way.requests, between);
});

test("where HTTP/1.1 is cut, the first request is repeated and the others do not try", async () => {
  const way = await served();
  way.passes = (version) => (version === "HTTP/1.1" ? "cut" : "on");
  const kv = await connect(way);
  assert.equal((await kv.get(["n", 0])).value, null);
  assert.deepEqual(await alone(kv, 0, 5), [0, 1, 2, 3, 4]);
  assert.deepEqual(way.connections, { "HTTP/1.1": 1, "HTTP/2": 1 });
});

test("where HTTP/1.1 is never answered, a read is repeated in time", async () => {
  const way = await served();
  way.passes = (version) => (version === "HTTP/1.1" ? "silence" : "on");
  const kv = await connect(way);
  assert.equal((await kv.get(["n", 0])).value, null);
  assert.deepEqual(await alone(kv, 0, 3), [0, 1, 2]);
  assert.deepEqual(way.connections, { "HTTP/1.1": 1, "HTTP/2": 1 });
});
