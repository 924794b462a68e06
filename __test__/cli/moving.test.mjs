// Duty: export, import and copy where something is in the way: files that are there, lines that
// cannot be stored, inputs that are no files, and the reader or the writer that does nothing.

import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { openKv, serve } from "../../index.mjs";
import { contents, ended, folderOfTests, openkv, shell, start, withoutShell } from "./running.mjs";

const path = folderOfTests();

async function filled(name, entries) {
  const kv = await openKv(path(name), { limits: "wide" });
  for (const [key, value] of entries) await kv.set(key, value);
  await kv.close();
  return path(name);
}

const ENTRIES = [
  [["a"], 1],
  [["b", 2n], "two"],
  [["c"], [3]],
];
const line = (key, value = '{"type":"null"}') =>
  `{"key":[{"type":"string","value":${JSON.stringify(key)}}],"value":${value}}\n`;

// `openkv export app.sqlite3`, without -d, left the database of that name at 0 bytes.
test("an export writes over nothing that it was not told to, and never over a database", async () => {
  const db = await filled("export.db", ENTRIES);
  const [note, linked] = [path("note.txt"), path("linked.db")];
  writeFileSync(note, "mine");
  // A file with several hard links is not opened (not looked at on Windows).
  (process.platform === "win32" ? linkSync : symlinkSync)(db, linked);
  const bytes = readFileSync(db);
  for (const [file, flags, why] of [
    [note, [], /note\.txt exists: give --resume .* or --force/],
    [db, ["--force"], /is the database that is to be exported/],
    [linked, ["--force"], /is the database that is to be exported/],
    [db, ["--resume"], /is the database that is to be exported/],
  ]) {
    const { code, err } = await openkv("-d", db, "export", file, ...flags);
    assert.equal(code, 1);
    assert.match(err, why);
  }
  assert.equal(readFileSync(note, "utf8"), "mine");
  const other = await filled("other.db", [[["x"], 1]]);
  for (const flags of [[], ["--force"], ["--resume"]]) {
    assert.match(
      (await openkv("-d", other, "export", db, ...flags)).err,
      /is a database, which no export/,
    );
  }
  assert.deepEqual(readFileSync(db), bytes);
  assert.equal((await openkv("-d", db, "export", note, "--force")).code, 0);
  assert.equal(readFileSync(note, "utf8").split("\n").length, 4);
});

// An export into the log lost what was committed there, and one into the -shm file ended the process by SIGBUS.
test("an export writes over no log of a database", async () => {
  const db = path("logged.db");
  const kv = await openKv(db);
  await kv.set(["k"], "kept");
  for (const end of ["-wal", "-shm"]) {
    const before = statSync(db + end).size;
    const { code, err } = await openkv("-d", db, "export", db + end, "--force");
    assert.equal(code, 1);
    assert.equal(err, `openkv: ${db}${end} is a part of ${db}, which no export writes over\n`);
    assert.equal(statSync(db + end).size, before);
  }
  await kv.close();
  assert.deepEqual(await contents(db), [[["k"], "kept"]]);
});

test("an export that was cut off goes on behind its last whole line", async () => {
  const long = { text: "x".repeat(150_000) };
  const db = await filled("resume.db", [...ENTRIES.slice(0, 2), [["c"], long], [["d"], long]]);
  const file = path("resume.ndjson");
  await openkv("-d", db, "export", file);
  const whole = readFileSync(file, "utf8");
  const ends = [...whole.matchAll(/\n/g)].map(({ index }) => index + 1);
  for (const cut of [ends[0] + 20, ends[2] + 70_000, 0]) {
    writeFileSync(file, whole.slice(0, cut));
    assert.equal((await openkv("-d", db, "export", file, "--resume")).code, 0);
    assert.equal(readFileSync(file, "utf8"), whole);
  }
});

// The end was cut off before the last line was found to be none of an export.
test("what is no export is not gone on with, and stays whole", async () => {
  const db = await filled("resume2.db", ENTRIES);
  const file = path("resume2.txt");
  for (const text of ["a diary\nand its last, open line", "one open line", `${line("k")}\nopen`]) {
    writeFileSync(file, text);
    const { code, err } = await openkv("-d", db, "export", file, "--resume");
    assert.equal(code, 1);
    assert.match(err, /is no export to go on with, and stays as it is/);
    assert.equal(readFileSync(file, "utf8"), text);
  }
});

test("a file that cannot be made is told", async () => {
  const db = await filled("nowhere.db", ENTRIES);
  const { code, err } = await openkv("-d", db, "export", path("no/such/folder.ndjson"));
  assert.equal(code, 1);
  assert.match(err, /^openkv: .*: there is no such file or folder \(ENOENT\)\n$/);
});

