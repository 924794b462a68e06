// Duty: the messages of mistakes: each names what is wrong in the words of the command line, and what
// to do. They named methods and options of the library, internal libraries, milliseconds since the
// epoch, and another fault than the one that was made.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { openKv } from "../../index.mjs";
import { folderOfTests, openkv } from "./running.mjs";

const path = folderOfTests();
const { inFlags, inWords } = createRequire(import.meta.url)("../../build/cli/advice.js");

async function fault(code, ...args) {
  const run = await openkv(...args);
  assert.equal(run.code, code, run.err);
  assert.doesNotMatch(run.err, /kv\.|serde_v8|accessToken|\.\.\s/);
  return run.err;
}

test("a wrong address to listen on is reported before a missing token", async () => {
  for (const listen of ["nonsense", "0.0.0.0:99999", "0.0.0.0:", ":4512", "0.0.0.0:-1", "::1:1"]) {
    const err = await fault(2, "serve", "--path", path("no.db"), `--listen=${listen}`);
    assert.match(err, /HOST:PORT, with a port from 0 to 65535/);
  }
});

test("errors of a server name the options of serve", async () => {
  const served = ["serve", "--path", path("no.db"), "--listen", "127.0.0.1:0"];
  assert.match(await fault(2, ...served, "--access-token", "short"), /--access-token must be/);
  assert.match(
    await fault(2, ...served, "--public-url", "a", "--access-token", "0123456789ab"),
    /--public-url must/,
  );
  assert.match(
    inFlags("advertise is for servers of an engine: give engine or replicaOf too"),
    /^--advertise is for servers of an engine: give --engine or --replica-of too$/,
  );
  assert.equal(inFlags("archive.to must be a folder"), "--archive must be a folder");
  assert.equal(inFlags("tls.cert: no such file"), "--tls-cert: no such file");
  const denied = "a.sqlite3: no permission for it to be read and written: readonly: true reads it";
  assert.match(inFlags(denied), /written: --readonly reads it$/);
  assert.match(inWords(denied), /written: commands that only read can open it$/);
});

test("an unknown scheme is answered by those that work", async () => {
  for (const url of ["htp://localhost:1", "redis://h/0"]) {
    const err = await fault(1, "-d", url, "get", "a");
    for (const scheme of ["http", "https", "postgres", "postgresql", "file"])
      assert.ok(err.includes(`${scheme}://`), err);
  }
});

test("a limit is told without advice that no command can follow", async () => {
  const key = JSON.stringify("k".repeat(2100));
  const err = await fault(2, "-d", path("a.db"), "set", key, "1");
  assert.match(err, /Key too large for write \(max 2048 bytes\): 2102 bytes given/);
  assert.doesNotMatch(err, /openKv|limits\./);
});

/** They had the exit code of a database that refuses. */
test("faults of arguments that only the library finds have exit code 2", async () => {
  const [db, long] = [path("codes.db"), "n".repeat(3000)];
  const codeOf = async (...args) => (await openkv("-d", db, ...args)).code;
  assert.equal(await codeOf("set", "text", "x"), 0);
  for (const args of [
    ["list", "--depth", "0"],
    ["list", "a", "--start", "b", "--end", "c"],
    ["get", '["a", {}]'],
    ["get", long],
    ["count", "--where", "{ a: { $gtee: 1 } }"],
    ["queue", "receive", long],
    ["queue", "limit", "q", "--concurrency", "0"],
    ["enqueue", "1", "--delay", "9999d"],
    ["index", "create", "p", ""],
    ["watch", "--prefix", "a", "--since", "zz"],
    ["archive", "run", db, "s3:/bucket/x"],
  ])
    assert.equal(await codeOf(...args), 2, `${args}`);
  // What is stored, and files that are there, are no faults of the command line.
  for (const args of [
    ["sum", "text", "1"],
    ["atomic", '{ sum: ["text"], value: 1 }'],
    ["list", "--order-by", "name"],
    ["backup", db],
  ])
    assert.equal(await codeOf(...args), 1, `${args}`);
});

