// Duty: a copy replaces nothing in the destination that the command line does not name.
//
// A copy into a database that was in use replaced its newer entries, and the command printed only
// how many it had copied.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { contents, folderOfTests, openkv } from "./running.mjs";

const require = createRequire(import.meta.url);
const { CommonHistory, verdict } = require("../../build/cli/copy-rule.js");
const { CopyBatch } = require("../../build/cli/copy-batch.js");
const path = folderOfTests();

/** Writes entries, one commit each, `null` deletes. */
async function write(db, entries) {
  const kv = await openKv(db);
  for (const [key, value] of Object.entries(entries)) {
    await (value === null ? kv.delete([key]) : kv.set([key], value));
  }
  await kv.close();
}

async function held(db) {
  return Object.fromEntries((await contents(db)).map(([[key], value]) => [key, value]));
}

/** Two databases that have `b` in common; the destination's is the newer one. */
async function two(name) {
  const [from, to] = [path(`${name}-from.db`), path(`${name}-to.db`)];
  await write(from, { a: "source", b: "source" });
  await write(to, { x: 1, y: 2, b: "destination" });
  return [from, to];
}

test("a copy is refused when it would replace an entry, before anything is copied", async () => {
  const [from, to] = await two("refused");
  const { code, out, err } = await openkv("copy", from, to);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /the destination has an entry \["b"\] already, and nothing was copied/);
  for (const flag of ["--skip-existing", "--if-newer", "--force"])
    assert.ok(err.includes(flag), flag);
  assert.deepEqual(await held(to), { x: 1, y: 2, b: "destination" });
  assert.equal((await openkv("copy", from, to, "--force", "--if-newer")).code, 2);
});

test("other entries of the destination are not in the way", async () => {
  const [from, to] = [path("beside-from.db"), path("beside-to.db")];
  await write(from, { a: 1, c: 3 });
  await write(to, { b: 2, d: 4 });
  assert.equal((await openkv("copy", from, to)).code, 0);
  assert.deepEqual(await held(to), { a: 1, b: 2, c: 3, d: 4 });
  const prefixed = await openkv("copy", from, to, "--prefix", "nothing");
  assert.equal(prefixed.code, 0, prefixed.err);
});

test("--force replaces, --skip-existing does not", async () => {
  const [from, to] = await two("told");
  const kept = await openkv("copy", from, to, "--skip-existing", "--json");
  assert.deepEqual(JSON.parse(kept.out), { copied: 1, kept: 1 });
  assert.deepEqual(await held(to), { x: 1, y: 2, a: "source", b: "destination" });
  const forced = await openkv("copy", from, to, "--force", "--json");
  assert.deepEqual(JSON.parse(forced.out), { copied: 2 });
  assert.deepEqual(await held(to), { x: 1, y: 2, a: "source", b: "source" });
});

/** A database with a few commits, and a backup of it. */
async function forked(name) {
  const [from, to] = [path(`${name}-from.db`), path(`${name}-to.db`)];
  await write(from, { same: 0, ours: 0, theirs: 0, both: 0, gone: 0 });
  assert.equal((await openkv("-d", from, "backup", to)).code, 0);
  return [from, to];
}

test("--if-newer brings a backup up to date", async () => {
  const [from, to] = await forked("forward");
  await write(from, { gone: 1, ours: 1, new: 1, both: 1 });
  const { code, out, err } = await openkv("copy", from, to, "--if-newer", "--json");
  assert.equal(code, 0, err);
  assert.deepEqual(JSON.parse(out), { copied: 4, kept: 2, conflicts: 0 });
  assert.deepEqual(await held(to), await held(from));
});

