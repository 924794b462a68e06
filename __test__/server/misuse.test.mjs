// Duty: slow, greedy or hostile clients of a server in a separate process: each connection ends by
// a named limit, other clients are served meanwhile, and afterwards the server has as many open
// files as before and does not grow.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { guard, HANG_MS, sleep, until } from "../kit/time.mjs";
import { message } from "../remote/protobuf.mjs";
import { kill, spawnServer } from "./children.mjs";

const accessToken = "token-of-a-misused-server";
const CONNECTIONS_MAX = 300;
/** Longer than any bound of crates/core/src/model/limits.rs that is met here. */
const PATIENCE_MS = 60_000;
/** What an allocator may keep of ten storms more than of three: a leak of one would be beyond. */
const RESIDENT_GROWTH_KIB_MAX = 24 * 1024;
const onLinux = existsSync("/proc/self/fd");

let folder;
let server;
let address;
let headers;
let resting;

before(async () => {
  folder = newFolder("misuse");
  const path = join(folder, "kv.sqlite3");
  server = await spawnServer({
    path,
    accessToken,
    listen: "127.0.0.1:0",
    connectionsMax: CONNECTIONS_MAX,
  });
  address = new URL(server.url);
  const answer = await fetch(server.url, {
    method: "POST",
    headers: { authorization: `Bearer ${accessToken}`, connection: "close" },
    body: '{"supportedVersions":[3]}',
  });
  const { token, databaseId } = await answer.json();
  headers = {
    authorization: `Bearer ${token}`,
    "x-denokv-version": "3",
    "x-denokv-database-id": databaseId,
  };
  await served();
  resting = sockets();
});

after(async () => {
  await kill(server);
});

/** What the server has open: files, pipes and sockets. */
function opened() {
  if (!onLinux) return [];
  const folder = `/proc/${server.pid}/fd`;
  const target = (name) => {
    try {
      return readlinkSync(join(folder, name));
    } catch {
      return ""; // It is closed meanwhile.
    }
  };
  return readdirSync(folder).map(target);
}

const sockets = () => opened().filter((file) => file.startsWith("socket:")).length;
const resident = () =>
  onLinux
    ? Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1])
    : 0;

/** Somebody who behaves is served. */
async function served() {
  const kv = await openKv(server.url, { accessToken, timeout: PATIENCE_MS });
  await kv.set(["behaves"], 1);
  assert.equal((await kv.get(["behaves"])).value, 1);
  await kv.close();
}

/** The head of a request on the data path. */
function head(verb, ...more) {
  const lines = Object.entries({ host: address.host, ...headers }).map(([n, v]) => `${n}: ${v}`);
  return [`POST /v2/${verb} HTTP/1.1`, ...lines, ...more, "", ""].join("\r\n");
}

/** A connection that collects what comes, and knows when it has ended. */
async function dial() {
  const socket = net.connect(Number(address.port), address.hostname);
  const told = { socket, text: "", ended: false };
  socket.on("data", (piece) => (told.text += piece.toString("latin1")));
  socket.on("error", () => {});
  socket.on("close", () => (told.ended = true));
  await once(socket, "connect");
  return told;
}

/** The request for the first entries of all. */
const rangeOf = (limit) =>
  message([1, message([1, Buffer.from([0])], [2, Buffer.from([0xff])], [3, limit])]);

/** A request of the HTTP API over HTTP/1.1. */
const requestOf = (path, ...more) =>
  [
    `GET ${path} HTTP/1.1`,
    `host: ${address.host}`,
    `authorization: Bearer ${accessToken}`,
    ...more,
    "",
    "",
  ].join("\r\n");

/** A session with a window of 0 that has the head of an answer of the HTTP API; and its end. */
async function untaken(path) {
  const session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
  session.on("error", () => {});
  const closed = closing(session);
  const stream = session.request({ ":path": path, authorization: `Bearer ${accessToken}` });
  stream.on("error", () => {});
  stream.end();
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 200, path);
  return { session, closed };
}

/**
 * A hang guard for the end of a session. An answer that waits for the memory of others begins when they end, which is
 * after ANSWER_STALL_MS_MAX, and its own time begins then.
 */
const END_MS_MAX = 3 * HANG_MS;

