// Duty: --at, history and diff as a user has them, and that every reading command has --at.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { contents, folderOfTests, openkv } from "./running.mjs";

const { makeProgram } = createRequire(import.meta.url)("../../build/cli/main.js");

const path = folderOfTests();

/** The commands without --at, each with the reason. */
const WITHOUT_AT = {
  writes:
    "set delete touch persist sum append atomic enqueue import vacuum promote " +
    "queue.receive queue.listen queue.delete queue.cancel queue.drain queue.pause queue.resume queue.schedule " +
    "queue.limit " +
    "queue.unschedule dead.requeue dead.delete dead.purge index.create index.drop",
  "the history has entries only":
    "queue.list queue.stats queue.peek queue.result queue.schedules queue.limits queue.groups queue.progress " +
    "dead.list dead.get search index.list",
  "is about the file as it is": "backup check stats",
  "is about the objects of a database": "bucket.status bucket.verify",
  "is about servers, not entries":
    "db.archive db.create db.drop db.list db.quotas db.show token.create token.generate token.list token.revoke " +
    "cluster.schema cluster.status",
  "archives have moments of their own: restore --at":
    "archive.run archive.list archive.verify archive.prune",
  "follows the present": "watch mcp top queue.events",
  "counts from the present; get --at prints the expiry": "ttl",
  "names moments itself": "history diff",
  "reads no database": "serve studio shell completion",
};

test("every command that reads entries has --at", () => {
  const without = new Map();
  const visit = (command, names) => {
    for (const one of command.commands) visit(one, [...names, one.name()]);
    if (command.commands.length > 0 || names.length === 0) return;
    without.set(names.join("."), !command.options.some(({ long }) => long === "--at"));
  };
  visit(makeProgram(), []);
  const named = Object.values(WITHOUT_AT).flatMap((names) => names.split(" "));
  const found = [...without].filter(([, lacks]) => lacks).map(([name]) => name);
  assert.deepEqual(found.sort(), named.sort(), "a new command needs --at, or a reason here");
  const reading = [...without].filter(([, lacks]) => !lacks).map(([name]) => name);
  assert.deepEqual(reading.sort(), ["copy", "count", "export", "get", "list", "restore"]);
});

/** A file with a history, and the moments of its commits. */
async function filled(name) {
  const file = path(name);
  const kv = await openKv(file, { history: "7d" });
  const expireAt = new Date(Date.now() + 3_600_000);
  const stamp = async (commit) => (await commit).versionstamp;
  const first = await stamp(kv.atomic().set(["a", 1], "one").set(["a", 2], "two").commit());
  const second = await stamp(kv.atomic().set(["a", 1], "uno").delete(["a", 2]).commit());
  const third = await stamp(kv.atomic().set(["b"], [1n]).set(["a", 3], 3, { expireAt }).commit());
  await kv.close();
  return { file, first, second, third, expireAt };
}

test("every reading command reads a moment", async () => {
  const { file, first, second } = await filled("at.db");
  const on = (...args) => openkv("-d", file, ...args);
  assert.equal((await on("get", "a", "1", "--at", first)).out, '"one"\n');
  assert.equal((await on("get", "a", "1", "--raw")).out, "uno");
  assert.equal((await on("get", "a", "2", "--at", second)).code, 1);
  assert.equal((await on("count", "a", "--at", first)).out, "2\n");
  assert.equal((await on("count", "a", "--at", second)).out, "1\n");
  const listed = await on("list", "--at", first, "--keys-only", "--reverse", "--json");
  const keys = listed.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).versionstamp);
  assert.deepEqual(keys, [first, first]);
  const exported = path("at.ndjson");
  assert.equal((await on("export", exported, "--at", first)).code, 0);
  assert.equal(readFileSync(exported, "utf8").trim().split("\n").length, 2);
  const copied = await openkv("copy", file, path("copy.db"), "--at", first);
  assert.equal(copied.code, 0, copied.err);
  assert.deepEqual(await contents(path("copy.db")), [
    [["a", 1], "one"],
    [["a", 2], "two"],
  ]);
  const now = new Date().toISOString();
  assert.equal((await on("count", "--at", now)).out, "3\n");
});

