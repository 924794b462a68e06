// Duty: openkv top: what a served database does while it is called, the changes of a file by prefix, and the
// sizes of prefixes; one picture for scripts, and its end by Ctrl-C.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv, serve, sizeOf } from "../../index.mjs";
import { HANG_MS, guard } from "../kit/time.mjs";
import { folderOfTests, openkv, start } from "./running.mjs";

const require = createRequire(import.meta.url);
const { ChangeCounter } = require("../../build/cli/top/changes.js");
const { linesOf } = require("../../build/cli/top/lines.js");
const { sizesOf } = require("../../build/cli/top/sizes.js");
const { pictureOf } = require("../../build/cli/top/picture.js");

const inFolder = folderOfTests();
const accessToken = "a-token-of-the-tests-of-top";

let files = 0;

async function served(t) {
  const path = inFolder(`served-${files++}.sqlite3`);
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken });
  t.after(() => server.close());
  const kv = await openKv(server.url, { accessToken });
  t.after(() => kv.close());
  return { kv, url: server.url };
}

/** Starts top with pictures in JSON; `next()` gives them one after the other. */
function pictures(t, ...args) {
  const child = start(["top", ...args, "--json", "--interval", "100ms"], {
    OPENKV_ACCESS_TOKEN: accessToken,
  });
  t.after(() => child.kill("SIGKILL"));
  const lines = [];
  let rest = "";
  let err = "";
  child.stderr.on("data", (data) => (err += data));
  child.stdout.on("data", (data) => {
    const all = (rest + data).split("\n");
    rest = all.pop();
    lines.push(...all);
    child.emit("a picture");
  });
  const next = async () => {
    while (lines.length === 0) await guard(once(child, "a picture"), HANG_MS, `a picture ${err}`);
    return JSON.parse(lines.shift());
  };
  return { child, next };
}

/** Adds pictures up until they tell `count` changes. */
async function summed(next, count) {
  const sum = { changes: 0, sets: 0, hottest: new Map() };
  while (Math.round(sum.changes) < count || (sum.isServed && Math.round(sum.sets) < count)) {
    const { changes, seconds, operations } = await next();
    sum.isServed = operations !== null;
    sum.changes += changes.perSecond * seconds;
    sum.sets += (operations?.set?.perSecond ?? 0) * seconds;
    for (const { prefix, perSecond } of changes.hottest) {
      sum.hottest.set(prefix, (sum.hottest.get(prefix) ?? 0) + perSecond * seconds);
    }
  }
  const hottest = [...sum.hottest].map(([prefix, of]) => [prefix, Math.round(of)]);
  return { changes: Math.round(sum.changes), sets: Math.round(sum.sets), hottest };
}

test("of a server: operations, changes and the hottest prefixes, until it is interrupted", async (t) => {
  const { kv, url } = await served(t);
  const { child, next } = pictures(t, url);
  const first = await next();
  assert.equal(first.database, `${url}/`);
  for (let n = 0; n < 7; n++) await kv.set(["users", n], n);
  for (let n = 0; n < 3; n++) await kv.set(["carts", n], n);
  const sum = await summed(next, 10);
  assert.deepEqual([sum.changes, sum.sets], [10, 10]);
  assert.deepEqual(
    sum.hottest.sort(([, one], [, other]) => other - one),
    [
      ['["users"]', 7],
      ['["carts"]', 3],
    ],
  );
  const { slowest, queues } = await next();
  assert.deepEqual([Array.isArray(slowest), queues], [true, {}]);
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "close"), [0, null]);
});

test("of a file: the changes of another process, and no operations", async (t) => {
  const file = inFolder("app.sqlite3");
  const kv = await openKv(file);
  t.after(() => kv.close());
  const { next } = pictures(t, file, "--depth", "2");
  const { operations, slowest } = await next();
  assert.deepEqual([operations, slowest], [null, null]);
  // The feed of the other process may begin behind the first writes.
  for (let seen = 0, n = 0; seen < 3; n++) {
    await kv.set(["users", "ada", n], n);
    const { changes, seconds } = await next();
    const prefixes = changes.hottest.map(({ prefix }) => prefix);
    assert.deepEqual(prefixes, changes.perSecond > 0 ? ['["users", "ada"]'] : []);
    seen += Math.round(changes.perSecond * seconds);
  }
});

test("one picture for people", async (t) => {
  const { kv, url } = await served(t);
  await kv.set(["a"], 1);
  await kv.queue("mail").enqueue(1);
  const args = ["top", url, "--once", "--interval", "100ms", "--token", accessToken];
  const { out, code } = await openkv(...args);
  assert.equal(code, 0);
  assert.match(out, /^operation +\/s +errors\/s +mean ms +p99 ms$/m);
  assert.match(out, /^set +0 +0 +\d/m);
  assert.match(out, /^changes 0\/s$/m);
  assert.match(out, /^mail +1 +0 +0 +0$/m);
  assert.doesNotMatch(out, /\u001b/);
  const quiet = await openkv(...args, "--no-changes", "--json");
  assert.equal(JSON.parse(quiet.out).changes, null);
});

