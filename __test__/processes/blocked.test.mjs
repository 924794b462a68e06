// Work that waits because another process holds the file's write lock.
//
// Consumers keep their messages when that takes longer than the messages' locks last. With a block
// of 7 s and locks of 5 s, 12 of 16 messages once ran twice at the same time: the first writer that
// got the file back took the locks for expired, before their holders could renew them.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { HANG_MS, guard, sleep, until } from "../kit/time.mjs";
import { bun } from "../runtime/binaries.mjs";
import { startChild } from "./children.mjs";
import { newPath } from "./peer/file.mjs";
import { startPeer } from "./peer/start.mjs";
import { openKv, serve } from "./target.mjs";

const LOCKER = new URL("./blocked/locker.mjs", import.meta.url);
const MESSAGES = 8;
const LOCK_MS = 2000;
/** The holder of the messages gets the file so much later than the other consumer. */
const LATE_MS = 50;
/** Handlers run beyond the block, for as long as a lock that was not renewed would show. */
const HANDLE_MS = 3.5 * LOCK_MS;

/** From here on an operation is in the slow log. */
const SLOW_MS_MIN = 10;
/** How long the blocked work waits at least: longer than the slow log needs. */
const SLOW_MS = 5 * SLOW_MS_MIN;
/** The clock of the machine may step between two looks. */
const CLOCK_MS = 5;

const ADMIN_TOKEN = "an-admin-token-of-tests";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Has another process hold the write lock of the file; answers what ends that. */
async function block(t, path) {
  const command = ([, ...argv]) => [bun(), ...argv];
  const locker = startChild(LOCKER, { path }, { command });
  t.after(() => locker.kill());
  assert.equal(await guard(locker.line(), HANG_MS, "the lock is held"), "held", locker.stderr);
  return async () => {
    locker.say("free it");
    assert.equal(await guard(locker.line(), HANG_MS, "the lock is freed"), "freed", locker.stderr);
  };
}

test("a block that outlasts the locks delivers no message twice", async (t) => {
  const path = newPath();
  const holder = await startPeer(t, path);
  const options = { concurrency: MESSAGES, lockDuration: LOCK_MS };
  await holder.do("handle", { queue: "work", options, ms: HANDLE_MS });
  const messages = Array.from({ length: MESSAGES }, (_, n) => n);
  for (const message of messages) await holder.do("enqueue", { queue: "work", message });
  const isBegun = (said) => "began" in said;
  const begun = [];
  const hear = async () => begun.push((await holder.hear(isBegun, "a message begins")).began);
  for (const _ of messages) await hear();

  const kv = await openKv(path, { busyTimeout: HANG_MS });
  const queue = kv.queue("work");
  const free = await block(t, path);
  await sleep(1.25 * LOCK_MS);
  // This consumer finds expired locks as soon as it gets the file, and gets it first.
  const here = [];
  const listening = queue.listen((n) => void here.push(n), options);
  t.after(async () => {
    await kv.close();
    await listening;
  });
  await sleep(0.25 * LOCK_MS);
  holder.child.pause();
  await free();
  await sleep(LATE_MS);
  holder.child.resume();

  const isEmpty = async () => {
    while ((await queue.stats()).total > 0) await sleep(20);
  };
  await guard(isEmpty(), HANG_MS, "every message is handled");
  begun.push(...holder.heard.filter(isBegun).map(({ began }) => began));
  assert.deepEqual({ begun: begun.sort(), here }, { begun: messages, here: [] });
});

test("a vacuum that waits behind a write does not begin once its caller has given up", async (t) => {
  const path = newPath();
  const kv = await openKv(path, { busyTimeout: HANG_MS });
  t.after(() => kv.close());
  await kv.set(["first"], 1);
  const free = await block(t, path);
  const written = kv.set(["second"], 2);
  const controller = new AbortController();
  const called = kv.vacuum({ signal: controller.signal });
  controller.abort("given up");
  await assert.rejects(called, (reason) => reason === "given up");
  await free();
  await written;
  const counted = async () => {
    const { count, errors } = (await kv.metrics()).operations.vacuum;
    return count === 0 ? null : { count, errors };
  };
  assert.deepEqual(await until(counted, "the vacuum is answered"), { count: 1, errors: 1 });
  await kv.vacuum();
});

