// Duty: what keeps a process alive, and that it ends cleanly whatever is under way.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, test } from "node:test";
import { argumentsFor } from "../kit/program.mjs";
import { freshPath } from "./databases.mjs";

/** A hang guard, and for how long a process that should stay is watched. */
const END_MS_MAX = 60_000;
const STAY_MS = 1000;

const opening = (path) => `
  import { openKv } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};
  const kv = await openKv(${JSON.stringify(path)});
`;

/** Runs a program; how it ended, and what it said. `null` as code: it was still there. */
function run(path, program, waitMs = END_MS_MAX) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, argumentsFor(opening(path) + program), {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    let timer;
    const hear = (text) => {
      said += text;
      if (said.includes("READY") && waitMs < END_MS_MAX) {
        timer ??= setTimeout(() => child.kill("SIGKILL"), waitMs);
      }
    };
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    const guard = setTimeout(() => child.kill("SIGKILL"), END_MS_MAX);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      clearTimeout(guard);
      resolve({ code, signal, said });
    });
  });
}

const ends = {
  "an open handle": ``,
  "a handle that has read and written": `await kv.set(["a"], 1); await kv.get(["a"]);`,
  "an unfinished list": `
    for (let i = 0; i < 100; i++) kv.set(["a", i], i);
    for await (const entry of kv.list({ prefix: ["a"] })) break;`,
  "a watch that nobody reads": `kv.watch([["a"]]);`,
  "a watch that was read, and is not now": `await kv.watch([["a"]]).getReader().read();`,
  "a watch that was cancelled": `
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    const waiting = reader.read();
    await reader.cancel();
    await waiting;`,
  "a listener whose handle was closed": `
    const listening = kv.listenQueue(() => {});
    await kv.enqueue(1);
    setTimeout(() => kv.close(), 20);
    await listening;`,
  "a closed handle": `kv.close();`,
  "many handles": `for (let i = 0; i < 20; i++) await openKv(${JSON.stringify(":memory:")});`,
};
const stays = {
  "a pending listenQueue": `kv.listenQueue(() => {}); console.log("READY");`,
  "a pending watch read": `
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    reader.read();
    console.log("READY");`,
};
const completes = {
  "calls that are awaited": `
    await Promise.all(Array.from({ length: 2000 }, (_, i) => kv.set(["a", i], i)));
    await Promise.all(Array.from({ length: 2000 }, (_, i) => kv.get(["a", i])));
    await kv.atomic().sum(["n"], 1n).commit();
    await kv.enqueue(1);
    await kv.set(["blob"], new Blob(["x"]));
    console.log("DONE");`,
  "calls that nobody awaits": `
    for (let i = 0; i < 2000; i++) kv.set(["b", i], i);
    kv.set(["last"], 1).then(() => console.log("DONE"));`,
  "a write, then close without waiting": `
    const written = kv.set(["a"], 1);
    kv.close();
    await written;
    console.log("DONE");`,
};
const exits = {
  "process.exit with work in flight": `
    for (let i = 0; i < 2000; i++) { kv.set(["a", i], i); kv.get(["a", i]).catch(() => {}); }
    kv.list({ prefix: ["a"] }).next();
    kv.watch([["a"]]).getReader().read();
    kv.listenQueue(() => {});
    kv.enqueue(1);
    setImmediate(() => process.exit(7));`,
  "process.exit in the same tick": `kv.set(["a"], 1); kv.get(["a"]); process.exit(7);`,
  "an uncaught error with work in flight": `
    kv.listenQueue(() => {});
    for (let i = 0; i < 100; i++) kv.set(["a", i], i);
    process.on("uncaughtException", () => process.exit(7));
    throw new Error("expected by the test");`,
};

for (const [place, path] of [
  ["in memory", () => ":memory:"],
  ["on a file", freshPath],
]) {
  describe(`a process, ${place}`, { concurrency: 2 }, () => {
    for (const [name, program] of Object.entries(ends)) {
      test(`ends with ${name}`, async () => {
        const { code, said } = await run(path(), program);
        assert.deepEqual([code, said], [0, ""]);
      });
    }
    for (const [name, program] of Object.entries(stays)) {
      test(`stays for ${name}`, async () => {
        const { signal, said } = await run(path(), program, STAY_MS);
        assert.deepEqual([signal, said], ["SIGKILL", "READY\n"]);
      });
    }
    for (const [name, program] of Object.entries(completes)) {
      test(`stays until they are done: ${name}`, async () => {
        const { code, said } = await run(path(), program);
        assert.deepEqual([code, said], [0, "DONE\n"]);
      });
    }
    for (const [name, program] of Object.entries(exits)) {
      test(`ends at once: ${name}`, async () => {
        const { code, signal, said } = await run(path(), program);
        assert.deepEqual([code, signal, said], [7, null, ""]);
      });
    }
  });
}
