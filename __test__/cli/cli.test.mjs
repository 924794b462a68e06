// Duty: the command as a user has it: a process with arguments, its output and its exit code.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { contents, folderOfTests, openkv, start } from "./running.mjs";

const path = folderOfTests();

async function filled(name, entries) {
  const kv = await openKv(path(name));
  for (const [key, value] of entries) await kv.set(key, value);
  await kv.close();
  return path(name);
}

test("entries are set, read, listed and deleted", async () => {
  const db = path("entries.db");
  const on = (...args) => openkv("-d", db, ...args);
  assert.equal((await on("set", '["users", 1n]', "{ name: 'Ada' }")).code, 0);
  assert.equal((await on("set", "flag", "true", "--if-absent")).code, 0);
  assert.equal((await on("set", "flag", "false", "--if-absent")).code, 1);
  assert.equal((await on("set", "text", "--file", "-", "--text", { input: "hello" })).code, 0);
  assert.deepEqual(await on("get", "flag"), { code: 0, out: "true\n", err: "" });
  assert.equal((await on("get", "text")).out, '"hello"\n');
  const missing = await on("get", "nothing");
  assert.deepEqual([missing.code, missing.out], [1, ""]);
  assert.match(
    (await on("list", "users")).out,
    /^\["users", 1n\] @\w{20}\n {2}\{ name: "Ada" \}\n$/,
  );
  assert.equal((await on("list", "-k")).out.split("\n").length, 4);
  assert.equal((await on("delete", "flag", "text")).code, 0);
  const left = await on("--json", "list");
  assert.deepEqual(JSON.parse(left.out).key[1], { type: "bigint", value: "1" });
});

test("a wrong command line is exit code 2, and makes no database", async () => {
  const db = path("typo.db");
  const cases = [["nonsense"], ["get"], ["get", "[1"], ["list", "--limit", "many"], ["set", "k"]];
  for (const args of cases) {
    const { code, err } = await openkv("-d", db, ...args);
    assert.equal(code, 2, `${args}: ${err}`);
    assert.notEqual(err, "");
  }
  const { code, err } = await openkv("-d", db, "list");
  assert.equal(code, 1);
  assert.match(err, /does not exist/);
});

const ENTRIES = [
  [["a"], 1],
  [["b", 2n], { deep: [new Date(0), new Uint8Array([1])] }],
  [["c", new Uint8Array([255])], new Map([[-0, undefined]])],
];

// `openkv list` on a file that mktemp had made wrote a database of 120 KB into it.
test("an empty file stays empty until something is stored", async () => {
  const file = path("empty.db");
  writeFileSync(file, "");
  for (const args of [
    ["list"],
    ["get", "k"],
    ["stats"],
    ["check"],
    ["delete", "k"],
    ["copy", file, path("never.db")],
    ["export", path("never.ndjson")],
  ]) {
    const { code, err } = await openkv("-d", file, ...args);
    assert.deepEqual([code, err], [1, `openkv: ${file} is an empty file: it has no database\n`]);
  }
  assert.equal(statSync(file).size, 0);
  for (const name of ["never.db", "never.ndjson"]) assert.equal(existsSync(path(name)), false);
  assert.equal((await openkv("-d", file, "set", "k", "1")).code, 0);
  assert.deepEqual(await contents(file), [[["k"], 1]]);
});

test("what is exported can be imported, under a prefix too", async () => {
  const db = await filled("from.db", ENTRIES);
  const file = path("entries.ndjson");
  assert.equal((await openkv("-d", db, "export", file)).code, 0);
  const piped = await openkv("-d", db, "export", "-");
  assert.equal(piped.out, readFileSync(file, "utf8"));
  const into = path("into.db");
  const imported = await openkv("-d", into, "--json", "import", file);
  assert.deepEqual(JSON.parse(imported.out), { imported: 3, skipped: 0, failed: 0 });
  assert.deepEqual(await contents(into), await contents(db));
  const skipped = await openkv("-d", into, "--json", "import", file, "--skip-existing");
  assert.deepEqual(JSON.parse(skipped.out), { imported: 0, skipped: 3, failed: 0 });
  await openkv("-d", into, "import", "-", "--prefix", "old", { input: piped.out });
  assert.equal((await contents(into)).length, 6);
});

test("lines that cannot be stored are told, and the others stored", async () => {
  const good = (n) =>
    `{"key":[{"type":"number","value":${n}}],"value":{"type":"null","value":null}}`;
  const file = path("mixed.ndjson");
  writeFileSync(file, `${good(1)}\nnonsense\n\n${good(2)}`);
  const { code, err } = await openkv("-d", path("mixed.db"), "import", file);
  assert.equal(code, 1);
  assert.match(err, /line 2: not JSON/);
  assert.equal((await contents(path("mixed.db"))).length, 2);
});

test("--json and an export tell what a Blob holds", async () => {
  const db = await filled("blob.db", [[["k"], { of: new Blob(["contents"]) }]]);
  const outputs = [
    await openkv("-d", db, "--json", "get", "k"),
    await openkv("-d", db, "export", "-"),
  ];
  for (const { out } of outputs) {
    const { value } = JSON.parse(out).value;
    assert.match(Buffer.from(value, "base64url").toString("latin1"), /contents/);
  }
});

test("a database is copied", async () => {
  const db = await filled("source.db", ENTRIES);
  assert.equal((await openkv("copy", db, path("copy.db"))).code, 0);
  assert.deepEqual(await contents(path("copy.db")), await contents(db));
  assert.equal((await openkv("copy", path("none.db"), path("copy2.db"))).code, 1);
});

test("watch tells of changes until it is interrupted", async () => {
  const db = await filled("watch.db", [[["k"], 1]]);
  const child = start(["-d", db, "--json", "watch", "k"]);
  let out = "";
  const lines = (count) =>
    new Promise((resolve) => {
      child.stdout.on("data", (data) => {
        out += data;
        if (out.split("\n").length > count) resolve();
      });
    });
  await lines(1);
  const kv = await openKv(db);
  const more = lines(2);
  await kv.set(["k"], 2);
  await more;
  await kv.close();
  child.kill("SIGINT");
  const code = await new Promise((resolve) => child.on("close", resolve));
  assert.equal(code, 0);
  assert.equal(JSON.parse(out.trim().split("\n").at(-1)).value.value, 2);
});

test("a backup is made and checked", async () => {
  const db = await filled("backup.db", ENTRIES);
  const { code, out } = await openkv("-d", db, "--json", "backup", path("backup-copy.db"));
  assert.equal(code, 0);
  assert.equal(JSON.parse(out).entries, 3);
  assert.equal((await openkv("-d", path("backup-copy.db"), "check")).code, 0);
  assert.equal((await openkv("-d", db, "backup", path("backup-copy.db"))).code, 1);
  assert.deepEqual(await contents(path("backup-copy.db")), await contents(db));
});

test("a backup is restored, over a file only with --force", async () => {
  const [db, copy] = [await filled("to-restore.db", ENTRIES), path("to-restore-copy.db")];
  assert.equal((await openkv("-d", db, "backup", copy)).code, 0);
  assert.equal((await openkv("-d", db, "set", "later", "1")).code, 0);
  const refused = await openkv("restore", copy, db);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /exists already.*--force/);
  const { code, out, err } = await openkv("restore", copy, db, "--force", "--json");
  assert.deepEqual([code, err], [0, ""]);
  assert.equal(JSON.parse(out).entries, ENTRIES.length);
  assert.deepEqual(await contents(db), ENTRIES);
  assert.equal((await openkv("restore", path("nothing"), path("nowhere.db"))).code, 1);
});
