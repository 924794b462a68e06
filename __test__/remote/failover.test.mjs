// Duty: an endpoint that fails: metadata is requested again, by one exchange for all calls, and the
// next request goes to the endpoint that it names then.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep, until } from "../kit/time.mjs";
import { failWith } from "./misbehaviour.mjs";
import { ACCESS_TOKEN, connect, Mock, start } from "./mock.mjs";

/** Longer than the interval between two exchanges of a handle. */
const INTERVAL_MS = 1100;

const naming = (url) => ({
  endpoints: [{ url: new URL("/v2", url).href, consistency: "strong" }],
});

/** A server of metadata, and two servers of the same data; the first of them leads. */
async function cluster() {
  const [metadata, first, second] = [await start(), await start(), await start()];
  second.entries = first.entries;
  metadata.metadata = naming(first.url);
  const elect = (mock) => (metadata.metadata = naming(mock.url));
  return { metadata, first, second, elect };
}

describe("an endpoint that is not reached", { concurrency: true }, () => {
  test("the write goes to the one that metadata names then, once", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    await first.close();
    elect(second);
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.deepEqual([metadata.counts.metadata, second.counts.atomic_write], [2, 1]);
    assert.equal((await kv.get(["a"])).value, 1);
    assert.equal(metadata.counts.metadata, 2, "the new endpoint is kept");
  });

  test("that has no TLS although its URL says so", async () => {
    const { metadata, first, second, elect } = await cluster();
    metadata.metadata = naming(first.url.replace("http:", "https:"));
    const kv = await connect(metadata);
    elect(second);
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.equal(first.requests.length, 0);
  });

  test("metadata that still names it is requested again until it names another", async () => {
    const { metadata, first, second } = await cluster();
    const kv = await connect(metadata, { timeout: 20_000 });
    await first.close();
    metadata.scripts.metadata = (_, __, ___, count) => {
      if (count === 4) metadata.metadata = naming(second.url);
      return false;
    };
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.deepEqual([metadata.counts.metadata, second.counts.atomic_write], [4, 1]);
  });

  test("fifty concurrent calls share each exchange", async () => {
    const { metadata, first, second } = await cluster();
    const kv = await connect(metadata, { timeout: 20_000 });
    await first.close();
    metadata.scripts.metadata = (_, __, ___, count) => {
      if (count === 3) metadata.metadata = naming(second.url);
      return false;
    };
    const calls = [];
    for (let n = 0; n < 50; n++) {
      calls.push(n % 2 ? kv.get(["a", n]) : kv.set(["a", n], n));
      // Not of one microtask, so that each is a request.
      await new Promise(setImmediate);
    }
    await Promise.all(calls);
    assert.deepEqual([metadata.counts.metadata, second.counts.atomic_write], [3, 25]);
  });

  test("that comes back is used, though no server gives metadata any more", async (t) => {
    const { metadata, first } = await cluster();
    const kv = await connect(metadata, { timeout: 20_000 });
    await first.close();
    await metadata.close();
    const write = kv.set(["a"], 1);
    await sleep(INTERVAL_MS);
    const again = new Mock();
    t.after(() => again.close());
    await again.listen(new URL(first.url).port);
    assert.equal((await write).ok, true);
    assert.equal(again.counts.atomic_write, 1);
  });

  test("UNAVAILABLE once the time of the call is over, named by its URL", async () => {
    const { metadata, first } = await cluster();
    const kv = await connect(metadata, { timeout: 3000 });
    await first.close();
    await assert.rejects(kv.set(["a"], 1), (error) => {
      assert.equal(error.code, "UNAVAILABLE", error.message);
      assert.ok(error.message.includes(first.url), error.message);
      return true;
    });
  });

  test("an abort ends the wait for metadata", async () => {
    const { metadata, first } = await cluster();
    const controller = new AbortController();
    const kv = await connect(metadata, { timeout: 600_000, signal: controller.signal });
    await first.close();
    const asked = new Promise((resolve) => {
      metadata.scripts.metadata = () => {
        resolve();
        return true;
      };
    });
    const calls = [kv.set(["a"], 1), kv.get(["b"])];
    const ended = calls.map((call) => assert.rejects(call, { message: "enough" }));
    await asked;
    controller.abort(new Error("enough"));
    await Promise.all(ended);
  });

  test("a watch moves to the one that metadata names then", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    const reader = kv.watch([["a"]]).getReader();
    assert.equal((await reader.read()).value[0].value, null);
    await first.close();
    elect(second);
    const next = reader.read();
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.equal((await next).value[0].value, 1);
    assert.equal(second.watching, 1);
  });

  test("a watch alone moves too", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    const next = reader.read();
    await first.close();
    elect(second);
    await until(() => second.watching === 1, "the watch has moved");
    await (await connect(second)).set(["a"], 2);
    assert.equal((await next).value[0].value, 2);
  });
});

