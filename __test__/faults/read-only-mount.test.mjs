// A file on a read-only file system, or of another user in a folder that may not be written: images of
// containers, snapshots, backups. `readonly: true` was DENIED there, since SQLite makes an index of the log
// beside every file that it reads.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { openKv } from "../../index.mjs";
import { bun, deno } from "../runtime/binaries.mjs";
import { content } from "./child/content.mjs";
import { assertRefused, assertWhole, newDirectory, startExaminer } from "./child/start.mjs";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/openkv.js", import.meta.url));
const NOBODY = 65534;
const size = content().length;
/** A hang guard. */
const HANG_MS_MAX = 60_000;

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

/** A file with an entry and an index, on a file system that is read-only now. */
async function sealed(t) {
  const { folder, seal } = mounted(t);
  const path = join(folder, "kv.sqlite3");
  const kv = await openKv(path);
  await (await kv.createIndex({ prefix: ["text"], fields: ["body"] })).ready();
  await kv.set(["text", 1], { body: "found here" });
  await kv.close();
  seal();
  return path;
}

for (const [runtime, start] of [
  ["Bun", () => [bun()]],
  ["Deno", () => [deno(), "run", "-A", "--quiet", "--no-lock"]],
])
  test(`a file on a read-only file system, in ${runtime}`, { skip: skipMounts }, async (t) => {
    const path = await sealed(t);
    const program = join(newDirectory(t, []), "program.mjs");
    const source = `
      import { openKv } from ${JSON.stringify(new URL("../../index.mjs", import.meta.url).href)};
      const path = ${JSON.stringify(path)};
      const refused = await openKv(path).catch(({ code }) => code);
      const kv = await openKv(path, { readonly: true });
      const { value } = kv.getSync(["text", 1]);
      const { entries } = await kv.search(["text"], "found");
      const denied = await kv.set(["new"], 1).catch(({ code }) => code);
      const { ok } = await kv.check();
      console.log(refused, value.body, await kv.count({ prefix: [] }), entries.length, denied, ok);
      await kv.close();`;
    writeFileSync(program, source);
    const [binary, ...flags] = start();
    const { stdout, stderr } = spawnSync(binary, [...flags, program], {
      encoding: "utf8",
      timeout: HANG_MS_MAX,
      env: { ...process.env, DENO_NO_UPDATE_CHECK: "1" },
    });
    assert.equal(stdout, "DENIED found here 1 1 DENIED true\n", stderr);
  });

test("a read-only file system is served, copied and backed up", { skip: skipMounts }, async (t) => {
  const path = await sealed(t);
  // Without the option, the error names it in the words of the command.
  const refused = command("serve", "--path", path, "--listen", "127.0.0.1:0");
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /--readonly reads it/);
  assert.match(
    command("--db", path, "set", "a", "1").stderr,
    /commands that only read can open it/,
  );

  const args = [
    PROGRAM,
    "serve",
    "--path",
    path,
    "--readonly",
    "--listen",
    "127.0.0.1:0",
    "--json",
  ];
  const server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => server.kill());
  const { value: line } = await server.stdout.setEncoding("utf8")[Symbol.asyncIterator]().next();
  const { url } = JSON.parse(line);
  const get = async (route) => await (await fetch(`${url}/api/${route}`)).json();
  assert.deepEqual((await get('keys?key=["text",1]')).value, { body: "found here" });
  assert.equal((await get("search?prefix=text&query=found")).entries.length, 1);
  const put = { method: "PUT", body: "1", headers: { "content-type": "application/json" } };
  assert.equal((await fetch(`${url}/api/keys/new`, put)).status, 403);
  const download = await fetch(`${url}/api/backup`);
  assert.equal(download.status, 422);
  assert.match((await download.json()).detail, /cannot write to its folder: copy the file itself/);

  const folder = newDirectory(t, []);
  // The source of a copy was opened for writing.
  const copied = command("copy", path, join(folder, "copy.sqlite3"));
  assert.equal(copied.status, 0, copied.stderr);
  assert.match(command("--db", join(folder, "copy.sqlite3"), "list").stdout, /found here/);
  const inside = command("--db", path, "backup", join(dirname(path), "backup.sqlite3"));
  assert.match(
    inside.stderr,
    /backup.sqlite3: its folder cannot be written; name a file in another/,
  );
  const backup = command("--db", path, "backup", join(folder, "backup.sqlite3"));
  assert.equal(backup.status, 0, backup.stderr);
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