/** The end of a session, with or without a word. */
const closing = (session) =>
  guard(new Promise((resolve) => session.on("close", resolve)), END_MS_MAX, "a session ends");

/** Writes a byte now and then, until the other end has enough of it. */
async function drip(told, bytes, everyMs) {
  for (let at = 0; !told.ended && at < bytes.length; at++) {
    told.socket.write(bytes.subarray(at, at + 1));
    await sleep(everyMs);
  }
}

const statusOf = (told) => Number(/^HTTP\/1\.1 (\d+)/.exec(told.text)?.[1] ?? 0);

/** Sends bytes and waits for a status. */
async function ask(...pieces) {
  const told = await dial();
  for (const piece of pieces) told.socket.write(piece);
  await until(() => told.ended || /\r\n\r\n/.test(told.text), "an answer");
  told.socket.destroy();
  return { status: statusOf(told), text: told.text };
}

describe("a server is misused", { concurrency: true }, () => {
  test("heads that arrive byte by byte: the connection ends (REQUEST_HEAD_MS_MAX)", async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, dial));
    const text = Buffer.from(`POST / HTTP/1.1\r\nx: ${"y".repeat(10_000)}`);
    const dripping = slow.map((told) => drip(told, text, 200));
    await served();
    await until(() => slow.every(({ ended }) => ended), "all of them end");
    await Promise.all(dripping);
  });

  test("bodies that arrive byte by byte: 408 (REQUEST_BODY_MS_MAX)", async () => {
    const slow = await Promise.all(Array.from({ length: 20 }, dial));
    const chunked = (at) => at % 2 === 0;
    const dripping = slow.map((told, at) => {
      told.socket.write(
        head("atomic_write", chunked(at) ? "transfer-encoding: chunked" : "content-length: 10000"),
      );
      return drip(
        told,
        chunked(at) ? Buffer.from("1\r\nx\r\n".repeat(2000)) : Buffer.alloc(10_000),
        300,
      );
    });
    await served();
    await until(() => slow.every((told) => told.ended || statusOf(told) > 0), "all are answered");
    assert.deepEqual(
      slow.map(statusOf),
      slow.map(() => 408),
    );
    for (const { socket } of slow) socket.destroy();
    await Promise.all(dripping);
  });

  test("connections without a request end, over HTTP/1.1 and HTTP/2", async () => {
    const silent = await Promise.all(Array.from({ length: 50 }, dial));
    for (const { socket } of silent.slice(0, 25)) socket.write("PRI * HTTP/2.0\r\n");
    await served();
    await until(() => silent.every(({ ended }) => ended), "all of them end");
  });

  test("HTTP/2 connections that only answer pings after a request end (CONNECTION_IDLE_MS_MAX)", async () => {
    const sessions = Array.from({ length: 20 }, () => http2.connect(server.url));
    const closed = sessions.map((session) => {
      session.on("error", () => {});
      return closing(session);
    });
    // Without a token: nobody needs one to be a nuisance.
    const statuses = sessions.map(async (session) => {
      const stream = session.request({ ":method": "POST", ":path": "/v2/watch" });
      stream.resume().end();
      const [answer] = await once(stream, "response");
      return answer[":status"];
    });
    assert.deepEqual(
      await Promise.all(statuses),
      sessions.map(() => 401),
    );
    await Promise.all(closed);
  });

  test("an HTTP/2 connection with a watch is not idle", async () => {
    const session = http2.connect(server.url);
    const stream = session.request({ ":method": "POST", ":path": "/v2/watch", ...headers });
    stream.end(Buffer.from("0a050a03026100", "hex"));
    stream.resume();
    let ended = false;
    stream.on("close", () => (ended = true));
    await sleep(42_000);
    assert.equal(ended, false);
    session.destroy();
  });

  test("a client that does not read its answers: the connection ends (ANSWER_STALL_MS_MAX)", async () => {
    const kv = await openKv(server.url, { accessToken });
    for (let n = 0; n < 300; n++) await kv.set(["large", n], new Uint8Array(60_000));
    const greedy = await Promise.all(Array.from({ length: 3 }, dial));
    // Every entry of the database, 18 MB and more: six of them are the memory that there is.
    const range = rangeOf(1000);
    for (const { socket } of greedy) {
      socket.pause();
      socket.write(head("snapshot_read", `content-length: ${range.length}`));
      socket.write(range);
    }
    const gone = greedy.map(({ socket }) => socket.localPort);
    // Over HTTP/2 the socket goes on, and so do pings: it is the stream that nobody reads. A session with an unread
    // stream may never close by itself, so what counts is which connections the server has.
    const sessions = Array.from({ length: 3 }, () => http2.connect(server.url));
    for (const session of sessions) {
      session.on("error", () => {});
      await once(session, "connect");
      gone.push(session.socket.localPort);
      const stream = session.request({
        ":method": "POST",
        ":path": "/v2/snapshot_read",
        ...headers,
      });
      stream.on("error", () => {});
      stream.pause();
      stream.end(range);
    }
    await served();
    await until(
      () => gone.every((port) => !connected(port)),
      "the server lets go of all of them",
      END_MS_MAX,
    );
    for (const session of sessions) session.destroy();
    for (const { socket } of greedy) socket.destroy();
    for (let n = 0; n < 300; n++) await kv.delete(["large", n]);
    await kv.close();
  });

  // Such a body was kept for as long as its client wanted, with its connection.
  test("exports and backups that nobody reads: the connection ends (ANSWER_STALL_MS_MAX)", async () => {
    const kv = await openKv(server.url, { accessToken });
    for (let n = 0; n < 3; n++) await kv.set(["unread", n], new Uint8Array(60_000));
    const paths = ["/api/export", "/api/export", "/api/backup"];
    const sessions = await Promise.all(paths.map((path) => untaken(path)));
    const greedy = await dial();
    greedy.socket.pause();
    greedy.socket.write(requestOf("/api/backup", "range: bytes=0-"));
    await served();
    await Promise.all(sessions.map(({ closed }) => closed));
    await kv.deleteMany({ prefix: ["unread"] });
    await kv.close();
    greedy.socket.destroy();
  });

  test("a head over the limit: 431 (REQUEST_HEAD_BYTES_MAX)", async () => {
    const { status } = await ask(head("snapshot_read", `x-long: ${"y".repeat(40_000)}`));
    assert.equal(status, 431);
    const many = Array.from({ length: 2000 }, (_, n) => `x-${n}: 1`);
    assert.equal((await ask(head("snapshot_read", ...many))).status, 431);
    assert.equal(
      (await ask(`POST /${"a".repeat(40_000)} HTTP/1.1\r\nhost: x\r\n\r\n`)).status,
      431,
    );
    const session = http2.connect(server.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/",
      "x-long": "y".repeat(50_000),
    });
    stream.on("error", () => {});
    const answered = once(stream, "response").then(
      ([answer]) => answer[":status"],
      () => 0,
    );
    stream.end();
    assert.ok([431, 0].includes(await answered));
    session.destroy();
  });

  test("bodies over the limit, with a declared length, in chunks and over HTTP/2: 413", async () => {
    const over = Buffer.alloc(2 * 1024 * 1024 + 1);
    const announced = head("atomic_write", `content-length: ${over.length}`);
    assert.equal((await ask(announced, over)).status, 413);
    assert.equal((await ask(head("atomic_write", `content-length: ${2 ** 40}`), over)).status, 413);
    const chunks = [];
    for (let n = 0; n < 33; n++) chunks.push(`10000\r\n${"x".repeat(65_536)}\r\n`);
    assert.equal(
      (await ask(head("atomic_write", "transfer-encoding: chunked"), ...chunks)).status,
      413,
    );
    const session = http2.connect(server.url);
    const stream = session.request({ ":method": "POST", ":path": "/v2/atomic_write", ...headers });
    stream.on("error", () => {});
    stream.end(over);
    const [answer] = await once(stream, "response");
    assert.equal(answer[":status"], 413);
    session.destroy();
  });

  test("malformed chunks and contradictory framing: 400, or the end", async () => {
    const chunked = head("atomic_write", "transfer-encoding: chunked");
    for (const garbage of [
      "zz\r\n\r\n",
      "-1\r\nx\r\n",
      "fffffffffffffffff\r\n",
      "5\r\nxxxxxyy\r\n0\r\n\r\n",
      "1;".padEnd(20_000, "e"),
    ]) {
      assert.equal((await ask(chunked, garbage)).status, 400, garbage.slice(0, 30));
    }
    for (const lines of [
      ["content-length: 1", "content-length: 2"],
      ["content-length: -1"],
      ["content-length: x"],
      ["transfer-encoding: gzip"],
      ["transfer-encoding: chunked, chunked, gzip"],
      ["content-length: 99999999999999999999999"],
    ]) {
      assert.equal((await ask(head("atomic_write", ...lines))).status, 400, lines.join());
    }
    for (const noise of [
      "\0".repeat(100),
      "GET",
      "hello\r\n\r\n",
      "POST / HTTP/9.9\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01",
    ]) {
      const told = await dial();
      told.socket.end(noise);
      await until(() => told.ended, "it ends");
      assert.ok([0, 400, 505].includes(statusOf(told)), told.text);
    }
    await served();
  });

  test("the content type of a body is ignored, as by Deno's server", async () => {
    const range = rangeOf(1);
    for (const type of ["text/html", "application/json", "", "x", "application/x-protobuf"]) {
      const { status } = await ask(
        head("snapshot_read", `content-type: ${type}`, `content-length: ${range.length}`),
        range,
      );
      assert.equal(status, 200, type);
    }
  });

  test("thousands of requests that are reset as soon as they are sent", async () => {
    for (let round = 0; round < 5; round++) {
      const session = http2.connect(server.url);
      session.on("error", () => {});
      for (let n = 0; n < 2000 && !session.destroyed; n++) {
        const stream = session.request({
          ":method": "POST",
          ":path": "/v2/snapshot_read",
          ...headers,
        });
        stream.on("error", () => {});
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
      await sleep(50);
      await served();
      session.destroy();
    }
  });

  test("streams over the limit of a connection are rejected, without affecting others", async () => {
    const session = http2.connect(server.url);
    session.on("error", () => {});
    await once(session, "remoteSettings");
    assert.equal(session.remoteSettings.maxConcurrentStreams, 1024);
    const streams = Array.from({ length: 3000 }, () => {
      const stream = session.request({ ":method": "POST", ":path": "/v2/watch", ...headers });
      stream.on("error", () => {});
      stream.resume().end(Buffer.from("0a050a03026100", "hex"));
      return stream;
    });
    await Promise.all(streams.slice(0, 1024).map((stream) => once(stream, "response")));
    await served();
    session.destroy();
  });
});