test("moments that cannot be read are named", async () => {
  const { file } = await filled("refused.db");
  const on = (...args) => openkv("-d", file, ...args);
  // February 30 was read as March 2, also by a restore.
  const noDays = ["2026-02-30", "2025-02-29T10:00:00Z", "2026-04-31 10:00"];
  for (const words of ["monday", "1764000000", "2026-13-40", "0000", "", ...noDays]) {
    const { code, err } = await on("get", "a", "1", "--at", words);
    assert.equal(code, 2, words);
    assert.match(err, /Give a time, as 2026-11-24T15:00:00Z, a duration/);
  }
  const early = await on("count", "--at", "2001-01-01");
  assert.equal(early.code, 1);
  assert.match(early.err, /2001-01-01T00:00:00.000Z is before the beginning of the history/);
  assert.match(early.err, /at \d{4}-\S+Z; the history keeps 604800000 ms: name a later moment/);
  const late = await on("count", "--at", "2901-01-01T00:00:00Z");
  assert.match(late.err, /is after the present/);
  const beyond = await on("count", "--at", "00000000ffff00000000");
  assert.match(beyond.err, /is after the newest one/);
  const without = path("without.db");
  await openkv("-d", without, "set", "a", "1");
  const { code, err } = await openkv("-d", without, "get", "a", "--at", "2026-01-01");
  assert.deepEqual(
    [code, /keeps no history: open it with the option history/.test(err)],
    [1, true],
  );
});

test("history prints the versions of an entry", async () => {
  const { file, first, second } = await filled("versions.db");
  const on = (...args) => openkv("-d", file, ...args);
  const { out } = await on("history", "a", "2");
  const [deleted, set, value] = out.trimEnd().split("\n");
  assert.match(deleted, new RegExp(`^\\d{4}-\\S+Z @${second} deleted$`));
  assert.match(set, new RegExp(`^\\d{4}-\\S+Z @${first}$`));
  assert.equal(value, '  "two"');
  const json = (await on("history", "a", "1", "--json")).out.trim().split("\n").map(JSON.parse);
  assert.deepEqual(
    json.map(({ type, versionstamp }) => [type, versionstamp]),
    [
      ["set", second],
      ["set", first],
    ],
  );
  assert.ok(json.every(({ committedAt }) => Math.abs(committedAt - Date.now()) < 60_000));
  const one = await on("history", "a", "1", "--before", second, "--json=plain");
  assert.equal(JSON.parse(one.out).value, "one");
  assert.equal(
    (await on("history", "a", "1", "-n", "1", "--json")).out.trim().split("\n").length,
    1,
  );
  const none = await on("history", "never");
  assert.deepEqual(
    [none.code, none.err],
    [1, "openkv: the history has no version of this entry\n"],
  );
});

test("diff prints what differs between two moments", async () => {
  const { file, first, second, third, expireAt } = await filled("diff.db");
  const { code, out, err } = await openkv("diff", file, "--from", first);
  assert.deepEqual([code, err], [0, "2 added, 1 changed, 1 removed\n"]);
  const expected = [
    '~ ["a", 1]',
    `  - @${first}`,
    '    "one"',
    `  + @${second}`,
    '    "uno"',
    '- ["a", 2]',
    `  - @${first}`,
    '    "two"',
    '+ ["a", 3]',
    `  + @${third} until ${expireAt.toISOString()}`,
    "    3",
    '+ ["b"]',
    `  + @${third}`,
    "    [1n]",
  ];
  assert.deepEqual(out.trimEnd().split("\n"), expected);
  const args = ["diff", "--from", second, "--to", third, "--prefix", "a", "--json"];
  const line = JSON.parse((await openkv("-d", file, ...args)).out);
  assert.deepEqual([line.type, line.before, line.after.versionstamp], ["added", undefined, third]);
  const same = await openkv("diff", file, "--from", second, "--to", second);
  assert.deepEqual([same.code, same.out, same.err], [0, "", "0 added, 0 changed, 0 removed\n"]);
  // The other direction shows what would lead back.
  const back = await openkv("diff", file, "--from", third, "--to", first, "--json");
  const types = back.out
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text).type);
  assert.deepEqual(types, ["changed", "added", "removed", "removed"]);
  assert.equal((await openkv("diff", file)).code, 2);
});

test("a change of the expiry alone is a difference", async () => {
  const file = path("expiries.db");
  const kv = await openKv(file, { history: "7d" });
  const { versionstamp: from } = await kv.set(["a"], 1);
  const { versionstamp: to } = await kv.touch(["a"], { expireIn: 3_600_000 });
  await kv.close();
  const { out } = await openkv("diff", file, "--from", from, "--to", to, "--json");
  const { type, before, after } = JSON.parse(out);
  assert.deepEqual([type, before.versionstamp, after.versionstamp], ["changed", from, from]);
  assert.ok(before.expireAt === undefined && after.expireAt !== undefined);
});