/** The mark of an import of the file, as it is written while one runs. */
function mark(file, database, storedBytes, versionstamp = "") {
  const { size: sourceBytes, mtimeMs: sourceModifiedMs } = statSync(file);
  const real = existsSync(database) ? realpathSync(database) : database;
  const identity = { database: real, prefix: "[]", sourceBytes, sourceModifiedMs };
  const marked = { ...identity, storedBytes, versionstamp };
  writeFileSync(`${file}.openkv-import`, JSON.stringify(marked));
}

test("an import goes on where it was cut off", async () => {
  const db = await filled("again.db", [[["a"], 1]]);
  const file = path("again.ndjson");
  writeFileSync(file, line("a") + line("b") + line("c"));
  mark(file, db, line("a").length);
  const { out } = await openkv("-d", db, "--json", "import", file, "--resume");
  assert.equal(JSON.parse(out).imported, 2);
  assert.equal(existsSync(`${file}.openkv-import`), false);
});

// The mark was a number: with another database what it counted was missing there, and nobody said so.
test("an import goes on with its own mark only", async () => {
  const [one, other] = [await filled("one.db", []), await filled("two.db", [])];
  const file = path("marked.ndjson");
  const stored = line("a").length;
  writeFileSync(file, line("a") + line("b"));
  const resume = (db, ...flags) => openkv("-d", db, "import", file, "--resume", ...flags);
  mark(file, one, stored);
  const refused = [
    [await resume(other), /the database \(.*one\.db\) differs/],
    [await resume(one, "--prefix", "p"), /--prefix differs/],
  ];
  // A database that has taken the place of the one of the mark has fewer commits.
  mark(file, one, stored, "00000000000000010000");
  refused.push([await resume(one), /lacks commits of that import/]);
  mark(file, path("gone.db"), stored);
  refused.push([await resume(path("gone.db")), /gone\.db does not exist/]);
  mark(file, one, stored);
  writeFileSync(file, line("b") + line("a") + line("c"));
  refused.push([await resume(one), /the size of the source differs/]);
  writeFileSync(`${file}.openkv-import`, `${stored}\n`);
  refused.push([await resume(one), /its form differs/]);
  for (const [{ code, err }, why] of refused) {
    assert.equal(code, 1);
    assert.match(err, why);
  }
  assert.deepEqual([await contents(one), await contents(other)], [[], []]);
  assert.equal((await openkv("-d", one, "import", file)).code, 0);
  assert.equal((await contents(one)).length, 3);
});

test("an import that cannot keep its mark stores all the same", async () => {
  const file = path("unmarked.ndjson");
  writeFileSync(file, line("a"));
  mkdirSync(`${file}.openkv-import`);
  const { code, err } = await openkv("-d", path("unmarked.db"), "import", file);
  assert.equal(code, 0, err);
  assert.match(err, /--resume will not go on from here/);
});

// One such line was told without its number, and all of its batch went with it.
test("lines that cannot be stored are told with their numbers, and the others stored", async () => {
  const deep = (levels) =>
    `${'{"type":"Array","value":['.repeat(levels)}{"type":"null"}${"]}".repeat(levels)}`;
  const part = (json) => `{"key":[${json}],"value":{"type":"null"}}\n`;
  const lines = [
    line("first"),
    line("k".repeat(3000)),
    part(`{"type":"bigint","value":"1${"0".repeat(4000)}"}`),
    line("deep", deep(1001)),
    line("deeper", deep(20_000)),
    "nonsense\n",
    line("deepest", deep(1000)),
    line("last"),
  ];
  const file = path("mixed.ndjson");
  writeFileSync(file, lines.join("").trimEnd());
  for (const flags of [[], ["--skip-existing"]]) {
    const db = path(`mixed${flags.length}.db`);
    const { code, err } = await openkv("-d", db, "import", file, ...flags);
    assert.equal(code, 1);
    const told = [...err.matchAll(/^openkv: line (\d+): (.{0,30})/gm)].map(([, n, why]) => [
      n,
      why,
    ]);
    assert.deepEqual(
      told.map(([n]) => n),
      ["2", "3", "4", "5", "6"],
      err,
    );
    assert.match(told[3][1], /^value\[0\]\[0\]/);
    assert.ok(err.length < 2000, "no message tells a thousand levels");
    assert.deepEqual(
      (await contents(db)).map(([[key]]) => key),
      ["deepest", "first", "last"],
    );
  }
});

test("a pipe is imported, and what cannot be read makes no database", {
  skip: withoutShell,
}, async () => {
  const file = path("piped.ndjson");
  writeFileSync(file, line("a") + line("b"));
  const { code, err } = await shell(
    `cat ${file} | $OPENKV -d ${path("piped.db")} import /dev/stdin`,
  );
  assert.equal(code, 0, err);
  assert.equal((await contents(path("piped.db"))).length, 2);
  const missing = await openkv("-d", path("unmade.db"), "import", path("missing.ndjson"));
  assert.deepEqual([missing.code, existsSync(path("unmade.db"))], [1, false]);
  assert.match(missing.err, /ENOENT/);
});

