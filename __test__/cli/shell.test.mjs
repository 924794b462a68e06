// Duty: the shell: one open database, and commands that are typed or piped line by line.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { bin, contents, folderOfTests, openkv } from "./running.mjs";

const { splitWords } = createRequire(import.meta.url)("../../build/cli/words.js");
const { placesOf, suggest } = createRequire(import.meta.url)("../../build/cli/command-tree.js");
const { makeProgram } = createRequire(import.meta.url)("../../build/cli/main.js");
const path = folderOfTests();

test("a line is parted at spaces, but not inside quotes and brackets", () => {
  const cases = [
    ["", []],
    ["  get   users  alice ", ["get", "users", "alice"]],
    [
      'set ["users", 1] { name: "Ada L.", "b c": [1, 2] }',
      ["set", '["users", 1]', '{ name: "Ada L.", "b c": [1, 2] }'],
    ],
    ["set '[\"a\"]' '{ b: 1 }'", ["set", '["a"]', "{ b: 1 }"]],
    ['set k "two words"', ["set", "k", '"two words"']],
    ["search p 'a OR b'", ["search", "p", "a OR b"]],
    ["set k { a: 'it\\'s' }", ["set", "k", "{ a: 'it\\'s' }"]],
    ['set k date("2026-01-01")', ["set", "k", 'date("2026-01-01")']],
    ['set k "a\\"b"', ["set", "k", '"a\\"b"']],
    ["set k v # it's a note", ["set", "k", "v"]],
    ["# ['", []],
    ["set a#b '#1' {} #", ["set", "a#b", "#1", "{}"]],
  ];
  for (const [line, words] of cases) assert.deepEqual(splitWords(line), words, line);
  for (const line of ["set [1", 'set "a', "set 'a"])
    assert.throws(() => splitWords(line), { name: "LiteralError" }, line);
});

test("commands and options are offered where they may stand", () => {
  const places = placesOf(makeProgram());
  assert.deepEqual(suggest(places, [], "cou"), ["count"]);
  assert.deepEqual(suggest(places, ["dead"], "p"), ["purge"]);
  assert.deepEqual(suggest(places, ["list"], "--key"), ["--keys-only"]);
  assert.deepEqual(suggest(places, ["serve", "--log"], "j"), ["json"]);
  assert.deepEqual(suggest(places, ["get"], "us"), []);
});

test("lines from a pipe run on one database, and what fails ends nothing", async () => {
  const db = path("piped.db");
  const input = [
    "# a comment",
    'set ["users", 1] { name: "Ada" }',
    "get nothing",
    "",
    "nonsense",
    "set users 2 bob",
    "count users --json",
    "get users 2",
    "exit",
    "set users 3 never",
  ].join("\n");
  const { code, out, err } = await openkv("-d", db, "shell", { input });
  assert.equal(code, 1);
  assert.equal(out, '{"count":2}\n"bob"\n');
  assert.match(err, /there is no such entry/);
  assert.match(err, /unknown command 'nonsense'/);
  assert.match(err, /openkv: 2 lines failed\n$/);
  assert.deepEqual(await contents(db), [
    [["users", 1], { name: "Ada" }],
    [["users", 2], "bob"],
  ]);
  const good = await openkv("-d", db, "--json", "shell", { input: "get users 2\ncount\n" });
  assert.equal(good.code, 0);
  assert.equal(good.out.split("\n").length, 3);
});

// `set k v # note` stored "note" under ["k", "v", "#"].
test("a comment may follow a command", async () => {
  const db = path("comments.db");
  const { code, err } = await openkv("-d", db, "shell", { input: "set k v # note\n" });
  assert.equal(code, 0, err);
  assert.deepEqual(await contents(db), [[["k"], "v"]]);
});

test("a database in memory lives as long as its shell", async () => {
  const { out } = await openkv("-d", ":memory:", "shell", { input: "set k 1\nsum k 2\nget k\n" });
  assert.equal(out, "3\n");
});

test("what a shell cannot do is told", async () => {
  const input = "shell\nset k --raw -\nimport -\natomic\ndelete --prefix k\n";
  const { code, err } = await openkv("-d", path("told.db"), "shell", { input });
  assert.equal(code, 1);
  assert.equal(err.match(/the standard input is its own/g).length, 3);
  assert.match(err, /this is a shell already/);
  assert.match(err, /give --yes/);
  assert.match(err, /5 lines failed/);
});

/** More than a terminal shows before Ctrl-C is read. */
const LISTED = 20_000;

const withoutTerminal =
  spawnSync("python3", ["-c", "import pty"]).status !== 0 && "needs a terminal (python3's pty)";

/** Types on a terminal into the shell, or another command: each text once `until` was printed. */
function typed(db, history, steps, command = ["shell"]) {
  const program = `
import os, pty, sys, json, select
steps = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
seen = everything = b""
def wait(text):
    global seen, everything
    while text.encode() not in seen:
        ready, _, _ = select.select([fd], [], [], 30)
        if not ready: raise SystemExit("no " + text + " in " + repr(seen))
        try: data = os.read(fd, 65536)
        except OSError: break
        if not data: break
        seen += data
        everything += data
    seen = seen[seen.find(text.encode()) + len(text):]
for until, text in steps:
    wait(until)
    os.write(fd, text.encode())
try:
    while True:
        data = os.read(fd, 65536)
        if not data: break
        everything += data
except OSError: pass
_, status = os.waitpid(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), everything.decode(errors="replace")]))
`;
  const child = spawn(
    "python3",
    ["-c", program, JSON.stringify(steps), process.execPath, bin, "-d", db, ...command],
    {
      env: { ...process.env, OPENKV_HISTORY: history, NO_COLOR: "1", TERM: "xterm" },
    },
  );
  let [out, err] = ["", ""];
  child.stdout.on("data", (data) => (out += data));
  child.stderr.on("data", (data) => (err += data));
  return new Promise((resolve) => child.on("close", () => resolve({ out: out.trim(), err })));
}