test("--if-newer replaces only what the source alone has changed", async () => {
  const [from, to] = await forked("both");
  await write(from, { ours: 1, both: 1, new: 1 });
  // Their versionstamps are higher than the source's.
  await write(to, { theirs: 2, t1: 2, t2: 2, t3: 2, both: 2 });
  const { code, out, err } = await openkv("copy", from, to, "--if-newer", "--json");
  assert.equal(code, 0, err);
  assert.deepEqual(JSON.parse(out), { copied: 2, kept: 4, conflicts: 1 });
  const { same, ours, theirs, both, ...rest } = await held(to);
  assert.deepEqual({ same, ours, theirs, both }, { same: 0, ours: 1, theirs: 2, both: 2 });
  assert.equal(rest.new, 1);
});

test("--if-newer compares no databases that count by themselves", async () => {
  const [from, to] = [path("alike-from.db"), path("alike-to.db")];
  await write(from, { a: "source", b: "source" });
  await write(to, { a: "destination" });
  const strangers = await openkv("copy", from, to, "--if-newer");
  assert.equal(strangers.code, 1);
  assert.match(strangers.err, /--if-newer compares versionstamps/);
  assert.deepEqual(await held(to), { a: "destination" });
});

test("a copy to a server is held to the same", async () => {
  const [from, to] = await two("served");
  const entries = Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`n${n}`, n]));
  await write(from, entries);
  const accessToken = "the-token-of-these-tests";
  const server = await serve({ path: to, accessToken, listen: "127.0.0.1:0" });
  const copy = (...flags) =>
    openkv("copy", from, server.url, "--to-token", accessToken, "--json", ...flags);
  assert.equal((await copy()).code, 1);
  assert.deepEqual(JSON.parse((await copy("--skip-existing")).out), { copied: 251, kept: 1 });
  await server.close();
  assert.equal((await held(to)).b, "destination");
});

test("an entry that another program writes meanwhile is not replaced, and keeps no other out", async () => {
  const kv = await openKv(":memory:");
  const { versionstamp: compared } = await kv.set(["changed"], "compared");
  await kv.set(["changed"], "newer");
  await kv.set(["came"], "newer");
  const batch = new CopyBatch(kv, 500, true);
  const entry = (key) => ({ key: [key], value: "copied", versionstamp: compared });
  await batch.add(entry("new"), null);
  await batch.add(entry("changed"), compared);
  await batch.add(entry("came"), null);
  await batch.end();
  assert.deepEqual([batch.copied, batch.lost], [1, 2]);
  const values = await kv.getMany([["new"], ["changed"], ["came"]]);
  assert.deepEqual(
    values.map(({ value }) => value),
    ["copied", "newer", "newer"],
  );
  kv.close();
});

const stamp = (n) => (n === null ? null : n.toString(16).padStart(20, "0"));

test("the last commit in common is what the entries show", () => {
  const lastOf = (...pairs) => {
    const history = new CommonHistory();
    for (const [source, destination] of pairs)
      history.add({ source: stamp(source), destination: stamp(destination) });
    return history.last;
  };
  assert.equal(lastOf([1, 2], [3, 4]), null);
  assert.equal(lastOf([1, 1], [2, 2]), stamp(2));
  // The destination did not go on; its last commits were written over in the source.
  assert.equal(lastOf([1, 1], [9, 5], [8, null]), stamp(5));
  // The source did not.
  assert.equal(lastOf([1, 1], [5, 9], [null, 8]), stamp(5));
  // Both did: what is above the highest common one may be either's.
  assert.equal(lastOf([3, 3], [9, 2], [2, 8], [7, 6]), stamp(3));
});

test("what happens to an entry is decided by its rule", () => {
  const cases = [
    ["refuse", 5, null, "copy"],
    ["replace", 5, 9, "copy"],
    ["keep", 9, 5, "keep"],
    ["if-newer", 5, null, "copy"],
    ["if-newer", 3, 3, "keep"],
    ["if-newer", 9, 3, "copy"],
    ["if-newer", 2, 9, "keep"],
    ["if-newer", 9, 8, "conflict"],
  ];
  for (const [rule, source, destination, expected] of cases) {
    assert.equal(
      verdict(rule, stamp(source), stamp(destination), stamp(3)),
      expected,
      `${rule} ${source}`,
    );
  }
});
