// Duty: nothing is left behind: threads, open files and memory come back after close, and after a
// handle that was never closed has been collected.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

/** A hang guard for one program. */
const PROGRAM_MS_MAX = 120_000;

const skip = existsSync("/proc/self/task")
  ? false
  : "threads and open files are counted through /proc, which only Linux has";

const index = new URL("../../index.mjs", import.meta.url).href;

/** Runs a program under --expose-gc; answers the numbers it prints as JSON. */
async function measure(program) {
  const folder = mkdtempSync(join(tmpdir(), "openkv-leaks-"));
  const source = `
    import { readdirSync } from "node:fs";
    import { openKv } from ${JSON.stringify(index)};
    const folder = ${JSON.stringify(folder)};
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const count = () => ({
      threads: readdirSync("/proc/self/task").length,
      files: readdirSync("/proc/self/fd").length,
      rss: process.memoryUsage.rss(),
    });
    /** Waits until no more than these are there: what ends in the background takes its time. */
    async function settled(base) {
      for (let i = 0; i < 300; i++) {
        gc();
        await sleep(20);
        const now = count();
        if (now.threads <= base.threads && now.files <= base.files) break;
      }
      return count();
    }
    ${program}
    console.log(JSON.stringify(result, (_, v) => typeof v === "bigint" ? Number(v) : v));
    process.exit(0);`;
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--expose-gc", "--input-type=module", "--eval", source],
      { timeout: PROGRAM_MS_MAX },
    );
    return JSON.parse(stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("400 handles opened and closed leave no threads and no open files", { skip }, async () => {
  const { base, end } = await measure(`
    async function use(path) {
      const kv = await openKv(path);
      await kv.set(["a"], 1);
      await kv.get(["a"]);
      for await (const entry of kv.list({ prefix: [] })) entry.key;
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      const listening = kv.listenQueue(() => {});
      await kv.close();
      await listening;
    }
    await use(folder + "/same");
    await use(":memory:");
    await sleep(100);
    const base = count();
    for (let i = 0; i < 100; i++) {
      const paths = [folder + "/same", folder + "/same", folder + "/f" + i, ":memory:"];
      await Promise.all(paths.map(use));
    }
    const result = { base, end: await settled(base) };`);
  assert.ok(end.threads <= base.threads, `${base.threads} threads became ${end.threads}`);
  assert.ok(end.files <= base.files, `${base.files} open files became ${end.files}`);
});

test("handles dropped without close are collected, their files closed", { skip }, async () => {
  const { base, end, collected } = await measure(`
    // The first read starts the one thread that ends held snapshots, for all handles to come.
    const first = await openKv(folder + "/first");
    await first.get(["a"]);
    await first.close();
    await sleep(100);
    const base = count();
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    async function drop(path) {
      const kv = await openKv(path);
      registry.register(kv);
      await kv.set(["a"], 1);
      await kv.get(["a"]);
      await kv.list({ prefix: [] }).next();
    }
    for (let i = 0; i < 60; i++) await drop(i % 2 ? ":memory:" : folder + "/f" + i);
    const result = { base, end: await settled(base), collected };`);
  assert.equal(collected, 60);
  assert.ok(end.threads <= base.threads, `${base.threads} threads became ${end.threads}`);
  assert.ok(end.files <= base.files, `${base.files} open files became ${end.files}`);
});

test("a hundred thousand calls on one handle do not grow the process", { skip }, async () => {
  const { before, after } = await measure(`
    const kv = await openKv(folder + "/kv");
    async function work(rounds) {
      for (let i = 0; i < rounds; i++) {
        await Promise.all(Array.from({ length: 250 }, (_, j) => kv.set(["k", j], { i, j })));
        await Promise.all(Array.from({ length: 250 }, (_, j) => kv.get(["k", j])));
        const reader = kv.watch([["k", 1]]).getReader();
        await reader.read();
        await reader.cancel();
        for await (const entry of kv.list({ prefix: ["k"] }, { limit: 50 })) entry.value;
      }
    }
    await work(60);
    gc();
    const before = count();
    await work(200);
    const result = { before, after: await settled(before) };`);
  const grown = (after.rss - before.rss) / 2 ** 20;
  assert.ok(grown < 80, `grew by ${grown.toFixed(0)} MiB`);
  // The runtime's own pool starts its four threads when it likes.
  const most = before.threads + 4;
  assert.ok(after.threads <= most, `${before.threads} threads became ${after.threads}`);
});

// Each once stayed until its handle was closed, and every commit looked at all of them.
test("watches and feeds that are dropped on an open handle end, at home and elsewhere", { skip }, async () => {
  const { before, after, kept } = await measure(`
    const { serve } = await import(${JSON.stringify(index)});
    const path = folder + "/kv";
    const home = await openKv(path);
    const accessToken = "token-of-a-test-of-leaks";
    const server = await serve({ path, accessToken, listen: "127.0.0.1:0" });
    const away = await openKv(server.url, { accessToken });
    async function open(kv, i) {
      const streams = [kv.watch([["a", i]]), kv.watch({ prefix: ["a", i] })];
      // Some were read from, some were not.
      if (i % 2) await streams[0].getReader().read();
    }
    for (let i = 0; i < 200; i++) await open(home, i);
    for (let i = 0; i < 20; i++) await open(away, i);
    const { watches: held, feeds: fed } = await home.metrics();
    const idle = home.watch([["idle"]]).getReader();
    await idle.read();
    const heard = [home, away].flatMap((kv) => {
      // Only the promises are kept.
      const watch = kv.watch([["b"]]).getReader();
      const later = watch.read().then(() => watch.read());
      return [later, kv.watch({ prefix: ["b"] }).getReader().read()];
    });
    await sleep(200);
    let after;
    for (let i = 0; i < 200; i++) {
      gc();
      await sleep(20);
      after = await home.metrics();
      if (after.watches === 3 && after.feeds === 2) break;
    }
    await home.atomic().set(["b"], 1).set(["b", 0], 1).commit();
    await home.set(["idle"], 2);
    const values = await Promise.all(heard);
    const result = {
      before: { watches: held, feeds: fed },
      after: { watches: after.watches, feeds: after.feeds },
      kept: [...values.map(({ value }) => (value.changes ?? value)[0].value),
        (await idle.read()).value[0].value],
    };
    away.close();
    await server.close();
    home.close();`);
  assert.ok(before.watches >= 200 && before.feeds >= 200, JSON.stringify(before));
  assert.deepEqual(after, { watches: 3, feeds: 2 });
  assert.deepEqual(kept, [1, 1, 1, 1, 2]);
});

test("abandoned watches, lists and operations are collected", { skip }, async () => {
  const { collected } = await measure(`
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    async function leave() {
      const kv = await openKv(":memory:");
      const things = [kv.watch([["a"]]), kv.list({ prefix: [] }), kv.atomic().set(["a"], 1)];
      await things[1].next();
      for (const thing of [kv, ...things]) registry.register(thing);
      await kv.close();
    }
    for (let i = 0; i < 25; i++) await leave();
    for (let i = 0; i < 100 && collected < 100; i++) { gc(); await sleep(20); }
    const result = { collected };`);
  assert.equal(collected, 100);
});
