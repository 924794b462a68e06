// Duty: several processes on the queues of one file: they are two that work at the same time, or one after the other,
// each killed at some moment. No job is lost, none ends twice, and what a process was answered is in the file.

import { Queue, Worker } from "bullmq";
import { openKv } from "openkv";
import { openKvBackend } from "openkv/bullmq";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { end, newPath } from "./kit.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const connection = {};
/** Below node_modules, where a program finds the libraries. */
const program = join(here, "node_modules", `.bullmq-${process.pid}.mjs`);
/** What the program imports, beside it: Deno loads nothing from elsewhere for a file below node_modules. */
const lines = join(here, "node_modules", `.bullmq-${process.pid}-tell.mjs`);
/** More than a batch takes, so that one is decided while another is committed. */
const CONCURRENCY = 30;
const JOBS = 300;
const KILLS = 5;
/** The end of a lock is what the test waits for. */
const LOCK_MS = 1000;

// Adds jobs, handles them, and tells each step that it was answered. It ends when none is left, or is killed.
copyFileSync(join(here, "../kit/tell.mjs"), lines);
writeFileSync(
  program,
  `
  import process from "node:process";
  import { Queue, Worker } from "bullmq";
  import { openKvBackend } from "openkv/bullmq";
  import { tell as say } from "./${basename(lines)}";
  const [path, prefix, jobs, all, lockDuration] = process.argv.slice(2);
  const tell = (what, id) => say(what + " " + id);
  const connection = {};
  const backend = openKvBackend({ path, open: { durability: "normal" } });
  const queue = new Queue("mail", { connection }, backend);
  const handle = async ({ id }) => tell("handled", id);
  const options = { connection, concurrency: ${CONCURRENCY}, lockDuration: Number(lockDuration) };
  const worker = new Worker("mail", handle, options, backend);
  worker.on("completed", ({ id }) => tell("completed", id));
  let n = 0;
  const add = async () => {
    while (n < Number(jobs)) {
      const { id } = await queue.add("a", {}, { jobId: prefix + "-" + n++ });
      tell("added", id);
    }
  };
  await Promise.all(Array.from({ length: ${CONCURRENCY} }, add));
  while ((await queue.getCompletedCount()) < Number(all)) await new Promise((resolve) => worker.once("completed", resolve) && setTimeout(resolve, 50));
  await worker.close();
  await queue.close();
  `,
);
afterAll(async () => {
  rmSync(program);
  rmSync(lines);
  await end();
});

/** Runs the program; `heard` gets each line that it prints. */
async function run(args, heard) {
  const before = globalThis.Deno ? ["run", "-A", "--quiet", "--no-lock"] : [];
  const child = spawn(process.execPath, [...before, program, ...args.map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  createInterface(child.stdout).on("line", (line) => heard(line.split(" "), child));
  return await once(child, "close");
}

describe("several processes", () => {
  it("each job of two producers is handled once by the workers of both", async () => {
    const path = newPath();
    const told = { added: [], handled: [], completed: [] };
    const ends = await Promise.all(
      ["a", "b"].map((name) =>
        run([path, name, JOBS, 2 * JOBS, 60_000], ([what, id]) => told[what].push(id)),
      ),
    );
    expect(ends).toEqual([
      [0, null],
      [0, null],
    ]);
    for (const ids of Object.values(told)) {
      expect(ids.length).toBe(2 * JOBS);
      expect(new Set(ids).size).toBe(2 * JOBS);
    }
  });

  it("after kills no answered job is missing, and each has ended once", async () => {
    const path = newPath();
    const told = { added: new Set(), handled: new Map(), completed: new Set() };
    for (let kill = 0; kill < KILLS; kill++) {
      // Of a process that is killed later, later steps.
      let left = 30 + 100 * kill;
      const ended = await run([path, kill, 1_000_000, Infinity, LOCK_MS], ([what, id], child) => {
        if (what === "handled") told.handled.set(id, (told.handled.get(id) ?? 0) + 1);
        else told[what].add(id);
        if (--left === 0) child.kill("SIGKILL");
      });
      expect(ended).toEqual([null, "SIGKILL"]);
    }
    const kv = await openKv(path);
    const backend = openKvBackend(kv);
    const queue = new Queue("mail", { connection }, backend);
    const counts = await queue.getJobCounts();
    const states = ["waiting", "active", "completed", "failed", "delayed"];
    const ids = {};
    for (const state of states) {
      ids[state] = (await queue.getJobs([state], 0, -1)).map(({ id }) => id);
      expect(ids[state].length).toBe(counts[state]);
    }
    const all = new Set(Object.values(ids).flat());
    expect(all.size).toBe(Object.values(ids).flat().length);
    expect([...told.added].filter((id) => !all.has(id))).toEqual([]);
    expect([...told.completed].filter((id) => !ids.completed.includes(id))).toEqual([]);
    expect(ids.completed.filter((id) => !told.handled.has(id))).toEqual([]);

    const handle = async ({ id }) => told.handled.set(id, (told.handled.get(id) ?? 0) + 1);
    const worker = new Worker(
      "mail",
      handle,
      {
        connection,
        concurrency: CONCURRENCY,
        lockDuration: LOCK_MS,
        stalledInterval: LOCK_MS / 2,
        maxStalledCount: KILLS,
      },
      backend,
    );
    await expect.poll(() => queue.getCompletedCount()).toBe(all.size);
    await worker.close();
    const prefix = ["bullmq", "bull:mail", "event"];
    const ended = new Map();
    let active = 0;
    for (const { value } of await kv.list({ prefix }).toArray()) {
      for (const [, { event, jobId }] of JSON.parse(value)) {
        if (event === "completed") ended.set(jobId, (ended.get(jobId) ?? 0) + 1);
        if (event === "active") active += 1;
      }
    }
    expect(ended.size).toBe(all.size);
    expect([...ended.values()].filter((times) => times !== 1)).toEqual([]);
    expect([...told.handled.values()].reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(active);
    await queue.close();
    await kv.close();
  });
});
