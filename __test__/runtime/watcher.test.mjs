// Duty: what watching costs a process: one file watcher and one pair of threads for all files,
// however many they are and however often watches come and go.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { newFolder } from "../kit/folder.mjs";

/** A hang guard for one program. */
const PROGRAM_MS_MAX = 120_000;
/** So many looks, of two seconds each, until the threads sleep. */
const LOOKS_MAX = 20;

const skip = existsSync("/proc/self/task")
  ? false
  : "threads and descriptors are counted through /proc, which only Linux has";

const index = new URL("../../index.mjs", import.meta.url).href;

/** Runs a program in a process of its own; answers the `result` that it leaves. */
async function run(program) {
  const folder = newFolder("watcher");
  const source = `
    import { readdirSync, readFileSync, readlinkSync } from "node:fs";
    import { openKv } from ${JSON.stringify(index)};
    const folder = ${JSON.stringify(folder)};
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    // Descriptors and threads may be gone when they are read.
    const read = (how, path) => { try { return String(how(path)); } catch { return ""; } };
    function count() {
      const links = readdirSync("/proc/self/fd").map((fd) => read(readlinkSync, "/proc/self/fd/" + fd));
      return {
        watchers: links.filter((to) => to.includes("inotify")).length,
        files: links.length,
        threads: readdirSync("/proc/self/task").length,
      };
    }
    async function watched(path) {
      const kv = await openKv(path);
      const reader = kv.watch([["a"]]).getReader();
      await reader.read();
      reader.read().catch(() => {});
      return kv;
    }
    ${program}
    console.log(JSON.stringify(result));
    process.exit(0);`;
  try {
    const options = { timeout: PROGRAM_MS_MAX };
    const eval_ = ["--input-type=module", "--eval", source];
    const { stdout } = await promisify(execFile)(process.execPath, eval_, options);
    return JSON.parse(stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Each watched file once had a watcher, two threads and three descriptors of its own. A user has 128
// watchers on most systems: the files beyond were polled, fifty times a second each.
test("files that are watched share one watcher and its threads, and sleep", { skip }, async () => {
  const files = 60;
  const { base, one, all, woken } = await run(`
    const base = count();
    const kvs = [await watched(folder + "/first")];
    // The watcher and its second thread start in the background.
    let one = base;
    for (let before; one.watchers === base.watchers || before.threads !== one.threads; ) {
      before = one;
      await sleep(100);
      one = count();
    }
    for (let i = 0; i < ${files}; i++) kvs.push(await watched(folder + "/" + i));
    const switches = () => readdirSync("/proc/self/task").map((task) => {
      const status = read(readFileSync, "/proc/self/task/" + task + "/status");
      if (!/^Name:\\s*(openkv|notify)/.test(status)) return 0;
      return Number(/^voluntary_ctxt_switches:\\s*(\\d+)/m.exec(status)[1]);
    }).reduce((sum, n) => sum + n);
    // What has begun with them ends in the background.
    let woken = Infinity;
    for (let looks = 0; looks < ${LOOKS_MAX} && woken >= ${files}; looks++) {
      const before = switches();
      await sleep(2000);
      woken = switches() - before;
    }
    const result = { base, one, all: count(), woken };`);
  assert.equal(one.watchers - base.watchers, 1);
  assert.equal(all.watchers, one.watchers);
  assert.ok(all.threads - one.threads <= 2 * files, JSON.stringify({ one, all }));
  assert.ok(all.files - one.files <= 9 * files, JSON.stringify({ one, all }));
  assert.ok(woken < files, `${woken} wakeups in two seconds`);
});

test("watches that come and go begin and end no watchers", { skip }, async () => {
  const { base, most } = await run(`
    const kv = await watched(folder + "/kv");
    await kv.close();
    const other = await openKv(folder + "/other");
    const base = count();
    const most = { watchers: 0, threads: 0, files: 0 };
    for (let i = 0; i < 400; i++) {
      const reader = other.watch([["a", i]]).getReader();
      await reader.read();
      await reader.cancel();
      const now = count();
      for (const of of Object.keys(most)) most[of] = Math.max(most[of], now[of]);
    }
    const result = { base, most };`);
  assert.ok(most.watchers <= 1, JSON.stringify(most));
  // The runtime's own pool starts its four threads when it likes.
  assert.ok(most.threads <= base.threads + 4, JSON.stringify({ base, most }));
  // Connections of the writer and of two readers are opened anew after a pause, each with up to three files.
  assert.ok(most.files <= base.files + 10, JSON.stringify({ base, most }));
});

test("a file that is opened again under its old name is announced again", { skip }, async () => {
  const { looks } = await run(`
    import { spawn } from "node:child_process";
    let looks = 0;
    for (let i = 0; i < 3; i++) {
      const kv = await openKv(folder + "/kv");
      const reader = kv.watch([["n"]]).getReader();
      await reader.read();
      const script = 'import(' + JSON.stringify(${JSON.stringify(index)}) + ').then(async ({ openKv }) => {' +
        'const kv = await openKv(process.argv[1]); await kv.set(["n"], Number(process.argv[2])); kv.close(); })';
      spawn(process.execPath, ["--eval", script, folder + "/kv", String(i)], { stdio: "inherit" });
      const { value } = await reader.read();
      if (value[0].value === i) looks++;
      await kv.close();
    }
    const result = { looks };`);
  assert.equal(looks, 3);
});
