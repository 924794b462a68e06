// Duty: change feeds over a URL: no change is lost, repeated or reordered, whatever happens to the
// server, the network and the reader; and answers of servers without the extension.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { KvFeedGapError, openKv } from "../../index.mjs";
import { guard, sleep, until } from "../kit/time.mjs";
import { startPeer } from "../processes/peer/start.mjs";
import { kill, spawnServer } from "../server/children.mjs";
import {
  accessToken,
  adminToken,
  connect,
  folder,
  freshPath,
  serveFile,
  start,
} from "../server/serving.mjs";
import { connect as connectTo, frame, reply, start as startMock } from "./mock.mjs";
import { startWay } from "./unreliable.mjs";

const GUARD_MS = 60_000;

/** Reads changes until `count` are there. */
async function take(reader, count, changes = []) {
  while (changes.length < count) {
    const { value, done } = await guard(reader.read(), GUARD_MS, "a batch");
    assert.equal(done, false, "the feed has ended");
    changes.push(...value.changes);
  }
  return changes;
}

/** Every change once, in the order of the commits. */
function assertAll(changes, values) {
  const stamps = changes.map(({ versionstamp }) => versionstamp);
  assert.deepEqual(stamps, [...new Set(stamps)].sort(), "in order, and none twice");
  assert.deepEqual(
    changes.map(({ value }) => value),
    values,
  );
}

const numbers = (count) => Array.from({ length: count }, (_, n) => n);

