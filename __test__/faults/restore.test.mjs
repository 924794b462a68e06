// Duty: a backup replaces a database: by restore(), which removes everything of the earlier one; or
// copied over the file of a killed process, whose log beside it makes opening fail. SQLite applies
// any log that it finds: the result was once CORRUPT, or had values of the log.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { KvError, openKv, restore } from "../../index.mjs";
import { newFolder } from "../kit/folder.mjs";
import { endsWithTests } from "../kit/living.mjs";

const folder = newFolder("restore");
const path = (name) => join(folder, name);
const index = JSON.stringify(new URL("../../index.mjs", import.meta.url).href);

/** Runs a program on a file in a process that is then killed; answers when it is gone. */
function killedAfter(file, program) {
  const source = `import { openKv } from ${index};
    const kv = await openKv(${JSON.stringify(file)});
    ${program}
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => setTimeout(() => {}, 1e6));`;
  const args = ["--input-type=module", "-e", source];
  const { signal, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(signal, "SIGKILL", stderr);
}

const write = (from, to, value) =>
  `for (let n = ${from}; n < ${to}; n++) await kv.set(["k", n], ${JSON.stringify(value)});`;

async function valuesOf(file) {
  const kv = await openKv(file);
  const values = [];
  for await (const { value } of kv.list({ prefix: ["k"] })) values.push(value);
  assert.deepEqual((await kv.check()).findings, []);
  await kv.close();
  return values;
}

/** A database with 20 entries, a backup of it, and a log of 30 more, of a process that was killed. */
async function crashed(name) {
  const [file, copy] = [path(`${name}.db`), path(`${name}-backup.db`)];
  const kv = await openKv(file);
  for (let n = 0; n < 20; n++) await kv.set(["k", n], "before");
  await kv.backup(copy);
  await kv.checkpoint();
  await kv.close();
  killedAfter(file, write(10, 40, "after"));
  assert.ok(statSync(`${file}-wal`).size > 10_000);
  return { file, copy };
}

const isStrange = (file) => (error) => {
  assert.ok(error instanceof KvError, error.stack);
  assert.equal(error.code, "CORRUPT");
  for (const words of [file, `${file}-wal`, "openkv restore", "Nothing was changed"]) {
    assert.ok(error.message.includes(words), error.message);
  }
  return true;
};

test("a log of the same file is applied", async () => {
  const { file } = await crashed("own");
  const values = await valuesOf(file);
  assert.equal(values.length, 40);
  assert.equal(values[15], "after");
});

test("a backup beside the log of an earlier file is rejected, and neither is changed", async () => {
  const { file, copy } = await crashed("copied");
  copyFileSync(copy, file);
  const bytes = () => [file, `${file}-wal`].map((each) => readFileSync(each).toString("base64"));
  const before = bytes();
  for (const options of [{}, {}, { readonly: true }]) {
    await assert.rejects(openKv(file, options), isStrange(file));
    assert.deepEqual(bytes(), before);
  }
  // The remedy in the message.
  for (const end of ["-wal", "-shm"]) rmSync(file + end);
  assert.deepEqual(await valuesOf(file), Array(20).fill("before"));
});

test("an older backup beside the log of another backup is rejected", async () => {
  const { copy } = await crashed("older");
  const file = path("older-again.db");
  copyFileSync(copy, file);
  killedAfter(file, write(0, 30, "again"));
  copyFileSync(path("older-backup.db"), path("kept.db"));
  await restore(copy, path("second.db"));
  copyFileSync(path("second.db"), file);
  await assert.rejects(openKv(file), isStrange(file));
});

test("restore replaces the file and removes its log", async () => {
  const { file, copy } = await crashed("restored");
  const taken = { name: "TypeError", message: /exists already.*force: true/ };
  await assert.rejects(restore(copy, file), taken);
  const told = await restore(copy, file, { force: true, onProgress() {} });
  assert.equal(told.entries, 20);
  assert.match(told.sha256, /^[0-9a-f]{64}$/);
  assert.ok(!existsSync(`${file}-wal`) && !existsSync(`${copy}-wal`) && !existsSync(`${copy}-shm`));
  assert.deepEqual(await valuesOf(file), Array(20).fill("before"));
  // Also where there was nothing, and over what is no database.
  await restore(copy, path("new.db"));
  assert.deepEqual(await valuesOf(path("new.db")), Array(20).fill("before"));
  writeFileSync(path("rubbish.db"), "rubbish");
  await restore(copy, path("rubbish.db"), { force: true });
  assert.equal((await valuesOf(path("rubbish.db"))).length, 20);
  const left = readdirSync(folder).filter((name) => name.includes("unfinished"));
  assert.deepEqual(left, []);
});

test("a log without a file counts as an existing target", async () => {
  const { file, copy } = await crashed("log-alone");
  rmSync(file);
  await assert.rejects(restore(copy, file), /-wal exists already/);
  await restore(copy, file, { force: true });
  assert.equal((await valuesOf(file)).length, 20);
});

test("an open database is not replaced", async () => {
  const open = { code: "UNAVAILABLE", message: /is open/ };
  const { file, copy } = await crashed("open");
  for (const options of [{}, { readonly: true }]) {
    const kv = await openKv(file, options);
    await assert.rejects(restore(copy, file, { force: true }), open);
    assert.equal((await kv.get(["k", 15])).value, "after");
    await kv.close();
  }
  const source = `import { openKv } from ${index};
    const kv = await openKv(${JSON.stringify(file)});
    console.log("open");
    process.stdin.on("data", () => kv.close()).on("end", () => {});`;
  const child = endsWithTests(spawn(process.execPath, ["--input-type=module", "-e", source]));
  await once(child.stdout, "data");
  await assert.rejects(restore(copy, file, { force: true }), open);
  child.stdin.end("close");
  await once(child, "exit");
  await restore(copy, file, { force: true });
  assert.equal((await valuesOf(file)).length, 20);
});

test("an invalid backup is not restored, and the target is unchanged", async () => {
  const { file, copy } = await crashed("unsound");
  const before = readFileSync(file).toString("base64");
  const bytes = readFileSync(copy);
  bytes.fill(0x55, 4096 * 3, 4096 * 5);
  writeFileSync(path("damaged.db"), bytes);
  writeFileSync(path("text.db"), "no database at all".repeat(1000));
  for (const name of ["damaged.db", "text.db"]) {
    await assert.rejects(restore(path(name), file, { force: true }), { code: "CORRUPT" });
  }
  await assert.rejects(restore(path("missing.db"), file, { force: true }), { code: "UNAVAILABLE" });
  await assert.rejects(restore(file, file, { force: true }), /to itself/);
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(restore(copy, file, { force: true, signal }), /enough/);
  assert.equal(readFileSync(file).toString("base64"), before);
  assert.ok(existsSync(`${file}-wal`));
  assert.equal((await valuesOf(file)).length, 40);
});

test("wrong arguments are TypeErrors", async () => {
  for (const [args, message] of [
    [[], /backup must be a file path: received undefined/],
    [["a", 5], /path must be a file path: received 5/],
    [["a", "b", 5], /options must be an object/],
    [["a", "b", { force: 1 }], /force must be a boolean/],
    [["a", "b", { forse: true }], /unknown option 'forse'/],
    [["a", "b", { signal: {} }], /signal must be an AbortSignal/],
    [["a", "b", { onProgress: 1 }], /onProgress must be a function/],
  ]) {
    await assert.rejects(restore(...args), { name: "TypeError", message });
  }
});
