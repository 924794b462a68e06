// Duty: the log stays bounded whoever reads: readers that come and go all the time, and one whose
// JavaScript is blocked behind a read, kept it from being begun anew, and it grew with each commit.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { openKv } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";

/** WAL_BYTES_MAX of crates/core/src/model/limits/file.rs. */
const BOUND_BYTES = 64 * 1024 * 1024;
/** What is written: well beyond what the log may have on a busy machine. */
const WRITTEN_BYTES = 5 * BOUND_BYTES;
/** A commit's values. */
const COMMIT_ENTRIES = 100;
const VALUE_BYTES = 40_000;

const folder = newFolder("log");
const library = new URL("../../index.mjs", import.meta.url).href;
const children = [];

after(() => {
  for (const child of children) child.kill("SIGKILL");
});

/** A process that runs this over an open handle; resolves when it has said that it reads. */
function reader(path, program) {
  const code = `
    import { openKv } from ${JSON.stringify(library)};
    const kv = await openKv(${JSON.stringify(path)});
    const end = Date.now() + 100_000;
    ${program}
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  return new Promise((resolve) => child.stdout.once("data", resolve));
}

const LOOPING = `
  process.stdout.write("reads");
  while (Date.now() < end) await kv.get(["k", 1]);
`;
const BLOCKED = `
  await kv.get(["k", 1]);
  process.stdout.write("reads");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100_000);
`;

/** Overwrites the same entries; answers the longest that the log was. */
async function longestLog(path, kv) {
  let longest = 0;
  const value = "x".repeat(VALUE_BYTES);
  for (let written = 0; written < WRITTEN_BYTES; written += COMMIT_ENTRIES * VALUE_BYTES) {
    await Promise.all(Array.from({ length: COMMIT_ENTRIES }, (_, i) => kv.set(["k", i], value)));
    longest = Math.max(longest, statSync(`${path}-wal`).size);
  }
  return longest;
}

for (const [name, programs] of [
  ["three processes that read in a loop", [LOOPING, LOOPING, LOOPING]],
  ["a process that is blocked behind a read", [BLOCKED]],
]) {
  test(`the log stays bounded beside ${name}`, async () => {
    const path = join(folder, `${programs.length}.sqlite3`);
    const kv = await openKv(path, { durability: "normal" });
    await kv.set(["k", 1], 1);
    await Promise.all(programs.map((program) => reader(path, program)));
    const longest = await longestLog(path, kv);
    for (const child of children.splice(0)) child.kill("SIGKILL");
    assert.ok(longest < 3 * BOUND_BYTES, `the log had ${longest} bytes`);
    await kv.close();
  });
}
