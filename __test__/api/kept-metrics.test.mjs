// Duty: metrics.persistent: counters survive a close and a kill, those of processes add up, and what may
// not be kept is refused.

import assert from "node:assert/strict";
import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { until } from "../kit/time.mjs";

const run = promisify(execFile);
const child = new URL("./kept-metrics-child.mjs", import.meta.url).pathname;
const persistent = { persistent: true };

const fresh = () => join(newFolder("kept-metrics"), "a.db");

async function sets(kv, count) {
  for (let i = 0; i < count; i++) await kv.set(["a", i], i);
}

async function setsOf(kv) {
  const { operations, commits } = await kv.metrics();
  assert.equal(operations.set.latency?.samples ?? 0, operations.set.count);
  assert.equal(commits, operations.set.count);
  return operations.set.count;
}

test("counters go on after the file was closed, and only with the option", async () => {
  const path = fresh();
  for (const before of [0, 10, 20]) {
    const kv = await openKv(path, { metrics: persistent });
    assert.equal(await setsOf(kv), before);
    await sets(kv, 10);
    assert.equal(await setsOf(kv), before + 10);
    kv.close();
  }
  const plain = await openKv(path);
  assert.equal(await setsOf(plain), 0);
  await sets(plain, 3);
  plain.close();
  const last = await openKv(path, { metrics: persistent });
  assert.equal(await setsOf(last), 30);
  const text = await last.metrics({ format: "prometheus" });
  assert.match(text, /openkv_operations_total\{operation="set"\} 30/);
  last.close();
});

test("flushes while callers write and read lose nothing and count nothing twice", async () => {
  const kv = await openKv(fresh(), { metrics: { ...persistent, flushInterval: 100 } });
  const end = Date.now() + 1500;
  let done = 0;
  while (Date.now() < end) {
    await sets(kv, 20);
    done += 20;
    assert.equal(await setsOf(kv), done);
  }
  kv.close();
});

test("what a killed process had stored stays, and processes add up", async () => {
  const path = fresh();
  const killed = fork(child, [path, "25", "100", "stay"], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await once(killed, "message");
  const stored = async () => {
    const kv = await openKv(path, { metrics: persistent });
    const count = await setsOf(kv);
    kv.close();
    return count === 25;
  };
  await until(stored, "the interval has passed");
  killed.kill("SIGKILL");
  await once(killed, "exit");
  await Promise.all(
    [7, 8].map((count) => run(process.execPath, [child, path, `${count}`, "60000", "close"])),
  );
  const kv = await openKv(path, { metrics: persistent });
  assert.equal(await setsOf(kv), 40);
  kv.close();
});

test("what is no option or cannot keep counters is refused by name", async () => {
  const path = fresh();
  const refused = async (options, words, of = path) => {
    await assert.rejects(openKv(of, options), { name: "TypeError", message: words });
  };
  await refused({ metrics: { persistent: 1 } }, /metrics\.persistent must be a boolean/);
  await refused(
    { metrics: { flushInterval: 99 } },
    /metrics\.flushInterval .* 100 to .* received 99/,
  );
  await refused({ metrics: { flush: 99 } }, /flush/);
  await refused({ metrics: true }, /metrics/);
  await refused({ metrics: persistent }, /'metrics' is not for memory/, ":memory:");
  await refused(
    { metrics: persistent },
    /'metrics' is not for a database on Postgre/,
    "postgres://localhost/a",
  );
  (await openKv(path)).close();
  await refused({ readonly: true, metrics: persistent }, /metrics\.persistent/);
});
