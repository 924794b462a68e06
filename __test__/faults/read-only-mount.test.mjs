// A file on a read-only file system, or of another user in a folder that may not be written: images of
// containers, snapshots, backups. `readonly: true` was DENIED there, since SQLite makes an index of the log
// beside every file that it reads.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { openKv } from "../../index.mjs";
import { content } from "./child/content.mjs";
import { assertRefused, assertWhole, newDirectory, startExaminer } from "./child/start.mjs";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/openkv.js", import.meta.url));
const NOBODY = 65534;
const size = content().length;

const root = process.getuid?.() === 0;
const mounts = root && spawnSync("unshare", ["--mount", "true"], { stdio: "ignore" }).status === 0;
const skipMounts = !mounts && "only the superuser of Linux mounts file systems";
const skipUsers = !root && "only the superuser can start a process of another user";

/** A folder whose file system is made read-only by `seal`. */
function mounted(t) {
  const undo = [];
  const folder = newDirectory(t, undo);
  const mount = (...words) => execFileSync("mount", words, { stdio: "pipe" });
  mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", folder);
  undo.push(() => execFileSync("umount", ["-l", folder], { stdio: "pipe" }));
  return { folder, seal: () => mount("-o", "remount,ro", folder) };
}

async function create(t, path) {
  const examiner = startExaminer(t);
  await examiner.create(path);
  await examiner.end();
}

/** A file with its log, as a process leaves it that is killed. */
async function createWithLog(t, path) {
  const examiner = startExaminer(t);
  await examiner.stayOpen(path);
  examiner.child.kill();
  await examiner.child.ended;
}

function command(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...words], {
    encoding: "utf8",
    timeout: 60_000,
  });
  return { status, stdout, stderr };
}

test("a file on a read-only file system", { skip: skipMounts }, async (t) => {
  const { folder, seal } = mounted(t);
  const path = join(folder, "a b?#%.sqlite3");
  await create(t, path);
  const made = await openKv(path);
  await made.createIndex({ prefix: ["text"], fields: ["body"] });
  await made.set(["text", 1], { body: "found here" });
  await made.close();
  seal();

  const examiner = startExaminer(t);
  assertRefused(await examiner.examine(path), "DENIED", /readonly: true/);
  assertWhole(await examiner.read(path, { readonly: true }), size);
  await examiner.end();

  const kv = await openKv(path, { readonly: true });
  t.after(() => kv.close());
  assert.equal(await kv.count({ prefix: ["text"] }), 1);
  assert.equal((await kv.search(["text"], "found")).entries.length, 1);
  await assert.rejects(kv.set(["new"], 1), { code: "DENIED" });
  assert.equal((await kv.check()).ok, true);

  const listed = command("--db", path, "list", "text");
  assert.equal(listed.status, 0, listed.stderr);
  assert.match(listed.stdout, /found here/);
  assert.match(command("--db", path, "count", "text").stdout, /^1\n/);
  assert.match(command("--db", path, "export", "-").stdout, /found here/);
  const refused = command("--db", path, "set", "text", "2", "1");
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr, /may not make files in the folder|read-only|no permission/);
});

test("a file with a log on a read-only file system", { skip: skipMounts }, async (t) => {
  const { folder, seal } = mounted(t);
  const [whole, bare] = [join(folder, "whole"), join(folder, "bare")];
  await createWithLog(t, whole);
  for (const end of ["", "-wal"]) copyFileSync(whole + end, bare + end);
  seal();

  const examiner = startExaminer(t);
  // With its index beside it, the log is read through memory of the process.
  assertWhole(await examiner.read(whole, { readonly: true }), size);
  assertRefused(
    await examiner.read(bare, { readonly: true }),
    "DENIED",
    /bare-wal .*copy the file/s,
  );
  await examiner.end();
});

test("a copy of another user", { skip: skipUsers }, async (t) => {
  const undo = [];
  const parent = newDirectory(t, undo);
  const path = join(parent, "kv.sqlite3");
  await create(t, path);
  chmodSync(path, 0o444);
  chmodSync(parent, 0o555);
  undo.push(() => chmodSync(parent, 0o755));
  const examiner = startExaminer(t, { uid: NOBODY });
  assertWhole(await examiner.read(path, { readonly: true }), size);
  await examiner.end();
});

test("a file that changes although nobody should", { skip: skipUsers }, async (t) => {
  const undo = [];
  const parent = newDirectory(t, undo);
  const path = join(parent, "kv.sqlite3");
  await create(t, path);
  chmodSync(path, 0o644);
  chmodSync(parent, 0o755);
  const source = `
    process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY});
    const { openKv } = await import(${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)});
    const kv = await openKv(${JSON.stringify(path)}, { readonly: true });
    console.log((await kv.get(["k", 0n])).versionstamp !== null);
    await new Promise((resolve) => process.stdin.once("data", resolve));
    console.log(await kv.get(["k", 0n]).then(() => "read", (error) => error.code));
    await kv.close();
    process.exit();
  `;
  const reader = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => reader.kill());
  const lines = reader.stdout.setEncoding("utf8")[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, "true\n");
  const kv = await openKv(path);
  await kv.set(["k", 0n], "another value");
  await kv.close();
  reader.stdin.write("go\n");
  assert.equal((await lines.next()).value, "UNAVAILABLE\n");
});