test("the slow log has what waited, and the counters alone do not tell its keys", async (t) => {
  const path = newPath();
  const kv = await openKv(path, { busyTimeout: HANG_MS });
  t.after(() => kv.close());
  const begunMs = Date.now();
  await kv.set(["fast"], "a value that is secret");
  // Each in a transaction of its own: the writes of one are one entry.
  for (const write of [
    () => kv.set(["users", 42n], "a value that is secret"),
    () => kv.set(["users", "x".repeat(100), 1], 1),
    () => kv.deleteMany({ prefix: ["sessions", true] }),
  ]) {
    const free = await block(t, path);
    const written = write();
    // It is handed over at the end of the turn, which a busy machine may interrupt.
    await turn();
    await sleep(SLOW_MS);
    await free();
    await written;
  }
  const { slowest } = await kv.metrics();
  // On a busy machine what nothing blocks may be slow too, such as a second part of a deletion.
  for (const { durationMs, atMs } of slowest) {
    assert.ok(durationMs >= SLOW_MS_MIN, `${durationMs} ms`);
    assert.ok(atMs >= begunMs - CLOCK_MS, `${atMs} is after ${begunMs}`);
  }
  assert.deepEqual(
    slowest.map(({ durationMs }) => durationMs),
    slowest.map(({ durationMs }) => durationMs).sort((a, b) => b - a),
  );
  const blocked = (operation, key, prefix) => {
    const slow = slowest.find(
      (one) => one.operation === operation && one.key === key && one.prefix === prefix,
    );
    assert.ok(slow, JSON.stringify(slowest));
    assert.ok(slow.durationMs >= SLOW_MS, `${slow.durationMs} ms`);
    assert.ok(slow.atMs >= begunMs + SLOW_MS - CLOCK_MS, `${slow.atMs} is after ${begunMs}`);
    assert.equal(slow.failed, false);
    assert.ok(slow.times >= 1);
  };
  blocked("set", '["users",42n]', undefined);
  blocked("set", undefined, '["users"]');
  blocked("deleteMany", undefined, '["sessions",true]');
  assert.doesNotMatch(JSON.stringify(slowest), /secret|xxx/);
  const text = await kv.metrics({ format: "prometheus" });
  assert.doesNotMatch(text, /users|sessions/);
});

test("a server tells the slow log to readers, and to no token for metrics", async (t) => {
  const folder = `${newPath()}/`;
  const server = await serve({ path: folder, listen: "127.0.0.1:0", adminToken: ADMIN_TOKEN });
  t.after(() => server.close());
  const json = async (route, token, init) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return await (await fetch(server.url + route, { headers, ...init })).json();
  };
  const post = (body) => ({ method: "POST", body: JSON.stringify(body) });
  const admin = "/v1/admin/databases";
  const { token } = await json(admin, ADMIN_TOKEN, post({ name: "shop" }));
  const tokens = `${admin}/shop/tokens`;
  const made = (rights) => json(tokens, ADMIN_TOKEN, post({ rights }));
  const [reader, scraper] = [await made("read"), await made("metrics")];
  const kv = await openKv(`${server.url}/shop`, { accessToken: token });
  t.after(() => kv.close());
  await kv.set(["fast"], 1);
  const [file] = readdirSync(folder, { recursive: true }).filter((name) => /sqlite3$/.test(name));
  let commits = 1;
  const isSlow = ({ key }) => key === '["slow"]';
  // On a busy machine the write may reach the server when the file is free again.
  for (let ms = SLOW_MS; !(await kv.metrics()).slowest.some(isSlow); ms *= 2) {
    const free = await block(t, join(folder, file));
    const written = kv.set(["slow"], 1);
    await sleep(ms);
    await free();
    await written;
    commits++;
  }
  for (const { slowest } of [await kv.metrics(), await json("/shop/api/metrics", reader.token)]) {
    const [{ operation, times }] = slowest.filter(isSlow);
    assert.deepEqual([operation, times], ["set", 1]);
  }
  const told = await json("/shop/api/metrics", scraper.token);
  assert.equal(told.commits, commits);
  assert.equal("slowest" in told, false);
});
