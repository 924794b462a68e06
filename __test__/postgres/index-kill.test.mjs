// Duty: processes that write under value indexes on PostgreSQL are killed, and a leader writes while another process
// makes and drops indexes; then the indexes find what a scan finds, and no unique value is there twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { HANG_MS, guard, sleep } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";
import { Random } from "../processes/crash/random.mjs";
import { INDEXES, PREFIX } from "../processes/index-kill/indexes.mjs";

const WRITER = new URL("../processes/index-kill/writer.mjs", import.meta.url);
const PROCESSES = 8;
const ROUNDS = 2;
const LIFE_MS_MAX = 300;
/** More than the longest expiry of an entry. */
const EXPIRED_MS = 60;
const RANGE = { prefix: PREFIX };

async function started(path, seed) {
  const child = startChild(WRITER, { path, seed });
  assert.equal(await guard(child.line(), HANG_MS, "a writer commits"), "R", child.stderr);
  return child;
}

async function killed(child, seed) {
  child.kill();
  assert.deepEqual([(await child.ended).signal, child.stderr], ["SIGKILL", ""], seed);
}

/** Answers the number of entries. */
async function verify(kv, seed) {
  for (const index of Object.values(INDEXES)) await (await kv.createIndex(index)).ready();
  // What expires has expired: none does between the scan and the look at its index.
  await sleep(EXPIRED_MS);
  const ids = async (options) =>
    (await kv.list(RANGE, options).toArray()).map(({ value }) => value.id);
  // A list with a depth is always a scan.
  const all = (await kv.list(RANGE, { depth: 1 }).toArray()).map(({ value }) => value);
  const idsOf = (values) => values.map(({ id }) => id);
  assert.equal(new Set(all.map(({ u }) => u)).size, all.length, seed);
  assert.deepEqual(await ids({ orderBy: "u" }), idsOf(all.toSorted((a, b) => a.u - b.u)), seed);
  for (const { id, u } of all) assert.deepEqual(await ids({ where: { u } }), [id], seed);
  const sorted = all.toSorted((a, b) => a.n - b.n || a.id - b.id);
  assert.deepEqual(await ids({ orderBy: { n: "asc", id: "asc" } }), idsOf(sorted), seed);
  for (let tag = 0; tag < 10; tag++) {
    const tagged = all.filter(({ tags }) => tags.includes(tag));
    assert.deepEqual(await ids({ where: { tags: { $contains: tag } } }), idsOf(tagged), seed);
  }
  return all.length;
}

test("indexes are exact and unique after kills of eight writers", async () => {
  const url = (await sharedPostgres()).url();
  const seed = `index ${Date.now()}`;
  const random = new Random(seed);
  for (let round = 0; round < ROUNDS; round++) {
    const names = Array.from({ length: PROCESSES }, (_, at) => `${seed}/${round}/${at}`);
    const children = await Promise.all(names.map((name) => started(url, name)));
    await sleep(random.between(0, LIFE_MS_MAX));
    await Promise.all(children.map((child) => killed(child, seed)));
    const kv = await openKv(url);
    assert.ok((await verify(kv, seed)) > 10);
    await kv.close();
  }
});

test("a leader keeps the indexes that another process makes and drops meanwhile", async () => {
  const url = (await sharedPostgres()).url();
  const seed = `led ${Date.now()}`;
  const child = await started(`${url}&lead=writer`, seed);
  const kv = await openKv(url);
  const twin = { ...INDEXES.unique, name: "twin" };
  const plain = { ...INDEXES.unique, unique: false, name: "plain" };
  for (let round = 0; round < 5; round++) {
    for (const index of [twin, plain]) await (await kv.createIndex(index)).ready();
    for (const { name } of [twin, plain]) await kv.dropIndex(name);
  }
  await killed(child, seed);
  assert.ok((await verify(kv, seed)) > 10);
  await kv.close();
});