describe("an endpoint that fails", { concurrency: true }, () => {
  test("a lost write is not repeated, and the next call asks for metadata first", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    await sleep(INTERVAL_MS);
    first.scripts.atomic_write = ({ socket }) => Boolean(socket.destroy());
    elect(second);
    await assert.rejects(kv.set(["a"], 1), { code: "OUTCOME_UNKNOWN" });
    assert.equal(metadata.counts.metadata, 1);
    assert.equal((await kv.set(["a"], 2)).ok, true);
    const counts = [first, second].map(({ counts }) => counts.atomic_write);
    assert.deepEqual([metadata.counts.metadata, ...counts], [2, 1, 1]);
  });

  test("a read whose answer is lost is repeated at the one that metadata names then", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    await sleep(INTERVAL_MS);
    first.scripts.snapshot_read = ({ socket }) => Boolean(socket.destroy());
    elect(second);
    assert.equal((await kv.get(["a"])).value, null);
    const counts = [first, second].map(({ counts }) => counts.snapshot_read);
    assert.deepEqual([metadata.counts.metadata, ...counts], [2, 1, 1]);
  });

  test("503 with Retry-After: the write goes to the one that metadata names then", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata, { timeout: 20_000 });
    first.scripts.atomic_write = failWith(503, { "retry-after": "0" });
    elect(second);
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.deepEqual([metadata.counts.metadata, second.counts.atomic_write], [2, 1]);
  });

  test("429: the server is there, and metadata is not requested", async () => {
    const mock = await start();
    const kv = await connect(mock);
    mock.scripts.atomic_write = (request, response, _, count) =>
      count < 5 && failWith(429)(request, response);
    await kv.set(["a"], 1);
    assert.equal(mock.counts.metadata, 1);
  });

  test("401 of a server that leads no more: the write goes to the one that leads", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    first.scripts.atomic_write = failWith(401);
    elect(second);
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.deepEqual([first.counts.atomic_write, second.counts.atomic_write], [1, 1]);
  });

  test("401 before and after a pause: two servers in turn have ceased to lead", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata, { timeout: 20_000 });
    first.scripts.atomic_write = (request, response) => {
      elect(second);
      return failWith(401)(request, response);
    };
    second.scripts.atomic_write = (request, response, _, count) => {
      if (count === 1) return failWith(503, { "retry-after": "0" })(request, response);
      delete first.scripts.atomic_write;
      elect(first);
      return failWith(401)(request, response);
    };
    assert.equal((await kv.set(["a"], 1)).ok, true);
  });

  test("no metadata after a failure: the endpoint that answers again is trusted again", async () => {
    const { metadata, first } = await cluster();
    const kv = await connect(metadata);
    await sleep(INTERVAL_MS);
    first.scripts.snapshot_read = (request, response, _, count) =>
      count === 1 && failWith(500)(request, response);
    metadata.scripts.metadata = failWith(503);
    for (let n = 0; n < 3; n++) {
      assert.equal((await kv.get(["a"])).value, null);
      await sleep(INTERVAL_MS);
    }
    assert.equal(metadata.counts.metadata, 2, "once without success");
  });

  test("a token goes to servers that metadata has named only", async () => {
    const { metadata, first, second, elect } = await cluster();
    const kv = await connect(metadata);
    await first.close();
    elect(second);
    await kv.set(["a"], 1);
    const tokens = second.requests.map(({ headers }) => headers.authorization);
    assert.ok(tokens.every((token) => token === `Bearer ${second.dataToken}`));
    assert.ok(!tokens.some((token) => token.includes(ACCESS_TOKEN)));
  });
});