test("a literal that does not end says what is missing", async () => {
  const on = (text) => fault(2, "-d", path("a.db"), "set", "k", text);
  for (const text of ['["a"', '["a",', "[[1]", "set([1]"])
    assert.match(await on(text), /the closing '[\])]' is missing/);
  assert.match(await on("{ a: 1"), /the closing '}' is missing/);
  assert.match(await on("[1 2]"), /',' or ']' was expected/);
});

test("a check that cannot be made names its step", async () => {
  for (const stamp of ['"zz"', "1", "undefined"]) {
    const steps = `[{ set: "a", value: 1 }, { check: ["a"], versionstamp: ${stamp} }]`;
    assert.match(
      await fault(2, "-d", path("b.db"), "atomic", steps),
      /step 1: versionstamp must be null or 20/,
    );
  }
});

test("advice names commands", async () => {
  const db = path("c.db");
  assert.equal((await openkv("-d", db, "set", "a", "1")).code, 0);
  const err = await fault(1, "-d", db, "search", "a", "b");
  assert.match(err, /search: no index .* with 'openkv index create PREFIX FIELD'/);
  const history = await fault(1, "-d", db, "list", "--at", "1h");
  assert.match(history, /the option history of openKv\(\)/);
  assert.match(
    await fault(1, "-d", db, "atomic", "{ set: 1, value: 1 }"),
    /a wrong type: expected array, got/,
  );
});

test("words of the library become those of the command line", () => {
  for (const [from, to] of [
    ["check accessToken", "check --token"],
    ["pass the option accessToken, or set X", "pass --token, or set X"],
    ["kv.createIndex: the name", "index create: the name"],
    ["kv.deleteMany: atomic", "delete: atomic"],
    ["kv.unknown: as it is", "kv.unknown: as it is"],
    ["run' or of kv.archive", "run' or of 'openkv archive run FILE TARGET'"],
    ["at: the time 0 (ms since the epoch) is", "at: 1970-01-01T00:00:00.000Z is"],
    ["not found.. Is it", "not found. Is it"],
    [
      "ENOENT: no such file or directory, open '/a, b'",
      "/a, b: there is no such file or folder (ENOENT)",
    ],
    [
      "EISDIR: illegal operation on a directory, open '/a'",
      "/a: it is a folder: name a file (EISDIR)",
    ],
    ["EMFILE: too many open files, open '/a'", "EMFILE: too many open files, open '/a'"],
    ["cd .. and a/../b...", "cd .. and a/../b..."],
    ["file kv.sqlite3", "file kv.sqlite3"],
    ["kv.queue().receive: lockDuration must", "queue receive: --lock must"],
    ["kv.queue().enqueue: deduplicationKey is", "enqueue: --key is"],
    ["kv.queue().dead.get: id must be", "dead get: id must be"],
    ["kv.queue: name must not be empty", "queue: the name of the queue must not be empty"],
  ])
    assert.equal(inWords(from), to);
});

test("a restore takes the moments of --at, and reports times with their zone", {
  timeout: 60_000,
}, async () => {
  const archive = path("archive");
  const kv = await openKv(path("d.db"));
  await kv.set(["a"], 1);
  const archiver = await kv.archive({ to: archive });
  while (archiver.status().snapshotAt === null) await pause(20);
  await kv.close();
  const at = (moment, code) => fault(code, "restore", archive, path("e.db"), "--at", moment);
  for (const early of ["2020-01-01T00:00:00Z", "1577836800000", "3650d"])
    assert.match(await at(early, 1), /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z is before the oldest/);
  assert.match(await at("nonsense", 2), /a duration for the time so long ago/);
});

