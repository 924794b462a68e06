// Files and paths that are no openkv database are rejected by name and left unchanged.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openProbe } from "../processes/probe.mjs";
import { content } from "./child/content.mjs";
import { assertRefused, assertWhole, newDirectory, startExaminer } from "./child/start.mjs";

let probe;
before(() => (probe = openProbe()));
after(() => probe.close());

/** The file's bytes stay what they are while `action` runs. */
async function leavesAlone(path, action) {
  const bytes = readFileSync(path);
  await action();
  assert.ok(readFileSync(path).equals(bytes), "the file was changed");
}

test("a SQLite database of another program", async (t) => {
  const path = join(newDirectory(t), "foreign.db");
  await probe.run(
    path,
    "CREATE TABLE people (name TEXT)",
    "INSERT INTO people VALUES ('somebody')",
  );
  const examiner = startExaminer(t);
  // Its journal is no log of ours: SQLite keeps that in the file.
  await leavesAlone(path, async () => {
    assertRefused(await examiner.examine(path), ["CORRUPT", "UNSUPPORTED"], /another program/);
  });
  assert.deepEqual(await probe.run(path, "SELECT * FROM people"), [["somebody"]]);
  const tables = await probe.run(path, "SELECT name FROM sqlite_schema");
  assert.deepEqual(tables, [["people"]], "nothing was added");
  await examiner.end();
});

test("a database of another program with a table named kv", async (t) => {
  const path = join(newDirectory(t), "foreign.db");
  await probe.run(path, "CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT)");
  const examiner = startExaminer(t);
  assertRefused(await examiner.examine(path), ["CORRUPT", "UNSUPPORTED"]);
  await examiner.end();
});

/** The tables that Deno KV makes, as its third migration leaves them. */
const DENO = [
  "PRAGMA journal_mode = wal",
  "CREATE TABLE migration_state (k INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL)",
  "INSERT INTO migration_state VALUES (0, 3)",
  `CREATE TABLE data_version
    (k INTEGER PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0)`,
  "INSERT INTO data_version VALUES (0, 5, 0)",
  `CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL, v_encoding INTEGER NOT NULL,
    version INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0,
    expiration_ms INTEGER NOT NULL DEFAULT -1) WITHOUT ROWID`,
  "CREATE INDEX kv_expiration_ms_idx ON kv (expiration_ms)",
  "INSERT INTO kv VALUES (x'026100', x'FF0F4902', 1, 5, 0, -1)",
  `CREATE TABLE queue (ts INTEGER NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
    backoff_schedule TEXT NOT NULL, keys_if_undelivered BLOB NOT NULL, PRIMARY KEY (ts, id))`,
  `CREATE TABLE queue_running (deadline INTEGER NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
    backoff_schedule TEXT NOT NULL, keys_if_undelivered BLOB NOT NULL, PRIMARY KEY (deadline, id))`,
];

// Those of its present version are opened: __test__/deno-files.
test("a file of another version of Deno KV", async (t) => {
  const path = join(newDirectory(t), "kv.sqlite3");
  await probe.run(path, ...DENO, "UPDATE migration_state SET version = 4");
  const examiner = startExaminer(t);
  assertRefused(await examiner.examine(path), "UNSUPPORTED", /made by a Deno.*version 4/);
  assert.deepEqual(await probe.run(path, "SELECT hex(v), version FROM kv"), [["FF0F4902", 5]]);
  await examiner.end();
});

test("a file of a newer format", async (t) => {
  const path = join(newDirectory(t), "kv.sqlite3");
  const examiner = startExaminer(t);
  await examiner.create(path);
  const [[format]] = await probe.run(path, "SELECT value FROM openkv_meta WHERE name = 'format'");
  await probe.run(path, "UPDATE openkv_meta SET value = 1000 WHERE name = 'format'");
  assertRefused(await examiner.examine(path), "UNSUPPORTED", /newer.*update openkv/);
  assertRefused(await examiner.read(path, { readonly: true }), "UNSUPPORTED", /newer/);
  await probe.run(path, `UPDATE openkv_meta SET value = ${format} WHERE name = 'format'`);
  assertWhole(await examiner.examine(path), content().length);
  await examiner.end();
});