test("connections over the limit wait and are accepted", async () => {
  const idle = await Promise.all(Array.from({ length: CONNECTIONS_MAX + 200 }, dial));
  await served();
  for (const { socket } of idle) socket.destroy();
});

test("misuse leaves no open files and no growing memory", {
  skip: !onLinux && "needs /proc",
}, async () => {
  await until(() => sockets() <= resting + 2, "the connections of earlier tests are closed");
  // The first watch, export and backup have opened files that stay, and a copy that is kept for a while.
  const before = opened().length;
  const storm = async () => {
    const idle = await Promise.all(Array.from({ length: CONNECTIONS_MAX / 2 }, dial));
    const session = http2.connect(server.url);
    session.on("error", () => {});
    const asked = Array.from({ length: 500 }, (_, n) => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/v2/atomic_write",
        ...headers,
      });
      stream.on("error", () => {});
      stream.resume().write(Buffer.alloc(50_000));
      if (n % 2) stream.close(http2.constants.NGHTTP2_CANCEL);
      return stream;
    });
    await served();
    for (const stream of asked) stream.close(http2.constants.NGHTTP2_CANCEL);
    session.destroy();
    for (const { socket } of idle) socket.destroy();
    await until(() => opened().length <= before + 2, "files are closed");
  };
  for (let n = 0; n < 3; n++) await storm();
  const kib = resident();
  for (let n = 0; n < 10; n++) await storm();
  const grown = resident() - kib;
  assert.ok(grown < RESIDENT_GROWTH_KIB_MAX, `${grown} KiB more after ten storms`);
});

/** Whether a connection from this port is still known to the system as one of the server's. */
function connected(port) {
  if (!onLinux) return false;
  const from = port.toString(16).toUpperCase().padStart(4, "0");
  const to = Number(address.port).toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
  // As the server sees it: its own port first. State 01 is an open one.
  return rows.some((row) => {
    const [, local, remote, state] = row.trim().split(/\s+/);
    return local?.endsWith(`:${to}`) && remote.endsWith(`:${from}`) && state === "01";
  });
}