describe("a server of openkv's", () => {
  test("commits of other clients and processes are reported", async (t) => {
    const path = freshPath();
    const server = await start({ path, accessToken });
    const [kv, other] = [await connect(server), await connect(server)];
    const reader = kv.watch({ prefix: ["k"] }).getReader();
    await kv.set(["k", "own"], 0);
    const peer = await startPeer(t, path);
    for (let n = 1; n < 60; n += 3) {
      await other.set(["k", n], n);
      await peer.do("set", { key: ["k", "peer"], value: n + 1 });
      await other.set(["elsewhere"], n);
      await kv.set(["k", n], n + 2);
    }
    await peer.do("delete", { key: ["k", "own"] });
    assertAll(await take(reader, 62), [...numbers(61), null]);
  });

  test("a feed resumes after kill -9 of its server", async (t) => {
    const path = freshPath();
    let server = await spawnServer({ path, accessToken, listen: "127.0.0.1:0" });
    t.after(() => kill(server));
    const { url } = server;
    const listen = new URL(url).host;
    const kv = await openKv(url, { accessToken, timeout: 30_000 });
    t.after(() => kv.close());
    const [reader, late] = [0, 1].map(() => kv.watch({ prefix: ["k"] }).getReader());
    const told = [];
    const reading = (async () => {
      while (told.at(-1)?.value !== "end") await take(reader, told.length + 1, told);
    })();
    // Acknowledged or not: what a fresh reader of the file is told is what the feed has to tell.
    let unknown = 0;
    for (let n = 0; n < 200; n++) {
      if (n % 50 === 25) {
        await kill(server);
        server = await spawnServer({ path, accessToken, listen });
      }
      await kv.set(["k", n % 7], n).catch((error) => {
        assert.match(error.code, /OUTCOME_UNKNOWN|UNAVAILABLE/);
        unknown++;
      });
    }
    await kv.set(["k", "end"], "end");
    await guard(reading, GUARD_MS, "the end");
    const local = await openKv(path);
    t.after(() => local.close());
    const since = "00000000000000000000";
    const logged = await take(local.watch({ prefix: ["k"] }, { since }).getReader(), told.length);
    assert.deepEqual(told, logged);
    assert.ok(told.length >= 201 - unknown);
    assert.deepEqual(await take(late, told.length), told, "one that was not read until now");
  });

  test("connections that break after any number of bytes lose no change", async (t) => {
    const COUNT = 600;
    const padding = "x".repeat(2000);
    const server = await serveFile();
    let seed = 7;
    const patience = () => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return 400 + (seed % 200_000);
    };
    const way = await startWay(server.url, { patience });
    const kv = await openKv(way.url, { accessToken, timeout: 30_000 });
    t.after(() => kv.close());
    const writer = await connect(server);
    const { versionstamp: since } = await writer.set(["before"], 0);
    const streams = [["k"], ["k", 3]].map((prefix) => kv.watch({ prefix }, { since }));
    const [all, some] = streams.map((stream) => stream.getReader());
    const writing = (async () => {
      for (const n of numbers(COUNT)) {
        await writer.set(["k", n % 7, n], n + padding);
        if (n % 40 === 0) await sleep(50);
      }
    })();
    const values = numbers(COUNT).map((n) => n + padding);
    assertAll(await take(all, COUNT), values);
    await writing;
    assertAll(
      await take(some, Math.ceil((COUNT - 3) / 7)),
      values.filter((_, n) => n % 7 === 3),
    );
    assert.ok(way.cuts > 3, `${way.cuts} cuts`);
  });

  test("writes of the same handle wait until the server has opened the feed", async (t) => {
    const server = await serveFile();
    const way = await startWay(server.url);
    const kv = await openKv(way.url, { accessToken });
    t.after(() => kv.close());
    await kv.set(["k"], "before");
    // The stream has a connection of its own, the write has one already.
    way.lateMs = 300;
    const reader = kv.watch({ prefix: [] }).getReader();
    await kv.set(["k"], "after");
    assert.deepEqual(
      (await take(reader, 1)).map(({ value }) => value),
      ["after"],
    );
  });

  test("an expired token ends the stream, and no change is lost", async () => {
    const server = await serveFile({ dataTokenMs: 1000 });
    const [kv, writer] = [await connect(server), await connect(server)];
    const reader = kv.watch({ prefix: ["k"] }).getReader();
    await kv.set(["k", 1], 0);
    for (let n = 1; n < 25; n++) {
      await writer.set(["k", 1], n);
      await sleep(100);
    }
    assertAll(await take(reader, 25), numbers(25));
  });

  test("a gap is reported, at the first read and after a long interruption", async () => {
    const kv = await connect(await serveFile());
    const { versionstamp: since } = await kv.set(["k", 1], 1);
    await kv.delete(["k", 1]);
    const reader = kv.watch({ prefix: ["k"] }, { since }).getReader();
    await assert.rejects(guard(reader.read(), GUARD_MS, "a gap"), (error) => {
      assert.ok(error instanceof KvFeedGapError, String(error));
      assert.match(error.message, new RegExp(`from ${since}.*read the present state`));
      return true;
    });
    await assert.rejects(reader.closed, KvFeedGapError);
  });

  test("a revoked token ends a feed with DENIED; a read-only token is enough", async () => {
    const server = await start({ path: `${folder()}/withdrawn/`, adminToken });
    const admin = { authorization: `Bearer ${adminToken}` };
    const ask = (method, path, body) =>
      fetch(`${server.url}/v1/admin/databases${path}`, { method, headers: admin, body });
    const { token } = await (await ask("POST", "", '{"name":"shop"}')).json();
    const read = await (await ask("POST", "/shop/tokens", '{"rights":"read"}')).json();
    const writer = await connect(server, token, "/shop");
    const kv = await connect(server, read.token, "/shop");
    const reader = kv.watch({ prefix: [] }).getReader();
    const first = take(reader, 1);
    for (let told = false; !told; await sleep(10)) {
      await writer.set(["k"], 1);
      told = await Promise.race([first.then(() => true), sleep(50)]);
    }
    assert.equal((await ask("DELETE", `/shop/tokens/${read.id}`)).ok, true);
    await assert.rejects(guard(drain(reader), GUARD_MS, "the end"), { code: "DENIED" });
  });

  test("cancel() and close() end the stream at the server", async () => {
    const server = await start({ path: `${folder()}/left/`, adminToken });
    const headers = { authorization: `Bearer ${adminToken}` };
    const databases = `${server.url}/v1/admin/databases`;
    const body = '{"name":"shop"}';
    const { token } = await (await fetch(databases, { method: "POST", headers, body })).json();
    const watches = async () =>
      (await (await fetch(`${databases}/shop`, { headers })).json()).watches;
    const open = (count) => until(async () => (await watches()) === count, `${count} are open`);
    const kv = await connect(server, token, "/shop");
    const readers = numbers(20).map((n) => kv.watch({ prefix: [n] }).getReader());
    const asked = readers.map((reader) => reader.read());
    await open(20);
    for (const reader of readers.slice(0, 10)) await reader.cancel();
    await open(10);
    await kv.close();
    await open(0);
    for (const { done } of await Promise.all(asked)) assert.equal(done, true);
  });

  const linux = process.platform === "linux" ? {} : { skip: "/proc tells of memory" };
  test("a slow reader uses no memory of the server", linux, async (t) => {
    const LARGE = "x".repeat(30_000);
    const [WARM, COUNT] = [600, 2600];
    const server = await spawnServer({ path: freshPath(), accessToken, listen: "127.0.0.1:0" });
    t.after(() => kill(server));
    const kv = await openKv(server.url, { accessToken });
    t.after(() => kv.close());
    const memory = () =>
      Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`))[1]) / 1024;
    const write = (from, to) =>
      Promise.all(numbers(to - from).map((n) => kv.set(["k", from + n], LARGE + (from + n))));
    // As it is when nobody is slow.
    const quick = kv.watch({ prefix: ["k"] }).getReader();
    for (let n = 0; n < WARM; n += 100) await write(n, n + 100);
    await take(quick, WARM);
    await quick.cancel();
    const reader = kv.watch({ prefix: ["k"] }).getReader();
    const second = kv.watch({ prefix: ["other"] }).getReader();
    const before = memory();
    for (let n = WARM; n < COUNT; n += 100) await write(n, n + 100);
    assert.ok(memory() - before < 40, `${memory() - before} MB more`);
    // It does not hold up others of its connection.
    await kv.set(["other", 1], 1);
    assert.equal((await take(second, 1))[0].value, 1);
    const changes = await take(reader, COUNT - WARM);
    const told = new Set(changes.map(({ key }) => key[1]));
    assert.deepEqual(
      [...told].sort((a, b) => a - b),
      numbers(COUNT).slice(WARM),
    );
    assert.ok(changes.every(({ key, value }) => value === LARGE + key[1]));
  });
});

/** Reads to the end. */
async function drain(reader) {
  while (!(await reader.read()).done);
}

describe("other servers", { concurrency: true }, () => {
  const stamp = (n) => Buffer.from(n.toString(16).padStart(16, "0") + "0000");
  const sized = (bytes) => frame(Buffer.from(bytes));
  /** The key ["k", name]. */
  const key = (name) =>
    Buffer.concat([Buffer.from("\x02k\0\x02"), Buffer.from(name), Buffer.from([0])]);
  const removed = (name, n) => Buffer.concat([Buffer.from([1]), stamp(n), sized(key(name))]);
  /** The frame of a batch. */
  function batch(told, ...changes) {
    const count = Buffer.alloc(4);
    count.writeUInt32LE(changes.length);
    return frame(Buffer.concat([Buffer.from([0]), stamp(told), count, ...changes]));
  }
  const error = (kind, text) => frame(Buffer.concat([Buffer.from([kind]), sized(text)]));

  /** A server that offers feeds, and answers each with what `pieces(count, body)` says. */
  async function offering(pieces, options) {
    const mock = await startMock(options);
    mock.metadata = { extensions: ["feeds-1"] };
    mock.scripts.feed = (_, response, body, count) => {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      const { frames, then } = pieces(count, body);
      for (const bytes of frames) response.write(bytes);
      if (then === "cut") setTimeout(() => (response.stream ?? response).destroy(), 5);
      if (then === "end") response.end();
      return true;
    };
    return mock;
  }

  const watching = async (mock, options) => {
    const kv = await connectTo(mock);
    return kv.watch({ prefix: ["k"] }, options).getReader();
  };

  test("a server without the extension or its feeds: UNSUPPORTED, by name", async () => {
    const plain = await startMock();
    const other = await startMock();
    other.metadata = { extensions: ["frames-0", "feeds-0"] };
    const older = await startMock();
    older.metadata = { extensions: ["feeds-1"] };
    for (const mock of [plain, other, older]) {
      const kv = await connectTo(mock);
      const reader = kv.watch({ prefix: ["k"] }).getReader();
      await kv.set(["k"], 1);
      await assert.rejects(guard(reader.read(), GUARD_MS, "an answer"), (error) => {
        assert.equal(error.code, "UNSUPPORTED");
        assert.match(error.message, /change feeds/);
        return true;
      });
      assert.equal((await kv.get(["k"])).value, 1);
    }
  });

  test("an interrupted stream resumes after the last received change", async () => {
    const sinces = [];
    const mock = await offering((count, body) => {
      sinces.push(body[0] === 0 ? null : body.subarray(1, 21).toString());
      const whole = batch(
        count * 10 + 2,
        removed("a", count * 10 + 1),
        removed("b", count * 10 + 1),
      );
      const part = batch(count * 10 + 9, removed("c", count * 10 + 5)).subarray(0, 30);
      return { frames: [batch(count * 10), Buffer.alloc(4), whole, part], then: "cut" };
    });
    const changes = await take(await watching(mock), 8);
    assert.deepEqual(changes.map(({ key }) => key[1]).join(""), "abababab");
    const expected = [null, ...[12, 22, 32].map((n) => stamp(n).toString())];
    assert.deepEqual(sinces.slice(0, 4), expected);
  });

  test("before the first batch it resumes at its opening, or at its advanced position", async () => {
    const sinces = [];
    const mock = await offering((count, body) => {
      sinces.push(body[0] === 0 ? null : body.subarray(1, 21).toString());
      if (count === 1) return { frames: [batch(5)], then: "cut" };
      if (count === 2) return { frames: [batch(5), batch(8)], then: "cut" };
      return { frames: [batch(8), batch(9, removed("a", 9))] };
    });
    await take(await watching(mock), 1);
    assert.deepEqual(sinces, [null, stamp(5).toString(), stamp(8).toString()]);
  });

  const strange = {
    "a change of an old commit": [batch(5), batch(6, removed("a", 5))],
    "a commit out of order": [batch(9, removed("a", 8), removed("a", 7))],
    "a key that is not watched": [
      batch(9, Buffer.concat([Buffer.from([1]), stamp(8), sized("\x02x\0")])),
    ],
    "a place before the one told": [batch(9), batch(8)],
    "a batch before its changes": [batch(7, removed("a", 8))],
    "a type that is none": [batch(9, Buffer.concat([Buffer.from([7]), stamp(8), sized(key("a"))]))],
    "a count that is not there": [batch(9, Buffer.alloc(0), removed("a", 8)).fill(0xff, 25, 29)],
    "a frame of 2 GB": [Buffer.from([0, 0, 0, 0x80])],
    "a kind that is none": [error(99, "what?")],
    noise: [frame(Buffer.alloc(100, 0x5a))],
  };
  for (const [name, frames] of Object.entries(strange)) {
    test(`${name}: CORRUPT`, async () => {
      const reader = await watching(await offering(() => ({ frames })));
      await assert.rejects(guard(drain(reader), GUARD_MS, "an error"), { code: "CORRUPT" });
    });
  }

  test("an error in the stream is thrown after the changes before it", async () => {
    const mock = await offering(() => ({
      frames: [batch(5), batch(7, removed("a", 7)), error(11, "too late: read")],
      then: "end",
    }));
    const reader = await watching(mock);
    assert.equal((await take(reader, 1)).length, 1);
    await assert.rejects(guard(reader.read(), GUARD_MS, "an error"), (error) => {
      assert.ok(error instanceof KvFeedGapError);
      assert.equal(error.message, "too late: read");
      return true;
    });
    assert.equal(mock.counts.feed, 1);
  });

  test("temporary failures are retried: UNAVAILABLE in the stream, 429, 503", async () => {
    const mock = await offering((count) =>
      count === 1
        ? { frames: [batch(5), error(4, "busy")], then: "end" }
        : { frames: [batch(5), batch(6, removed("a", 6))] },
    );
    const answer = mock.scripts.feed;
    mock.scripts.feed = (request, response, body, count) => {
      if (count === 2) return reply(response, 429, "text/plain", "Later.", { "retry-after": "0" });
      if (count === 3) return reply(response, 503, "text/plain", "Later.");
      return answer(request, response, body, count);
    };
    assert.equal((await take(await watching(mock), 1)).length, 1);
    assert.equal(mock.counts.feed, 4);
  });

  test("a server that does not report the position delays writes once, for a bounded time", async () => {
    const mock = await offering(() => ({ frames: [Buffer.alloc(4)] }));
    const kv = await connectTo(mock, { timeout: 3000 });
    const reader = kv.watch({ prefix: ["k"] }).getReader();
    for (const n of numbers(20)) await kv.set(["k"], n);
    assert.equal((await kv.get(["k"])).value, 19);
    await reader.cancel();
  });

  for (const h2 of [false, true]) {
    test(`a reader that reads nothing stops the server's stream (HTTP/${h2 ? 2 : 1.1})`, async () => {
      // More than twice what the kernel's own buffers may take.
      const MB = 80;
      const large = Buffer.alloc(1024 * 1024, 7);
      const setting = (n) =>
        Buffer.concat([
          Buffer.from([0]),
          stamp(n),
          sized(key("a")),
          Buffer.from([3]),
          sized(large),
        ]);
      let taken = 0;
      const mock = await offering(() => ({ frames: [] }), { h2 });
      mock.scripts.feed = (_, response) => {
        response.writeHead(200, { "content-type": "application/octet-stream" });
        (async () => {
          response.write(batch(0));
          for (let n = 1; n <= MB; n++) {
            if (!response.write(batch(n, setting(n)))) {
              await new Promise((resolve) => response.once("drain", resolve));
            }
            taken++;
          }
        })();
        return true;
      };
      const reader = await watching(mock);
      await sleep(500);
      assert.ok(taken < MB / 2, `${taken} MB were taken`);
      assert.equal((await take(reader, MB)).length, MB);
    });
  }
});
