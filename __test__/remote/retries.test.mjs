// Duty: which failures of a request are reported, which are retried, and the pauses.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { describe, test } from "node:test";
import { openKv } from "../../index.mjs";
import { ACCESS_TOKEN, connect, cut, reply, start } from "./mock.mjs";

const PROTOBUF = "application/x-protobuf";
const NEVER_AGAIN = { "retry-after": "18446744073709551615" };
const refuse = (status, headers) => (_, response) =>
  reply(response, status, "text/plain", "not now", headers);

describe("Retry-After", { concurrency: true }, () => {
  // The sum of now and such a time is none: both were INTERNAL.
  test("of eternity: UNAVAILABLE at once, without an effect", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.snapshot_read = refuse(429, NEVER_AGAIN);
    mock.scripts.atomic_write = refuse(503, NEVER_AGAIN);
    const unavailable = (call) =>
      assert.rejects(call, (error) => {
        assert.equal(error.code, "UNAVAILABLE", error.message);
        assert.equal(error.message.split(mock.url).length, 2, `named once: ${error.message}`);
        return true;
      });
    await Promise.all([unavailable(kv.get(["a"])), unavailable(kv.set(["a"], 1))]);
    assert.equal(mock.counts.snapshot_read + mock.counts.atomic_write, 2);
  });

  test("as a date: the write is sent again", async () => {
    const mock = await start();
    const kv = await connect(mock);
    const now = { "retry-after": new Date().toUTCString() };
    mock.scripts.atomic_write = (request, response, _, count) =>
      count === 1 && refuse(503, now)(request, response);
    assert.equal((await kv.set(["a"], 1)).ok, true);
  });

  test("with a text that never ends: the write is sent again", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.atomic_write = (_, response, __, count) => {
      if (count > 1) return false;
      response.writeHead(503, { "retry-after": "0", "content-type": "text/plain" });
      response.write("busy");
      return true;
    };
    assert.equal((await kv.set(["a"], 1)).ok, true);
  });
});

describe("a write", { concurrency: true }, () => {
  test("of checks only is sent again, and the second answer counts", async () => {
    const mock = await start();
    const kv = await connect(mock);
    await kv.set(["a"], 1);
    const old = await kv.get(["a"]);
    await kv.set(["a"], 2);
    const current = await kv.get(["a"]);
    for (const [entry, ok] of [
      [old, false],
      [current, true],
    ]) {
      const next = mock.counts.atomic_write + 1;
      mock.scripts.atomic_write = (_, response, body, count) =>
        count === next && cut(response, PROTOBUF, mock.commit(body), 1);
      assert.equal((await kv.atomic().check(entry).commit()).ok, ok);
      assert.equal(mock.counts.atomic_write, next + 1);
    }
  });

  /** A server to which no connection comes about: it never says a word of TLS. */
  async function silent(t) {
    const sockets = new Set();
    const server = net.createServer((socket) => sockets.add(socket.on("error", () => {})));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const mock = await start();
    const url = `https://127.0.0.1:${server.address().port}/v2`;
    mock.metadata = { endpoints: [{ url, consistency: "strong" }] };
    return { mock, server };
  }

  // It was OUTCOME_UNKNOWN, although there was nothing to send it by.
  test("without a connection has not happened", async (t) => {
    const { mock } = await silent(t);
    const kv = await connect(mock, { timeout: 2000 });
    await assert.rejects(kv.set(["a"], 1), { code: "UNAVAILABLE" });
  });

  test("cancelled before there is a connection has not happened", async (t) => {
    const { mock, server } = await silent(t);
    const controller = new AbortController();
    const { signal } = controller;
    const kv = await openKv(mock.url, { accessToken: ACCESS_TOKEN, timeout: 60_000, signal });
    const write = assert.rejects(kv.set(["a"], 1), { message: "enough" });
    await once(server, "connection");
    controller.abort(new Error("enough"));
    await write;
  });
});
