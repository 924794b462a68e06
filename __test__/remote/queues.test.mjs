// Duty: consuming queues of a remote database: dispatch, locks while the network fails, and
// repeated settlements. (__test__/api/named-queues.test.mjs and the conformance cases test queues
// themselves, over a URL too.)

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { HANG_MS, sleep, until } from "../kit/time.mjs";
import { lossy } from "./lossy.mjs";
import { connect, reply, start } from "./mock.mjs";

const ACCESS_TOKEN = "access-token-of-a-file";
const READ_TOKEN = "read-token-of-a-file";
const LOCK_MS = 3_000;
const freshPath = freshPaths("queues");
const links = [];

after(() => Promise.all(links.map((link) => link.close())));

/** A server, the file that it has, and ways to it: `client()` goes straight, `kv` by a link. */
async function served(options = {}) {
  const path = freshPath();
  const tokens = { accessToken: ACCESS_TOKEN, readToken: READ_TOKEN };
  const server = await startServer({ path, ...tokens, ...options });
  const link = await lossy(server.url);
  links.push(link);
  const way = (url, accessToken = ACCESS_TOKEN) => open(url, { accessToken });
  const local = await open(path);
  const client = (token) => way(server.url, token);
  return { server, link, local, client, kv: await way(link.url) };
}

const enqueue = async (kv, count, options) => {
  for (let n = 0; n < count; n++) await kv.queue("work").enqueue(n, options);
};

test("two clients share a queue, each with its credits, and get messages in order", async () => {
  const { local, client } = await served();
  await enqueue(local, 60);
  const stop = new AbortController();
  const begun = [];
  const counts = [0, 0];
  const running = [0, 0];
  const most = [0, 0];
  const listening = [0, 1].map(async (who) => {
    const kv = await client();
    await kv.queue("work").listen(
      async (n) => {
        begun.push(n);
        counts[who]++;
        most[who] = Math.max(most[who], ++running[who]);
        await until(() => counts[0] > 0 && counts[1] > 0, "both clients get messages");
        running[who]--;
        if (begun.length === 60) stop.abort();
      },
      { concurrency: 3, signal: stop.signal },
    );
  });
  await Promise.all(listening);
  assert.deepEqual(
    begun.toSorted((a, b) => a - b),
    Array.from({ length: 60 }, (_, n) => n),
  );
  begun.forEach((n, at) => assert.ok(Math.abs(n - at) <= 6, `${n} came at place ${at}`));
  assert.ok(most[0] <= 3 && most[1] <= 3, String(most));
  assert.deepEqual((await local.queue("work").stats()).total, 0, "all ends are told by then");
});

test("a lock is renewed while its handler runs, also while it blocks the thread", async () => {
  const { local, client } = await served();
  const [kv, other] = [await client(), await client()];
  const stop = new AbortController();
  const attempts = [];
  /** A lock that is not renewed has run out by then. */
  const beyondMs = 1.5 * LOCK_MS;
  const looked = {};
  looked.promise = new Promise((resolve) => (looked.resolve = resolve));
  const listening = kv.queue("work").listen(
    async (_, message) => {
      attempts.push(message.attempts);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, beyondMs);
      await sleep(beyondMs);
      stop.abort();
      // The stream is left; the lock still goes on.
      await looked.promise;
    },
    { lockDuration: LOCK_MS, drain: HANG_MS, signal: stop.signal },
  );
  await enqueue(local, 1);
  await until(() => attempts.length > 0, "a delivery");
  assert.equal(await other.queue("work").receive({ wait: 2 * beyondMs }), null);
  looked.resolve();
  await listening;
  assert.deepEqual(attempts, [1]);
  assert.equal((await local.queue("work").stats()).total, 0);
});

test("failed messages follow the backoff schedule and die with the thrown error", async () => {
  const { client } = await served();
  const kv = await client();
  const queue = kv.queue("work");
  const times = [];
  const stop = new AbortController();
  const long = "x".repeat(20_000);
  const listening = queue.listen(
    (_, { attempts }) => {
      times.push(Date.now());
      throw new RangeError(`attempt ${attempts} ${long}`);
    },
    { signal: stop.signal },
  );
  await queue.enqueue("bad", { backoffSchedule: [50, 200] });
  await until(async () => (await queue.stats()).dead === 1, "its death");
  stop.abort();
  await listening;
  assert.equal(times.length, 3);
  assert.ok(times[1] - times[0] >= 50 && times[2] - times[1] >= 200, String(times));
  const {
    messages: [dead],
  } = await queue.dead.list();
  assert.equal(dead.error.name, "RangeError");
  assert.match(dead.error.message, /^attempt 3 x+$/);
});