test("on a terminal Ctrl-C ends the command, Ctrl-D the shell, and lines are kept", {
  skip: withoutTerminal,
  timeout: 120_000,
}, async () => {
  const [db, history] = [path("terminal.db"), path("history")];
  const kv = await openKv(db);
  await Promise.all(Array.from({ length: LISTED }, (_, n) => kv.set(["n", n], "x".repeat(100))));
  kv.close();
  const { out, err } = await typed(db, history, [
    ["openkv> ", "list n\r"],
    ['["n", 10]', "\u0003"],
    ["openkv> ", "delete --prefix n\r"],
    ["[y/N] ", "y\r"],
    ["openkv> ", "set k 'left\u0003"],
    ["openkv> ", "set k kept\r"],
    ["openkv> ", "watch k\r"],
    ['"kept"', "\u0003"],
    ["openkv> ", "wat\t k\u0015get k\r"],
    ['"kept"', "\u0004"],
  ]);
  assert.equal(err, "");
  const [code, screen] = JSON.parse(out);
  assert.equal(code, 0);
  assert.ok(!screen.includes(`["n", ${LISTED - 1}]`), "the list was printed to its end");
  assert.deepEqual(await contents(db), [[["k"], "kept"]]);
  assert.ok(existsSync(history));
  assert.deepEqual(readFileSync(history, "utf8").trim().split("\n").slice(-3), [
    "set k kept",
    "watch k",
    "get k",
  ]);
  assert.equal(statSync(history).mode & 0o777, 0o600);
});

// The question stayed open: a `y` on the next line deleted the entries, and said nothing.
test("Ctrl-C at a question ends the command, and the next line is a command", {
  skip: withoutTerminal,
  timeout: 120_000,
}, async () => {
  const db = path("question.db");
  const { out, err } = await typed(db, "", [
    ["openkv> ", "set k 1\r"],
    ["openkv> ", "delete --prefix []\r"],
    ["[y/N] ", "\u0003"],
    ["openkv> ", "y\r"],
    ["unknown command 'y'", ""],
    ["openkv> ", "count\r"],
    ["\n1\r", "\u0004"],
  ]);
  assert.equal(err, "");
  assert.equal(JSON.parse(out)[0], 0);
  assert.deepEqual(await contents(db), [[["k"], 1]]);
});

// The prompt came back, and the process neither read a line nor ended.
test("Ctrl-D during a command ends the shell behind it", {
  skip: withoutTerminal,
  timeout: 60_000,
}, async () => {
  const { out, err } = await typed(path("ended.db"), "", [
    ["openkv> ", "set k 1\r"],
    ["openkv> ", "queue receive q --wait 2s\r"],
    ["--wait 2s\r", "\u0004"],
  ]);
  assert.equal(err, "");
  const [code, screen] = JSON.parse(out);
  assert.equal(code, 0);
  assert.equal(screen.match(/openkv> /g).length, 2, screen);
});

// Ctrl-C was "Aborted with Ctrl+C" with exit code 1, as if the database had refused.
test("at a question of a command Ctrl-C is exit code 130, all but yes is 1, and nothing is done", {
  skip: withoutTerminal,
  timeout: 60_000,
}, async () => {
  const db = path("asked.db");
  await openkv("-d", db, "set", "k", "1");
  for (const [answer, expected] of [
    ["\u0003", 130],
    ["\u0004", 1],
    ["n\r", 1],
  ]) {
    const { out, err } = await typed(db, "", [["[y/N] ", answer]], ["delete", "--prefix", "[]"]);
    assert.equal(err, "");
    const [code, screen] = JSON.parse(out);
    assert.equal(code, expected);
    assert.match(screen, /\nopenkv: nothing was done\r\n$/);
    assert.deepEqual(await contents(db), [[["k"], 1]]);
  }
  await typed(db, "", [["[y/N] ", "y\r"]], ["delete", "--prefix", "[]"]);
  assert.deepEqual(await contents(db), []);
});

/** More than are deleted before Ctrl-C is read. */
const DELETED = 100_000;
const DRAINED = 40_000;

// The prompt came back, and the deletion went on to its end.
test("Ctrl-C ends a deletion", { skip: withoutTerminal, timeout: 120_000 }, async () => {
  const db = path("deletion.db");
  const kv = await openKv(db);
  await Promise.all(Array.from({ length: DELETED }, (_, n) => kv.set(["n", n], n)));
  const queue = kv.queue("q");
  await Promise.all(Array.from({ length: DRAINED }, (_, n) => queue.enqueue(n)));
  await kv.close();
  const { out, err } = await typed(db, "", [
    ["openkv> ", "delete --prefix [] -y\r"],
    ["-y\r", "\u0003"],
    ["openkv> ", "queue drain q\r"],
    ["drain q\r", "\u0003"],
    // A write waits for a deletion that may concern it.
    ["openkv> ", "set k 1\r"],
    ["openkv> ", "\u0004"],
  ]);
  assert.equal(err, "");
  assert.equal(JSON.parse(out)[0], 0);
  const { length } = await contents(db);
  assert.ok(length > 1 && length <= DELETED + 1, `${length} entries are left`);
  const { pending } = JSON.parse((await openkv("-d", db, "--json", "queue", "stats", "q")).out);
  assert.ok(pending > 0 && pending <= DRAINED, `${pending} messages are left`);
});
