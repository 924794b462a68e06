// Duty: metadata exchanges: which servers get the access token, and how concurrent calls share an
// exchange.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ACCESS_TOKEN, connect, reply, start } from "./mock.mjs";

const NEVER_AGAIN = { "retry-after": "18446744073709551615" };
const refuse = (status, headers) => (_, response) =>
  reply(response, status, "text/plain", "not now", headers);

/** Metadata is asked for, and answered when the promise's function is called. */
const held = (mock) =>
  new Promise((asked) => {
    mock.scripts.metadata = (_, response) => {
      asked(() => mock.exchange(response));
      return true;
    };
  });

describe("metadata", { concurrency: true }, () => {
  // A redirect to another port once took the token there, as no fetch would.
  test("a redirect to another origin is rejected, and nothing is sent there", async () => {
    const [mock, other] = [await start(), await start()];
    const { port } = new URL(other.url);
    for (const location of [other.url, `http://localhost:${port}/x`, `//127.0.0.1:${port}/`]) {
      mock.scripts.metadata = refuse(307, { location });
      await assert.rejects(connect(mock), (error) => {
        assert.equal(error.code, "CORRUPT");
        assert.match(error.message, /another origin/);
        assert.ok(error.message.includes(port) && !error.message.includes(ACCESS_TOKEN));
        return true;
      });
    }
    assert.equal(other.requests.length, 0);
  });

  // Each of them once asked by itself, a second after the other, and most ran out of time.
  test("a revoked token: one exchange answers all waiting calls", async () => {
    const mock = await start();
    const kv = await connect(mock, { timeout: 20_000 });
    const reads = 12;
    let under = 0;
    const late = [];
    mock.scripts.snapshot_read = (_, response) => {
      late.push(() => refuse(401)(_, response));
      if (++under === reads) for (const answer of late) answer();
      return true;
    };
    mock.scripts.metadata = (_, response) =>
      // By then all of them wait.
      Boolean(setTimeout(() => reply(response, 401, "text/plain", "No."), 1000));
    // Not of one microtask, so that each is a request.
    const codes = [];
    for (let i = 0; i < reads; i++) {
      codes.push(kv.get([i]).catch((error) => error.code));
      await new Promise(setImmediate);
    }
    assert.deepEqual(await Promise.all(codes), Array(reads).fill("DENIED"));
    assert.equal(mock.counts.metadata, 2);
  });

  // The pause of one was once everybody's, however long it had grown.
  test("a new call does not wait for the long pause of an earlier one", async () => {
    const mock = await start();
    const kv = await connect(mock, { timeout: 20_000 });
    mock.dataToken = "second";
    const failed = new Promise((resolve) => {
      mock.scripts.metadata = (request, response, _, count) => {
        if (count > 6) return false;
        if (count === 6) resolve();
        return refuse(503)(request, response);
      };
    });
    const order = [];
    const first = kv.get(["a"]).then(() => order.push("first"));
    await failed;
    await kv.get(["a"]).then(() => order.push("second"));
    await first;
    assert.deepEqual(order, ["second", "first"]);
    assert.equal(mock.counts.metadata, 7);
  });

  // Until the answer came, all went by HTTP/1.1, of which this server knows nothing.
  test("HTTP/2 stays in use during a renewal", async () => {
    const mock = await start({ h2: true });
    const kv = await connect(mock);
    mock.scripts.snapshot_read = (request, response, _, count) =>
      count === 1 && refuse(401)(request, response);
    const asked = held(mock);
    const read = kv.get(["a"]);
    const answer = await asked;
    assert.equal((await kv.set(["a"], 1)).ok, true);
    answer();
    assert.equal((await read).value, 1);
  });

  // The sum of now and such a time is none: it ended the task that had asked.
  test("a server with an endless Retry-After is UNAVAILABLE", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.dataToken = "second";
    mock.scripts.metadata = refuse(503, NEVER_AGAIN);
    await assert.rejects(kv.get(["a"]), { code: "UNAVAILABLE" });
    await assert.rejects(kv.set(["a"], 1), { code: "UNAVAILABLE" });
    await assert.rejects(connect(mock), (error) => {
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.message.split(mock.url).length, 2, `named once: ${error.message}`);
      return true;
    });
  });
});