// "EISDIR: illegal operation on a directory, read" named nothing.
test("a folder in place of a file is named", async () => {
  const db = path("i.db");
  assert.equal((await openkv("-d", db, "set", "a", "1")).code, 0);
  for (const args of [
    ["import", path("")],
    ["set", "a", "--file", path("")],
    ["export", path("")],
  ]) {
    const { code, err } = await openkv("-d", db, ...args);
    assert.equal(code, 1);
    assert.match(err, /^openkv: .*is a folder: name a file( \(EISDIR\))?\n$/);
  }
});

test("a copy says when Deno does not open what it made", async () => {
  const db = path("f.db");
  assert.equal((await openkv("-d", db, "set", "a", "1")).code, 0);
  const copied = await openkv("copy", db, path("g.db"));
  assert.match(copied.err, /g\.db is new, with values in CBOR.*--encoding v8/);
  for (const [to, ...more] of [
    [path("g.db"), "--force"],
    [path("h.db"), "--encoding", "v8"],
  ])
    assert.doesNotMatch((await openkv("copy", db, to, ...more)).err, /CBOR/);
});

// The key ["accessToken"] was told as ["--token"], and the file kv.list as 'openkv list'.
test("keys, names and paths are told as they are", async () => {
  const db = path("named.db");
  await openkv("-d", db, "set", "accessToken", "text");
  const check = await openkv("-d", db, "atomic", '{ check: ["accessToken"], versionstamp: null }');
  assert.match(check.err, /: \["accessToken"\]\n$/);
  const sum = await openkv("-d", db, "sum", '["accessToken"]', "1");
  assert.match(sum.err, /\(key \["accessToken"\]\)\n$/);
  const literal = await openkv("-d", db, "set", "k", "{ accessToken: kv.list");
  assert.match(literal.err, / of \{ accessToken: kv\.list;/);
  for (const name of ["kv.list", "accessToken.db"]) {
    const { err } = await openkv("-d", path(name), "get", "k");
    assert.equal(err, `openkv: ${path(name)} does not exist\n`);
  }
  assert.equal(
    inWords('give accessToken: ["value", "kv.list", "..", "0"]'),
    'give --token: ["value", "kv.list", "..", "0"]',
  );
});

// They named lockDuration, sort, busyTimeout and limits.valueBytesMax, which no command has.
test("an option is named as the command has it", async () => {
  const db = path("options.db");
  await openkv("-d", db, "set", "k", "1");
  const told = async (...args) => (await openkv("-d", db, ...args)).err;
  assert.match(await told("queue", "receive", "q", "--lock", "1"), /: queue receive: --lock must/);
  assert.match(await told("enqueue", "v", "--queue", "q", "--priority", "10"), /--priority must/);
  assert.match(await told("list", "--sort"), /: list: --sort needs --order-by\n/);
  assert.match(await told("list", "--order-by", "a"), /, or give --sort to sort in memory\n/);
  const kv = await openKv(db);
  await kv.backup(path("options.backup"));
  await kv.close();
  assert.match(await told("restore", path("options.backup"), db), /replaced \(--force\)\n/);
  const line = `{"key":[{"type":"string","value":"${"k".repeat(3000)}"}],"value":{"type":"null"}}`;
  const large = await openkv("-d", db, "import", "-", { input: line });
  assert.match(large.err, /line 1: Key too large/);
  assert.doesNotMatch(large.err, /openKv|limits\./);
  const locked = "database is locked (SQLite 5): another process kept the database busy";
  assert.equal(inWords(`${locked}; raise busyTimeout`), `${locked}; try again when that has ended`);
});

// "unknown option '-1n'" for a number that --help of `sum` names.
test("an argument that looks like an option is told how to be given", async () => {
  const db = path("dashed.db");
  for (const word of ["-1n", "-Infinity", "-x"]) {
    const { code, err } = await openkv("-d", db, "set", "k", word);
    assert.equal(code, 2);
    assert.match(err, /an argument that begins with - goes behind --, as in: sum key -- -1n\)\n/);
    assert.equal((await openkv("-d", db, "set", "k", "--", word)).code, 0);
  }
  assert.doesNotMatch((await openkv("-d", db, "list", "--limt", "1")).err, /goes behind/);
});
