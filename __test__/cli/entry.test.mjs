// Duty: ttl, touch, persist, sum, append and atomic as a user has them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KvU64, openKv } from "../../index.mjs";
import { contents, folderOfTests, openkv } from "./running.mjs";

const path = folderOfTests();
const commandOn =
  (db) =>
  (...args) =>
    openkv("-d", db, ...args);

test("the end of an entry is told, moved and taken away", async () => {
  const on = commandOn(path("ends.db"));
  assert.equal((await on("set", "a", "b", "1")).code, 0);
  assert.equal((await on("ttl", "a", "b")).out, "stays\n");
  assert.equal((await on("touch", "a", "b", "--expire-in", "3600000")).code, 0);
  assert.match((await on("ttl", "a", "b")).out, /^3\d{6} ms, until \d{4}-\S+Z\n$/);
  const { ttl, expireAt } = JSON.parse((await on("ttl", "a", "b", "--json")).out);
  assert.ok(ttl > 3_000_000 && Math.abs(Date.parse(expireAt) - Date.now() - ttl) < 60_000);
  assert.equal((await on("persist", "a", "b")).code, 0);
  assert.deepEqual(JSON.parse((await on("ttl", "a", "b", "--json")).out), {
    ttl: null,
    expireAt: null,
  });
  for (const args of [
    ["ttl", "x"],
    ["touch", "x", "--expire-in", "1"],
    ["persist", "x"],
  ]) {
    const { code, err } = await on(...args);
    assert.deepEqual([code, err], [1, "openkv: there is no such entry\n"]);
  }
  assert.equal((await on("touch", "a", "b")).code, 2);
});

test("numbers are added and items appended", async () => {
  const db = path("sums.db");
  const on = commandOn(db);
  for (const args of [
    ["sum", "visits", "2.5"],
    ["sum", "visits", "1"],
    ["sum", "page", "views", "41n"],
    ["sum", "page", "views", "1n"],
    ["sum", "bounded", "10", "--max", "5", "--clamp"],
    ["append", "log", "started", "{ at: 1 }"],
    ["append", "log", "5", "--prepend"],
  ]) {
    const { code, err } = await on(...args);
    assert.equal(code, 0, `${args}: ${err}`);
  }
  assert.deepEqual(await contents(db), [
    [["bounded"], 5],
    [["log"], [5, "started", { at: 1 }]],
    [["page", "views"], new KvU64(42n)],
    [["visits"], 3.5],
  ]);
  assert.equal((await on("sum", "bounded", "10", "--max", "5")).code, 1);
  assert.equal((await on("sum", "visits", "much")).code, 2);
  assert.equal((await on("sum", "visits")).code, 2);
  // The command line is wrong, and the entry is another one than the command is for.
  assert.equal((await on("sum", "bounded", "1", "--min", "2n")).code, 2);
  assert.equal((await on("sum", "page", "views", "1", "--string")).code, 2);
  assert.equal((await on("sum", "log", "1")).code, 1);
  assert.equal((await on("append", "visits", "1")).code, 1);
});

test("an atomic operation happens as a whole, or not at all", async () => {
  const db = path("atomic.db");
  const on = commandOn(db);
  const made = await on(
    "atomic",
    '{ check: ["account", "a"], versionstamp: null }',
    '[{ set: ["account", "a"], value: 100 }, { sum: "n", value: 5, max: 9 }]',
    '{ enqueue: { opened: "a" }, queue: "mail" }',
    "--json",
  );
  assert.equal(made.code, 0, made.err);
  const { ok, versionstamp } = JSON.parse(made.out);
  assert.equal(ok, true);
  const lines = [
    `{"check": ["account", "a"], "versionstamp": "${versionstamp}"}`,
    "",
    '{"sum": ["account", "a"], "value": -30}',
    '{"append": "log", "items": ["a: 30"]}',
    '{"touch": "n", "expireIn": 3600000}',
  ].join("\n");
  const first = await on("atomic", { input: lines });
  assert.equal(first.code, 0, first.err);
  const second = await on("atomic", "-", "--json", { input: lines });
  assert.equal(second.code, 1);
  assert.deepEqual(JSON.parse(second.out), { ok: false, failed: [0] });
  assert.match(second.err, /a check failed, and nothing was written: \["account", "a"\]/);
  assert.deepEqual(await contents(db), [
    [["account", "a"], 70],
    [["log"], ["a: 30"]],
    [["n"], 5],
  ]);
  const kv = await openKv(db);
  assert.equal((await kv.queue("mail").stats()).pending, 1);
  assert.notEqual(await kv.ttl(["n"]), null);
  await kv.close();
});

test("every verb has what it needs", async () => {
  const db = path("verbs.db");
  const on = commandOn(db);
  const verbs = [
    '{ set: "s", value: 1, expireIn: 3600000 }',
    '{ persist: "s" }',
    '{ min: "s", value: 0 }',
    '{ max: "s", value: 4 }',
    '{ set: "gone", value: 1 }',
    '{ delete: "gone" }',
    '{ prepend: "l", items: [1] }',
    '{ enqueue: "plain", delay: 60000 }',
  ];
  for (const verb of verbs) {
    const { code, err } = await on("atomic", verb);
    assert.equal(code, 0, `${verb}: ${err}`);
  }
  assert.deepEqual(await contents(db), [
    [["l"], [1]],
    [["s"], 4],
  ]);
  const wrong = [
    [["{ set: ['a'] }"], /step 0: set needs value/],
    [["{ delete: 'a' }", "{ delete: 'a', value: 1 }"], /step 1: delete has no value/],
    [["{ set: 'a', delete: 'a', value: 1 }"], /step 0: it has one of check, set,/],
    [["5"], /a step is an object/],
    [["[]"], /at least one step/],
  ];
  for (const [args, why] of wrong) {
    const { code, err } = await on("atomic", ...args);
    assert.equal(code, 2);
    assert.match(err, why);
  }
});