test("a command that reads makes no database, however it is named", async () => {
  const folder = path("empty");
  mkdirSync(folder);
  const url = pathToFileURL(path("none.db")).href;
  const runs = [
    await openkv("list", { cwd: folder }),
    await openkv("-d", url, "count"),
    await openkv("copy", url, path("none2.db")),
  ];
  for (const { code, err } of runs) {
    assert.equal(code, 1);
    assert.match(err, /does not exist/);
  }
  assert.deepEqual([`${folder}/.openkv`, path("none.db"), path("none2.db")].map(existsSync), [
    false,
    false,
    false,
  ]);
});

// The older value of an entry was written over the newer one that came meanwhile.
test("a database is not copied onto itself, by whatever name", { skip: withoutShell }, async () => {
  const db = await filled("self.db", ENTRIES);
  linkSync(db, path("hard.db"));
  symlinkSync(db, path("soft.db"));
  const names = [db, "self.db", pathToFileURL(db).href, path("hard.db"), path("soft.db")];
  const cwd = path("");
  const runs = await Promise.all(names.map((name) => openkv("copy", db, name, { cwd })));
  for (const { code, err } of runs) assert.equal(code, 2, err);
  const urls = ["http://127.0.0.1:1", "HTTP://127.0.0.1:1/"];
  assert.match((await openkv("copy", ...urls, "--token", "x")).err, /are the same database/);
});

test("commits of a copy are bounded by what its values really are", async () => {
  const objects = Array.from({ length: 60 }, (_, n) => [["o", n], { text: "x".repeat(50_000) }]);
  const db = await filled("objects.db", objects);
  assert.equal((await openkv("copy", db, path("objects2.db"))).code, 0);
  const kv = await openKv(path("objects2.db"));
  const stamps = new Set();
  for await (const { versionstamp } of kv.list({ prefix: [] })) stamps.add(versionstamp);
  await kv.close();
  assert.ok(stamps.size >= 6, `3 MB in ${stamps.size} commits`);
});

test("a server of openkv takes large values from the command line", async () => {
  const accessToken = "the-token-of-these-tests";
  const server = await serve({ path: path("large.db"), accessToken, listen: "127.0.0.1:0" });
  after(() => server.close());
  const on = (...args) => openkv("-d", server.url, "--token", accessToken, ...args);
  const file = path("large.bin");
  writeFileSync(file, Buffer.alloc(100_000, 7));
  assert.equal((await on("set", "k", "--file", file)).code, 0);
  const db = await filled("large2.db", [[["copied"], "x".repeat(200_000)]]);
  const { code, err } = await openkv("copy", db, server.url, "--to-token", accessToken);
  assert.equal(code, 0, err);
  assert.equal((await on("count")).out, "2\n");
});

test("the first signal ends an import that waits for its input", { timeout: 30_000 }, async (t) => {
  const kv = await openKv(path("idle.db"));
  const child = start(["-d", path("idle.db"), "import", "-"]);
  t.after(() => child.kill("SIGKILL"));
  let err = "";
  child.stderr.on("data", (data) => (err += data));
  // More than one commit: the first tells that it waits for more.
  for (let n = 0; n < 501; n++) child.stdin.write(line(`k${n}`));
  while ((await kv.count({ prefix: [] })) === 0)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(await ended(child, "SIGINT"), 130);
  assert.match(err, /interrupted\n$/);
  assert.equal(await kv.count({ prefix: [] }), 501);
  await kv.close();
});

test("the first signal ends an export whose reader does nothing", {
  timeout: 30_000,
}, async (t) => {
  const values = Array.from({ length: 40 }, (_, n) => [["v", n], "x".repeat(60_000)]);
  const db = await filled("stalled.db", values);
  const child = start(["-d", db, "export", "-"]);
  t.after(() => child.kill("SIGKILL"));
  await new Promise((resolve) => child.stdout.once("readable", resolve));
  child.kill("SIGTERM");
  assert.equal(await new Promise((resolve) => child.once("exit", resolve)), 130);
});

test("an output that cannot be written is told", {
  skip: withoutShell || !existsSync("/dev/full"),
}, async () => {
  const db = await filled("full.db", ENTRIES);
  for (const command of ["list", "export -", "count --json"]) {
    const { code, err } = await shell(`$OPENKV -d ${db} ${command} >/dev/full`);
    assert.equal(code, 1, command);
    assert.match(err, /^openkv: the output could not be written: ENOSPC.*\n$/);
  }
  assert.equal((await shell(`$OPENKV -d ${db} list | head -n 1; exit $?`)).err, "");
});

test("a copy of a database is no export's to write over either", async () => {
  const db = await filled("backup.db", ENTRIES);
  copyFileSync(db, path("backup-copy"));
  assert.equal((await openkv("-d", db, "export", path("backup-copy"), "--force")).code, 1);
  assert.deepEqual(await contents(path("backup-copy")), ENTRIES);
});
