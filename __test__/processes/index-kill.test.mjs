// Duty: processes that write under value indexes, and build and drop some, are killed at random moments;
// after each time the indexes find what a scan finds, and no unique value is there twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { Random } from "./crash/random.mjs";
import { newPath } from "./peer/file.mjs";
import { openKv } from "./target.mjs";

const WRITER = new URL("./index-kill/writer.mjs", import.meta.url);
const PROCESSES = 3;
const ROUNDS = 3;
const HANG_MS = 60_000;
/** More than the longest expiry of an entry. */
const EXPIRED_MS = 60;
const RANGE = { prefix: ["t"] };

test("indexes are exact and unique after kills of several writers", async () => {
  const path = newPath();
  const seed = `index ${Date.now()}`;
  const random = new Random(seed);
  let entries = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const children = Array.from({ length: PROCESSES }, (_, at) =>
      startWriter(path, seed, round, at),
    );
    await guard(Promise.all(children.map(({ opened }) => opened)), HANG_MS, "the writers commit");
    await sleep(random.between(20, 200));
    for (const { child } of children) child.kill();
    for (const { child } of children) {
      const { signal } = await child.ended;
      assert.deepEqual([signal, child.stderr], ["SIGKILL", ""], seed);
    }
    const kv = await openKv(path);
    // What expires has expired: none does between the scan and the look at its index.
    await sleep(EXPIRED_MS);
    entries = await verify(kv, seed);
    await kv.close();
  }
  assert.ok(entries > 10, `only ${entries} entries`);
});

function startWriter(path, seed, round, at) {
  const opened = Promise.withResolvers?.() ?? withResolvers();
  const onLine = () => opened.resolve();
  const child = startChild(WRITER, { path, seed, round, at }, { onLine });
  return { child, opened: Promise.race([opened.promise, child.ended]) };
}

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

/** Answers the number of entries. */
async function verify(kv, seed) {
  const unique = { type: "value", prefix: ["t"], on: "u", unique: true, name: "u" };
  const ordered = { type: "value", prefix: ["t"], on: ["n", "id"], name: "n" };
  for (const index of [unique, ordered]) await (await kv.createIndex(index)).ready();
  // A list with a depth is always a scan.
  const all = await kv.list(RANGE, { depth: 1 }).toArray();
  const values = all.map(({ value }) => value.u);
  assert.equal(new Set(values).size, values.length, seed);
  for (const { key, value } of all) {
    const found = await kv.list(RANGE, { where: { u: value.u } }).toArray();
    assert.deepEqual(
      found.map((entry) => entry.key),
      [key],
      seed,
    );
  }
  const sorted = all
    .map(({ value }) => value)
    .sort((a, b) => a.n - b.n || a.id - b.id)
    .map(({ id }) => id);
  const listed = await kv.list(RANGE, { orderBy: { n: "asc", id: "asc" } }).toArray();
  assert.deepEqual(
    listed.map(({ value }) => value.id),
    sorted,
    seed,
  );
  assert.deepEqual(await kv.check(), { ok: true, findings: [] }, seed);
  return all.length;
}
