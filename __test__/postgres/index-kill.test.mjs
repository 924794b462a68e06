// Duty: processes that write under value indexes on PostgreSQL are killed, and a leader writes while another process
// makes and drops indexes; then the indexes find what a scan finds, and no unique value is there twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { HANG_MS, guard, sleep } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";
import { Random } from "../processes/crash/random.mjs";
import { INDEXES } from "../processes/index-kill/indexes.mjs";
import { verify } from "../processes/index-kill.mjs";

const WRITER = new URL("../processes/index-kill/writer.mjs", import.meta.url);
const PROCESSES = 8;
const ROUNDS = 2;
const LIFE_MS_MAX = 300;
/** More than the longest expiry of an entry. */
const EXPIRED_MS = 60;

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
async function verified(kv, seed) {
  for (const index of Object.values(INDEXES)) await (await kv.createIndex(index)).ready();
  // What expires has expired: none does between the scan and the look at its index.
  await sleep(EXPIRED_MS);
  return (await verify(kv, Object.keys(INDEXES), seed)).length;
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
    assert.ok((await verified(kv, seed)) > 10);
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
  assert.ok((await verified(kv, seed)) > 10);
  await kv.close();
});