test("the sizes of prefixes are those of their keys and values", async () => {
  const file = inFolder("sizes.sqlite3");
  const kv = await openKv(file);
  const all = [
    [["users", 1n], "x".repeat(1000)],
    [["users", "ada"], { born: 1815 }],
    [["users"], "all of them"],
    [["logo"], new Uint8Array(70)],
  ];
  for (const [key, value] of all) await kv.set(key, value);
  await kv.close();
  const of = (...entries) =>
    entries.reduce((sum, [key, value]) => sum + sizeOf.key(key) + sizeOf(value), 0);
  const sizes = async (...args) => {
    const { out, code } = await openkv("top", file, "--sizes", "--json", ...args);
    assert.equal(code, 0);
    return out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  assert.deepEqual(await sizes(), [
    { prefix: '["users"]', entries: 3, bytes: of(...all.slice(0, 3)) },
    { prefix: '["logo"]', entries: 1, bytes: of(all[3]) },
  ]);
  assert.deepEqual(await sizes("--prefix", "users"), [
    { prefix: '["users", 1n]', entries: 1, bytes: of(all[0]) },
    { prefix: '["users", "ada"]', entries: 1, bytes: of(all[1]) },
    { prefix: '["users"]', entries: 1, bytes: of(all[2]) },
  ]);
  const { out } = await openkv("top", file, "--sizes");
  assert.match(out, /^prefix +entries +bytes\n\["users"\] +3 +1\.1 KB\n/);
});

test("a reading of sizes that is interrupted tells what it has read", async () => {
  const kv = await openKv(":memory:");
  for (let n = 0; n < 20; n++) await kv.set(["n", n], n);
  const stop = new AbortController();
  const told = (entries) => entries === 7 && stop.abort();
  const { sizes, isWhole } = await sizesOf(kv, { prefix: [], depth: 1 }, stop.signal, told);
  assert.deepEqual(
    [isWhole, sizes.length, sizes[0].prefix, sizes[0].entries],
    [false, 1, '["n"]', 7],
  );
  await kv.close();
});

test("wrong usage is refused before a database is opened", async () => {
  for (const [args, message] of [
    [["--prefix", "a"], /--prefix needs --sizes/],
    [["--interval", "1ms"], /--interval must be from 100ms to 24h: 1 ms given/],
    [["--depth", "0"], /at least 1/],
  ]) {
    const { code, err } = await openkv("top", inFolder("none.sqlite3"), ...args);
    assert.deepEqual([code, message.test(err)], [2, true], err);
  }
  const { code, err } = await openkv("top", inFolder("none.sqlite3"));
  assert.deepEqual([code, /does not exist/.test(err)], [1, true], err);
});

/** A handle whose feed yields these batches. */
function fed(...batches) {
  const opened = [];
  const watch = () => {
    const stream = new ReadableStream({
      pull(controller) {
        const keys = batches.shift();
        if (keys) controller.enqueue({ changes: keys.map((key) => ({ key })) });
      },
      cancel: () => opened.push("cancelled"),
    });
    opened.push("opened");
    return stream;
  };
  return { kv: { watch }, opened };
}

test("a feed with many changes is cancelled, and opened again for the next interval", async () => {
  const users = (count) => Array.from({ length: count }, (_, n) => ["users", n]);
  const { kv, opened } = fed(users(3), users(3), users(1));
  const counter = new ChangeCounter(kv, 1, Date.now() - 1000, 5);
  await new Promise(setImmediate);
  assert.deepEqual(opened, ["opened", "cancelled"]);
  const { sampled, hottest } = counter.take();
  assert.equal(sampled, true);
  assert.deepEqual(
    hottest.map(({ prefix }) => prefix),
    ['["users"]'],
  );
  await new Promise(setImmediate);
  const again = counter.take();
  assert.deepEqual([again.sampled, again.hottest.length, opened.at(-1)], [false, 1, "opened"]);
  await counter.end();
});

test("a database without a change feed has a picture without changes", async () => {
  const watch = () => new ReadableStream({ start: (of) => of.error(new Error("refused")) });
  const counter = new ChangeCounter({ watch }, 1);
  await new Promise(setImmediate);
  assert.equal(counter.take(), null);
  await counter.end();
});

test("rates are of the interval, and a restarted server counts from 0", () => {
  const latency = (samples, sumMs) => ({ samples, sumMs, p50Ms: 1, p90Ms: 1, p99Ms: 7, maxMs: 9 });
  const of = (count, ...timed) => ({
    operations: {
      set: { count, errors: 1, latency: latency(...timed) },
      get: { count: 0, errors: 0, latency: null },
    },
    commits: count,
    conflicts: 0,
    queues: {},
    databaseBytes: 1,
    walBytes: 2,
    slowest: [
      { operation: "list", prefix: '["a"]', times: 1, failed: true, durationMs: 12.34, atMs: 0 },
      { operation: "set", key: '["a\\u001b"]', times: 3, failed: false, durationMs: 11, atMs: 0 },
    ],
  });
  const source = { database: "http://127.0.0.1/", isServed: true };
  const picture = pictureOf(source, [of(10, 4, 8), of(30, 8, 20)], [1000, 3000], null);
  assert.deepEqual(picture.operations, {
    set: { perSecond: 10, errorsPerSecond: 0, meanMs: 3, p99Ms: 7 },
  });
  assert.equal(picture.commitsPerSecond, 10);
  const restarted = pictureOf(source, [of(30, 8, 20), of(4, 1, 2)], [1000, 3000], null);
  assert.equal(restarted.operations.set.perSecond, 2);
  const lines = linesOf(picture).join("\n");
  assert.match(lines, /^list failed +12\.3 +1970-01-01T00:00:00\.000Z +\["a"\] and below$/m);
  assert.match(lines, /^set ×3 +11\.0 +1970-01-01T00:00:00\.000Z +\["a\\u001b"\]$/m);
  const { slowest: _, ...early } = of(1, 1, 1);
  assert.equal(pictureOf(source, [early, early], [0, 1], null).slowest, null);
});