for (const [what, sql] of [
  ["no format version", "DELETE FROM openkv_meta"],
  [
    "a format version that is not a number",
    "UPDATE openkv_meta SET value = 'one' WHERE name = 'format'",
  ],
  ["a negative format version", "UPDATE openkv_meta SET value = -1 WHERE name = 'format'"],
  ["no commit counter", "DELETE FROM data_version"],
  ["a commit counter that is not a number", "UPDATE data_version SET version = 'many'"],
  ["a table missing", "DROP TABLE openkv_queue"],
  ["all values missing", "DELETE FROM openkv_spill"],
  ["values of a wrong type", "UPDATE kv SET v = 'text'"],
  ["encodings unknown", "UPDATE kv SET v_encoding = 99"],
  ["encodings unknown, and spilled", "UPDATE kv SET v_encoding = 256 + 99"],
  ["counters of a wrong length", "UPDATE kv SET v = x'010203' WHERE v_encoding = 2"],
  ["versions that are negative", "UPDATE kv SET version = -5"],
  [
    "keys that are not keys",
    "INSERT INTO kv SELECT x'99' || k, v, v_encoding, version, seq, -1 FROM kv",
  ],
  [
    "messages that are not messages",
    "UPDATE openkv_queue SET v = x'FF', due_ms = 0, undelivered = x'FF', backoff_ms = x'FF'",
  ],
]) {
  test(`an openkv file with ${what}`, async (t) => {
    const path = join(newDirectory(t), "kv.sqlite3");
    const examiner = startExaminer(t);
    await examiner.create(path);
    await probe.run(path, sql);
    await examiner.examine(path);
    await examiner.read(path, { readonly: true });
    await examiner.end();
  });
}

test("files that are no database at all", async (t) => {
  const directory = newDirectory(t);
  const examiner = startExaminer(t);
  for (const [name, bytes] of [
    ["text", Buffer.from("this is a shopping list\n".repeat(100))],
    ["zeros", Buffer.alloc(8192)],
    ["a header alone", Buffer.from("SQLite format 3\0")],
  ]) {
    const path = join(directory, name);
    writeFileSync(path, bytes);
    await leavesAlone(path, async () => {
      assertRefused(await examiner.examine(path), "CORRUPT");
      assertRefused(await examiner.read(path, { readonly: true }), "CORRUPT");
    });
  }
  await examiner.end();
});

test("an empty file becomes a database", async (t) => {
  const path = join(newDirectory(t), "empty");
  writeFileSync(path, "");
  const examiner = startExaminer(t);
  const { open, errors } = await examiner.examine(path);
  assert.deepEqual([open, errors], [null, []]);
  await examiner.end();
});

test("paths that cannot be a file", async (t) => {
  const directory = newDirectory(t);
  const file = join(directory, "file");
  writeFileSync(file, "");
  const [loop, nowhere] = [join(directory, "loop"), join(directory, "nowhere")];
  symlinkSync(loop, loop);
  symlinkSync(join(directory, "missing", "target"), nowhere);
  mkdirSync(join(directory, "folder"));
  const examiner = startExaminer(t);
  const folder = join(directory, "folder");
  const why = /unable to open database file: it is a folder: name a file, such as .*folder/;
  assertRefused(await examiner.examine(folder), "UNAVAILABLE", why);
  assertRefused(await examiner.examine(join(file, "below a file")), "UNAVAILABLE");
  assertRefused(await examiner.examine(loop), "UNAVAILABLE");
  assertRefused(await examiner.examine(nowhere), "UNAVAILABLE");
  assertRefused(await examiner.examine(join(directory, "n".repeat(300))), "UNAVAILABLE");
  assertRefused(await examiner.examine(join(directory, "deep/".repeat(1000), "x")), "UNAVAILABLE");
  assertRefused(await examiner.examine("/dev/null"), ["UNAVAILABLE", "CORRUPT", "DENIED"]);
  assertRefused(await examiner.read(join(directory, "missing"), { readonly: true }), "UNAVAILABLE");
  assertRefused(await examiner.examine(join(directory, "a\0b")), "EINVAL", /NUL/);
  assertRefused(await examiner.examine(""), "INVALID");
  assert.ok(statSync(join(directory, "folder")).isDirectory());
  await examiner.end();
});
