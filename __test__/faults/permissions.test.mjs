// Files and directories that may not be read or written: a typed error that says so.
//
// Permissions do not stop the superuser: as root, the examining process gives that up before it
// opens anything.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { content } from "./child/content.mjs";
import {
  assertRefused,
  assertWhole,
  newDirectory,
  newDirectoryWith,
  startExaminer,
} from "./child/start.mjs";

const NOBODY = 65534;
const args = process.getuid?.() === 0 ? { uid: NOBODY } : {};
const skip = process.platform === "win32" && "there are no permission bits";

/** A file with the known content, in a directory of its own, both with these permissions. */
async function fileWith(t, { file, directory }) {
  const undo = [];
  const parent = newDirectory(t, undo);
  chmodSync(parent, 0o755);
  const path = join(parent, "data", "kv.sqlite3");
  const examiner = startExaminer(t);
  await examiner.create(path);
  await examiner.end();
  chmodSync(path, file);
  chmodSync(dirname(path), directory);
  undo.push(() => chmodSync(dirname(path), 0o755)); // or it could not be removed
  return path;
}

const size = content().length;

test("a directory without write permission", { skip }, async (t) => {
  const directory = newDirectoryWith(t, 0o555);
  const examiner = startExaminer(t, args);
  const refused = await examiner.examine(join(directory, "kv.sqlite3"));
  assertRefused(refused, "DENIED", /kv\.sqlite3: .*may not make files in the folder/);
  assertRefused(await examiner.examine(join(directory, "sub", "kv.sqlite3")), "DENIED");
  await examiner.end();
});

test("the default database in a directory without write permission", { skip }, async (t) => {
  const directory = newDirectoryWith(t, 0o755);
  writeFileSync(join(directory, "package.json"), "{}");
  chmodSync(directory, 0o555);
  const examiner = startExaminer(t, { ...args, cwd: directory });
  assertRefused(await examiner.examine(undefined), "DENIED");
  await examiner.end();
});

test("a file without write permission", { skip }, async (t) => {
  const path = await fileWith(t, { file: 0o444, directory: 0o777 });
  const examiner = startExaminer(t, args);
  const answer = await examiner.examine(path);
  // To open it for writing is refused, or every write is.
  if (answer.open) assertRefused(answer, "DENIED");
  else {
    assert.deepEqual({ ok: answer.ok, missing: answer.missing }, { ok: size, missing: 0 });
    assert.ok(answer.errors.every(({ code }) => code === "DENIED"));
    assert.ok(answer.errors.length > 0);
  }
  assertWhole(await examiner.read(path, { readonly: true }), size);
  await examiner.end();
});

test("a file without write permission, in a directory without write permission", {
  skip,
}, async (t) => {
  const path = await fileWith(t, { file: 0o444, directory: 0o555 });
  const examiner = startExaminer(t, args);
  const writing = await examiner.examine(path);
  const refusals = writing.open ? [writing.open] : writing.errors;
  assert.ok(refusals.length > 0);
  assert.deepEqual([...new Set(refusals.map(({ code }) => code))], ["DENIED"]);
  const answer = await examiner.read(path, { readonly: true });
  if (answer.open === null) assertWhole(answer, size);
  else assertRefused(answer, "DENIED");
  await examiner.end();
});

test("a file without read permission", { skip }, async (t) => {
  const path = await fileWith(t, { file: 0o000, directory: 0o777 });
  const examiner = startExaminer(t, args);
  assertRefused(await examiner.examine(path), "DENIED", /no permission .* read and written/);
  assertRefused(await examiner.read(path, { readonly: true }), "DENIED", /to be read$/);
  await examiner.end();
});

test("a directory without search permission", { skip }, async (t) => {
  const path = await fileWith(t, { file: 0o666, directory: 0o000 });
  const examiner = startExaminer(t, args);
  assertRefused(await examiner.examine(path), "DENIED", /may not enter the folder/);
  await examiner.end();
});

test("readonly: reads everything, rejects every write, leaves the file unchanged", async (t) => {
  const path = await fileWith(t, { file: 0o644, directory: 0o755 });
  const examiner = startExaminer(t);
  const { errors, ...rest } = await examiner.examine(path, { readonly: true });
  assert.deepEqual([...new Set(errors.map(({ code }) => code))], ["DENIED"]);
  assert.ok(
    !errors.some(({ does }) =>
      ["list", "get", "getMany", "watch", "list in reverse"].includes(does),
    ),
  );
  assertWhole({ ...rest, errors: [] }, size);
  await examiner.end();
});

test("readonly does not create a file", async (t) => {
  const directory = newDirectory(t);
  mkdirSync(join(directory, "sub"));
  const examiner = startExaminer(t);
  assertRefused(
    await examiner.read(join(directory, "sub", "kv.sqlite3"), { readonly: true }),
    "UNAVAILABLE",
  );
  assertRefused(
    await examiner.read(join(directory, "none", "kv.sqlite3"), { readonly: true }),
    "UNAVAILABLE",
  );
  await examiner.end();
});
