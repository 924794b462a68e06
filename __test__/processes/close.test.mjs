// Duty: what closing waits for, and where: a handle whose write waits for another process blocked the
// event loop for all of its busyTimeout.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { after, test } from "node:test";
import { openKv } from "../../index.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { sleep } from "../kit/time.mjs";

const freshPath = freshPaths("close");
const children = [];
const library = new URL("../../index.mjs", import.meta.url).href;

after(() => {
  for (const child of children) child.kill("SIGKILL");
});

function run(program) {
  const code = `import { openKv } from ${JSON.stringify(library)};\n${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  return child;
}

const ended = (child) => new Promise((resolve) => child.once("exit", resolve));

/** A file whose write lock another process keeps, and a handle on it. */
async function keptFile() {
  const path = freshPath();
  const kv = await openKv(path, { busyTimeout: 8000 });
  const probe = await openKv(path, { busyTimeout: 50 });
  const writer = run(`
    const kv = await openKv(${JSON.stringify(path)}, { limits: "wide" });
    const end = Date.now() + 60_000;
    while (Date.now() < end) {
      const all = kv.atomic();
      for (let i = 0; i < 1000; i++) all.set(["other", i], "x".repeat(500));
      await all.commit();
    }
  `);
  for (let tries = 0; (await probe.get(["other", 0])).value === null; tries++) {
    assert.ok(tries < 2000, "the other process does not write");
    await sleep(10);
  }
  for (let tries = 0; ; tries++) {
    assert.ok(tries < 500, "the other process was never stopped within a transaction");
    writer.kill("SIGSTOP");
    const kept = await probe.set(["probe"], tries).then(
      () => false,
      () => true,
    );
    if (kept) break;
    writer.kill("SIGCONT");
    await sleep(1 + (tries % 7));
  }
  await probe.close();
  return { path, kv, free: () => writer.kill("SIGKILL") };
}

const onPosix = { skip: process.platform === "win32" && "no process can be stopped" };

test(
  "close() completes off the thread while a write waits for another process",
  onPosix,
  async () => {
    const { path, kv, free } = await keptFile();
    const states = { write: "waits", close: "waits" };
    const write = kv.set(["ours"], 1).then(() => (states.write = "done"));
    const closed = kv.close().then(() => (states.close = "done"));
    await assert.rejects(kv.get(["ours"]), { name: "BadResource" });
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 10);
    while (ticks < 10) await sleep(10);
    clearInterval(ticking);
    assert.deepEqual(states, { write: "waits", close: "waits" });
    // Whoever opens the file again sees what was handed over before.
    const again = openKv(path);
    free();
    await Promise.all([write, closed]);
    assert.equal((await (await again).get(["ours"])).value, 1);
    await (await again).close();
  },
);

test(
  "Symbol.dispose waits no longer than its bound, Symbol.asyncDispose to the end",
  onPosix,
  async () => {
    const { path, kv, free } = await keptFile();
    const states = { write: "waits" };
    const write = kv.set(["ours"], 1).then(() => (states.write = "done"));
    kv[Symbol.dispose ?? Symbol.for("nodejs.dispose")]();
    await sleep(0);
    assert.deepEqual(states, { write: "waits" });
    const disposed = kv[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();
    free();
    await Promise.all([write, disposed]);
    assert.equal(existsSync(`${path}-wal`), false, "the file is released");
  },
);

test("a process that exits behind close() completes what was handed over", async () => {
  const path = freshPath();
  const written = `
    const kv = await openKv(${JSON.stringify(path)});
    for (let i = 0; i < 500; i++) kv.set(["k", i], i);
    await kv.close();
  `;
  assert.equal(await ended(run(`${written} process.exit(0);`)), 0);
  assert.equal(existsSync(`${path}-wal`), false, "the file was closed");
  const kv = await openKv(path);
  assert.equal(await kv.count({ prefix: ["k"] }), 500);
  await kv.close();
  assert.equal(await ended(run(written)), 0);
  assert.equal(existsSync(`${path}-wal`), false, "the file was closed");
});