describe("lost requests and answers", () => {
  test("settlements are repeated until the server confirms them", async () => {
    const { kv, link, local } = await served();
    const stop = new AbortController();
    let handled = 0;
    let lost = 0;
    link.loses = (path) => path.endsWith("/call/38") && lost++ % 3 < 2 && lost < 30;
    const listening = kv.queue("work").listen(
      async () => {
        await sleep(3);
        if (++handled === 30) stop.abort();
      },
      { signal: stop.signal },
    );
    await enqueue(local, 30);
    await listening;
    assert.equal(handled, 30, "none was delivered twice");
    assert.equal((await local.queue("work").stats()).total, 0);
    assert.ok(lost > 3, "nothing was lost");
  });

  test("a repeated failure uses one interval of the schedule", async () => {
    const { kv, link, local } = await served();
    const stop = new AbortController();
    const attempts = [];
    link.loseNext("/call/38", 3);
    const listening = kv.queue("work").listen(
      (_, message) => {
        attempts.push(message.attempts);
        if (message.attempts === 3) return stop.abort();
        throw new Error("again");
      },
      { concurrency: 1, signal: stop.signal },
    );
    await enqueue(local, 1, { backoffSchedule: [0, 0] });
    await listening;
    assert.deepEqual(attempts, [1, 2, 3]);
    assert.equal((await local.queue("work").stats()).total, 0);
  });

  test("a lost received message is redelivered when its lock expires", async () => {
    const { kv, link, local } = await served();
    await enqueue(local, 1);
    link.loseNext("/receive");
    const message = await kv.queue("work").receive({ lockDuration: 2000, wait: 20_000 });
    assert.deepEqual([message.value, message.attempts], [0, 2]);
    assert.equal(await message.ack(), true);
  });

  test("after all connections: handlers continue, keep their locks and settle", async () => {
    const { kv, link, local, client } = await served();
    const stop = new AbortController();
    const attempts = [];
    const listening = kv.queue("work").listen(
      async (_, message) => {
        attempts.push(message.attempts);
        // One that is on its way when the way is cut comes again later: none is.
        await until(() => attempts.length >= 4, "all deliveries");
        for (let n = 0; n < 20; n++) {
          link.cut();
          await sleep(250);
        }
        stop.abort();
      },
      { concurrency: 4, lockDuration: 4000, signal: stop.signal },
    );
    const other = await client();
    await enqueue(local, 4);
    await until(() => attempts.length > 0, "a delivery");
    await listening;
    assert.deepEqual(attempts, [1, 1, 1, 1]);
    assert.equal(await other.queue("work").receive(), null);
    assert.equal((await local.queue("work").stats()).total, 0);
  });
});

test("a credit freed while a stream opens is granted once it is open", async () => {
  // What was told before there was a stream counted as told to it: no message came any more.
  const { kv, link, local } = await served();
  const stop = new AbortController();
  const handled = [];
  let streams = 0;
  link.delays = (path) => (path.endsWith("/consume") && streams++ > 0 ? 300 : 0);
  const listening = kv.queue("work").listen(
    async (n) => {
      if (n === 0) {
        link.cut();
        await until(() => streams === 2, "another stream is asked for");
      }
      handled.push(n);
      if (n === 1) stop.abort();
    },
    { concurrency: 1, signal: stop.signal },
  );
  await enqueue(local, 2);
  await until(() => handled.length === 2, "the second message");
  await listening;
});

test("after an immediate empty answer the next request waits for a pause", async () => {
  const mock = await start();
  mock.metadata = { extensions: ["frames-1", "queues-2"] };
  mock.scripts.receive = (_, response) =>
    reply(response, 200, "application/octet-stream", Buffer.from([0]));
  const kv = await connect(mock);
  assert.equal(await kv.queue("work").receive({ wait: 500 }), null);
  assert.ok(mock.counts.receive < 20, `${mock.counts.receive} requests`);
});

