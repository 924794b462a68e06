// `node bench/replica.mjs`: a replica of a server in another process on this machine: the time of the
// first copy, the rate of catching up, reads compared with those of a file, the lag under a steady load,
// and the processor time and memory of an idle replica.
//
// Arguments: --entries N (default 1000000), --seconds S of each measurement (default 3), --rate R commits a
// second for the lag (default 5000), --dir DIRECTORY (default: bench/.data).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKv, serve } from "../index.mjs";
import { DEFAULT_DIRECTORY } from "./machine.mjs";

const { values } = parseArgs({
  options: {
    entries: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "3" },
    rate: { type: "string", default: "5000" },
    dir: { type: "string", default: DEFAULT_DIRECTORY },
    serve: { type: "string" },
    load: { type: "string" },
    idle: { type: "string" },
    copy: { type: "string" },
  },
});
const accessToken = "token-of-the-measurement";
const [entries, ms, rate] = [+values.entries, +values.seconds * 1000, +values.rate];
const BATCH = 1000;
const MEMORY_PROCESSES = 3;

if (values.serve !== undefined) await serveFile(values.serve);
else if (values.load !== undefined) await load(values.load);
else if (values.idle !== undefined) await idle(values.idle, values.copy);
else await measure();

/** The server, in a process of its own. */
async function serveFile(path) {
  const { url } = await serve({ path, listen: "127.0.0.1:0", accessToken });
  console.log(url);
}

/** A steady load on the server's file, in a process of its own: each entry holds its time. */
async function load(path) {
  const kv = await openKv(path, { durability: "normal" });
  const begun = Date.now();
  for (let n = 0; Date.now() - begun < ms; ) {
    const due = ((Date.now() - begun) * rate) / 1000;
    const writes = [];
    for (; n < due; n++) writes.push(kv.set(["lag"], { at: Date.now() }));
    await Promise.all(writes);
    await sleep(1);
  }
  await kv.close();
}

/** A handle that does nothing, in a process of its own: prints its resident memory, in bytes. */
async function idle(url, replica) {
  const kv = await openKv(url, { accessToken, replica });
  await kv.replica?.ready();
  await kv.get(["entry", 0]);
  await sleep(ms);
  globalThis.gc();
  console.log(process.memoryUsage.rss());
  await kv.close();
}

async function child(...args) {
  const script = fileURLToPath(import.meta.url);
  const all = ["--expose-gc", script, ...args, "--seconds", values.seconds, "--rate", values.rate];
  return spawn(process.execPath, all, { stdio: ["ignore", "pipe", "inherit"] });
}

async function measure() {
  const folder = join(resolve(values.dir), "replica");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "primary.sqlite3");
  const primary = await openKv(path, { limits: "wide", durability: "normal", log: true });
  await fill(primary, 0);
  const server = await child("--serve", path);
  const [line] = await once(server.stdout, "data");
  const url = String(line).trim();
  const replica = join(folder, "near.sqlite3");
  const opening = { accessToken, replica, consistency: "eventual", timeout: 60_000 };

  let begun = performance.now();
  let near = await openKv(url, opening);
  await near.replica.ready();
  told(
    "first copy",
    `${seconds(begun).toFixed(1)} s for ${entries} entries (target: 10 s a million)`,
  );
  await near.close();

  await fill(primary, 1);
  const last = await primary.set(["last"], 1);
  begun = performance.now();
  near = await openKv(url, opening);
  await near.replica.reached(last.versionstamp);
  const perSecond = Math.round(entries / seconds(begun));
  told("catching up", `${perSecond} changes a second (target: 100000)`);

  const [file, copy] = [await gets(primary), await gets(near)];
  const ratio = (copy / file).toFixed(2);
  told("gets", `replica ${copy}/s, file ${file}/s, ${ratio} times (target: 0.9)`);

  const lags = await lagsUnder(near, path);
  const at = (part) => lags[Math.min(lags.length - 1, Math.floor(lags.length * part))];
  told(
    `lag at ${rate} commits/s`,
    `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms of ${lags.length} changes (target: 5 and 20)`,
  );

  await sleep(500);
  const before = process.cpuUsage();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  told(
    "idle",
    `${((user + system) / 1000 / (ms / 1000)).toFixed(2)} ms of processor time a second`,
  );

  await near.close();

  const plain = await memoryOf("--idle", url);
  const followed = await memoryOf("--idle", url, "--copy", replica);
  const more = ((followed - plain) / 1e6).toFixed(1);
  told("memory of an idle replica", `${more} MB more than without it (target: 10)`);
  await primary.close();
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}

/** The resident memory of a process with these arguments, in bytes: the median of MEMORY_PROCESSES. */
async function memoryOf(...args) {
  const found = [];
  for (let n = 0; n < MEMORY_PROCESSES; n++) {
    const running = await child(...args);
    const [line] = await once(running.stdout, "data");
    found.push(Number(line));
    await once(running, "exit");
  }
  return found.sort((a, b) => a - b)[MEMORY_PROCESSES >> 1];
}

async function fill(kv, value) {
  for (let n = 0; n < entries; n += BATCH) {
    const atomic = kv.atomic();
    for (let at = n; at < Math.min(n + BATCH, entries); at++) {
      atomic.set(["entry", at], { n: at, value });
    }
    await atomic.commit();
  }
}

async function gets(kv) {
  const end = performance.now() + ms;
  let count = 0;
  while (performance.now() < end) {
    for (let n = 0; n < 200; n++) await kv.get(["entry", (count * 7919) % entries]);
    count += 200;
  }
  return Math.round((count / ms) * 1000);
}

/** How long after their commits changes are seen by a feed of the replica, sorted, in ms. */
async function lagsUnder(near, path) {
  const feed = near.watch({ start: ["lag"], end: ["lah"] }).getReader();
  const lags = [];
  const reading = (async () => {
    for (;;) {
      const { done, value } = await feed.read();
      if (done) return;
      const now = Date.now();
      for (const change of value.changes) lags.push(now - change.value.at);
    }
  })();
  const loading = await child("--load", path);
  await once(loading, "close");
  await sleep(200);
  await feed.cancel();
  await reading;
  return lags.sort((a, b) => a - b);
}

function seconds(begun) {
  return (performance.now() - begun) / 1000;
}

function told(what, text) {
  console.log(`${what}: ${text}`);
}
