// Duty: openKv with the URLs of several servers of one database: which is asked for metadata, and
// which lists are refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { open, startServer } from "../kit/server.mjs";
import { guard, HANG_MS } from "../kit/time.mjs";
import { failWith } from "./misbehaviour.mjs";
import { ACCESS_TOKEN, connect, NOBODY, start } from "./mock.mjs";

const freshPath = freshPaths("url-lists");
const listOf = (...mocks) => ({ url: mocks.map((mock) => mock.url ?? mock).join(",") });

/** Two servers of the same data. */
async function pair() {
  const [first, second] = [await start(), await start()];
  second.entries = first.entries;
  return [first, second];
}

describe("a list of URLs", { concurrency: true }, () => {
  test("metadata comes from the first; the others are not asked", async () => {
    const [first, second] = await pair();
    const kv = await connect(listOf(first, second));
    await kv.set(["a"], 1);
    assert.deepEqual([first.counts.metadata, second.requests.length], [1, 0]);
  });

  for (const [name, prepare] of [
    ["is not reached", (first) => first.close()],
    ["answers 500", (first) => (first.scripts.metadata = failWith(500))],
    ["answers 503", (first) => (first.scripts.metadata = failWith(503, { "retry-after": "60" }))],
    ["does not answer", (first) => (first.scripts.metadata = () => true)],
  ]) {
    test(`the first ${name}: the second is asked`, async () => {
      const [first, second] = await pair();
      await prepare(first);
      const kv = await connect(listOf(first, second));
      assert.equal((await kv.set(["a"], 1)).ok, true);
      assert.deepEqual([second.counts.metadata, second.counts.atomic_write], [1, 1]);
    });
  }

  test("a refusal of the first is the answer", async () => {
    const [first, second] = await pair();
    first.scripts.metadata = failWith(401);
    await assert.rejects(connect(listOf(first, second)), { code: "DENIED" });
    assert.equal(second.requests.length, 0);
  });

  test("a server that ends later: the next one, and the first again after it", async () => {
    const [first, second] = await pair();
    const kv = await connect(listOf(first, second), { timeout: 20_000 });
    const port = new URL(first.url).port;
    assert.equal((await kv.set(["a"], 1)).ok, true);
    await first.close();
    // A write on the connection that is closing may have happened: a read tells the client that it has closed.
    await kv.get(["a"]);
    assert.equal((await kv.set(["a"], 2)).ok, true);
    assert.equal(second.counts.atomic_write, 1);
    await first.listen(port);
    await second.close();
    await kv.get(["a"]);
    assert.equal((await kv.set(["a"], 3)).ok, true);
    assert.equal((await kv.get(["a"])).value, 3);
    assert.deepEqual([first.counts.atomic_write, second.counts.atomic_write], [2, 1]);
  });

  test("the URL that answered last is asked first", async () => {
    const [first, second] = await pair();
    first.scripts.metadata = failWith(500);
    const kv = await connect(listOf(first, second));
    second.dataToken = "second";
    assert.equal((await kv.set(["a"], 1)).ok, true);
    assert.deepEqual([first.counts.metadata, second.counts.metadata], [1, 2]);
  });

  test("a URL is not asked before its Retry-After is over", async () => {
    const [first] = await pair();
    first.scripts.metadata = failWith(503, { "retry-after": "60" });
    await assert.rejects(connect(listOf(first, NOBODY), { timeout: 1500 }), {
      code: "UNAVAILABLE",
    });
    assert.equal(first.counts.metadata, 1);
  });

  test("another database: CORRUPT, with both URLs and no token", async () => {
    const [first, second] = await pair();
    second.metadata = { databaseId: "fedcba98-7654-3210-fedc-ba9876543210" };
    const kv = await connect(listOf(first, `${second.url}?key=secret`));
    await first.close();
    await assert.rejects(kv.get(["a"]), { code: "CORRUPT" });
    await assert.rejects(kv.set(["a"], 1), (error) => {
      assert.equal(error.code, "CORRUPT", error.message);
      for (const { url } of [first, second]) assert.ok(error.message.includes(url), error.message);
      assert.doesNotMatch(error.message, /secret|token/);
      return true;
    });
    assert.equal(second.counts.atomic_write, 0);
  });

  test("no server: the error has the reason of each URL", async () => {
    const [first] = await pair();
    first.scripts.metadata = failWith(500);
    const [one, other] = [`${NOBODY}?key=secret`, first.url];
    await assert.rejects(connect(listOf(one, other)), (error) => {
      assert.equal(error.code, "UNAVAILABLE");
      assert.match(error.message, /refused.*500/is);
      assert.ok(error.message.includes(other) && !error.message.includes("secret"));
      return true;
    });
  });

  test("a redirect to an origin that is not in the list is refused", async () => {
    const [second, other] = await pair();
    second.scripts.metadata = failWith(307, { location: other.url });
    const opening = connect(listOf(NOBODY, second));
    await assert.rejects(opening, { code: "CORRUPT", message: /another origin/ });
    assert.equal(other.requests.length, 0);
  });

  test("a comma without a URL behind it is part of the URL", async () => {
    const [first, second] = await pair();
    await connect(listOf(`${first.url}shop,eu?a=1,2,`));
    assert.equal(first.requests[0].url, "/shop,eu?a=1,2,");
    const upper = second.url.replace("http", "HTTP");
    await connect(listOf(`${NOBODY}a,b`, `${upper}x,y`));
    assert.equal(second.requests[0].url, "/x,y");
  });

  const A = "http://a.invalid/?key=secret";
  const B = "http://b.invalid/";
  for (const [name, list, words] of [
    ["an empty part", `${A},,${B}`, /none is empty/],
    ["an empty part at the start", `,${B}`, /none is empty/],
    ["an empty part at the end", `${A},${B},`, /none is empty/],
    ["a space behind a comma", `${A}, ${B}`, /directly behind a comma/],
    ["a URL of another scheme", `${A},ftp://b.invalid/`, /begins with http/],
    ["a path before a URL", `app.sqlite3,${B}`, /begins with http/],
    ["a URL without a host", `${A},http://`, /Invalid URL/],
    ["a user and a password", `${A},http://user:secret@b.invalid/`, /accessToken/],
    ["a fragment", `${A},${B}#part`, /fragment/],
    ["https and http", `https://a.invalid/,${B}`, /all with https/],
    ["too many URLs", Array(17).fill(B).join(","), /1 to 16 URLs: received 17/],
  ]) {
    test(`${name}: TypeError`, async () => {
      await assert.rejects(openKv(list, { accessToken: ACCESS_TOKEN, timeout: 1000 }), (error) => {
        assert.ok(error instanceof TypeError, `${error}`);
        assert.match(error.message, words);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    });
  }

  test("sixteen URLs are allowed", async () => {
    const [first] = await pair();
    const kv = await connect(listOf(...Array(15).fill(NOBODY), first));
    assert.equal((await kv.get(["a"])).value, null);
  });

  test("of another scheme first is refused by name", async () => {
    await assert.rejects(openKv(`ftp://a.invalid/,${B}`, { accessToken: ACCESS_TOKEN }), {
      code: "UNSUPPORTED",
    });
  });
});

test("OPENKV_URL and --db take a list", async () => {
  const [first] = await pair();
  const { url } = listOf(NOBODY, first);
  const token = { OPENKV_ACCESS_TOKEN: ACCESS_TOKEN };
  const written = await openkv("--db", url, "set", '["a"]', "1", { env: token });
  assert.equal(written.code, 0, written.err);
  assert.equal(first.entries.size, 1);
  const read = await openkv("get", '["a"]', { env: { ...token, OPENKV_URL: url } });
  assert.deepEqual([read.code, read.out.includes("1")], [0, true], read.err);
});

test("a database is not copied onto itself by a list", async () => {
  const list = "http://127.0.0.1:2/,http://127.0.0.1:1/";
  const { err } = await openkv("copy", list, "http://127.0.0.1:1", "--token", "x");
  assert.match(err, /are the same database/);
});

test("the commands of the admin API ask the first server of --db", async () => {
  const env = { OPENKV_ADMIN_TOKEN: "x" };
  const { err } = await openkv("--db", `${NOBODY}a,http://127.0.0.1:2/a`, "db", "list", { env });
  assert.match(err, /http:\/\/127.0.0.1:1 does not answer/);
});

test("servers of openkv: a watch, a feed and a listener continue at the next server", async () => {
  const path = freshPath();
  const accessToken = "access-token-of-a-file";
  const [first, second] = [
    await startServer({ path, accessToken }),
    await startServer({ path, accessToken }),
  ];
  const kv = await open(`${first.url},${second.url}`, { accessToken, timeout: 20_000 });
  const [watch, feed] = [kv.watch([["a", 1]]), kv.watch({ prefix: ["a"] })].map((it) =>
    it.getReader(),
  );
  const handled = [];
  const stop = new AbortController();
  let all;
  const both = new Promise((resolve) => (all = resolve));
  const listening = kv.queue("work").listen(
    (value) => {
      handled.push(value);
      if (handled.length === 2) all();
    },
    { signal: stop.signal },
  );
  assert.equal((await watch.read()).value[0].value, null);
  await kv.set(["a", 1], 1);
  await kv.queue("work").enqueue(1);
  assert.equal((await watch.read()).value[0].value, 1);
  assert.equal((await feed.read()).value.changes[0].value, 1);
  await first.close();
  await kv.set(["a", 1], 2);
  await kv.queue("work").enqueue(2);
  assert.equal((await guard(watch.read(), HANG_MS, "a state")).value[0].value, 2);
  assert.equal((await guard(feed.read(), HANG_MS, "a batch")).value.changes[0].value, 2);
  await guard(both, HANG_MS, "both messages");
  stop.abort();
  await listening;
  assert.deepEqual(handled, [1, 2]);
});