test("a stopped listener puts messages on their way back", async () => {
  const { local, client } = await served();
  await enqueue(local, 200);
  for (let round = 0; round < 5; round++) {
    const kv = await client();
    const stop = new AbortController();
    let begun = 0;
    await kv.queue("work").listen(
      () => {
        if (++begun === 3) stop.abort();
      },
      { concurrency: 40, lockDuration: 60_000, signal: stop.signal },
    );
    // The server commits it on its own, long before the locks end.
    const isFree = async () => (await local.queue("work").stats()).processing === 0;
    await until(isFree, `the return of round ${round}`);
    await kv.close();
  }
  for (let message; (message = await local.queue("work").receive()) !== null; ) {
    assert.equal(message.attempts, 1, "nobody had seen it");
  }
});

test("a cancelled wait leaves no message locked", async () => {
  const { local, client } = await served();
  const queue = (await client()).queue("work");
  let got = 0;
  for (let round = 0; round < 40; round++) {
    const stop = new AbortController();
    const receiving = queue.receive({ wait: 60_000, lockDuration: 60_000, signal: stop.signal });
    const enqueuing = local.queue("work").enqueue(round);
    setTimeout(() => stop.abort(new Error("enough")), round % 8);
    const message = await receiving.catch((error) => {
      assert.equal(error.message, "enough");
      return null;
    });
    await enqueuing;
    if (message !== null) {
      got++;
      assert.equal(await message.ack(), true);
    }
  }
  const stats = await local.queue("work").stats();
  assert.deepEqual(stats, {
    pending: 40 - got,
    delayed: 0,
    processing: 0,
    dead: 0,
    total: 40 - got,
    paused: false,
  });
});

test("close() ends listeners and waits; earlier settlements are sent", async () => {
  const { local, client } = await served();
  await enqueue(local, 20);
  const kv = await client();
  let done = 0;
  const listening = kv.queue("work").listen(() => void done++, { concurrency: 20 });
  await until(() => done === 20, "all handled");
  const waiting = assert.rejects(kv.queue("none").receive({ wait: 60_000 }), { code: "CLOSED" });
  await kv.close();
  await Promise.all([listening, waiting]);
  assert.equal((await local.queue("work").stats()).total, 0);
});

test("Deno's queue: listenQueue, at once and after failures", async () => {
  const { local, client } = await served();
  const [kv, sender] = [await client(), await client()];
  const seen = [];
  const ended = kv.listenQueue((value) => {
    seen.push(value);
    if (seen.length === 1) throw new Error("expected by the test");
  });
  await sender.enqueue({ n: 1n }, { backoffSchedule: [30] });
  await until(() => seen.length === 2, "the second delivery");
  assert.deepEqual(seen, [{ n: 1n }, { n: 1n }]);
  await local.atomic().enqueue("in a commit").commit();
  await until(() => seen.length === 3, "the message of a commit");
  await kv.close();
  await ended;
});

describe("rejections", () => {
  const consuming = {
    listen: (kv) => kv.queue("work").listen(() => {}),
    listenQueue: (kv) => kv.listenQueue(() => {}),
    receive: (kv) => kv.queue("work").receive(),
    "receive that waits": (kv) => kv.queue("work").receive({ wait: 60_000 }),
  };
  test("a read-only token, by name", async () => {
    const { client } = await served();
    const kv = await client(READ_TOKEN);
    for (const [name, call] of Object.entries(consuming)) {
      await assert.rejects(call(kv), { code: "DENIED", message: /may only read/ }, name);
    }
  });

  test("a server without the extension, by the missing feature", async () => {
    const kv = await connect(await start());
    for (const [name, call] of Object.entries(consuming)) {
      const message = /lacks the extension.*(listening to|receiving from) queues/;
      await assert.rejects(call(kv), { code: "UNSUPPORTED", message }, name);
    }
  });

  test("consumers over the quota of watches wait until one ends", async () => {
    const { client, local } = await served({ quotas: { watches: 1 } });
    const [first, second] = [await client(), await client()];
    const watching = first.watch([["a"]]).getReader();
    await watching.read();
    const seen = [];
    const listening = second.queue("work").listen((n) => void seen.push(n));
    await enqueue(local, 1);
    await sleep(300);
    assert.deepEqual(seen, []);
    await watching.cancel();
    await until(() => seen.length === 1, "a place");
    second.close();
    await listening;
  });
});
