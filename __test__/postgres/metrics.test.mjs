// Duty: the metrics of a led database, as an object and as text: what the leader has done, and what the
// loss of a connection adds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { parse } from "../api/exposition.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

/** The part of the text about leaders and followers: values by name. */
async function text(kv) {
  const families = parse(await kv.metrics({ format: "prometheus" }));
  const names = [...families.keys()].filter((name) => /^openkv_(leader|lag)_/.test(name));
  return Object.fromEntries(names.map((name) => [name, families.get(name).samples[0].value]));
}

test("a leader counts its batches, and those that a lost connection discards", async (t) => {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const far = server.url({ more: "&lead=one" }).replace(`:${server.port}`, `:${proxy.port}`);
  const kv = await openKv(far);
  t.after(() => kv.close());
  // It leads from the first write on, also from one of its own.
  await kv.set(["warm"], 0);
  const { leader: begun, lagCommits } = await kv.metrics();
  assert.equal(lagCommits, undefined);

  for (let i = 0; i < 3; i++) await kv.set(["alone"], i);
  await Promise.all(Array.from({ length: 40 }, (_, i) => kv.set(["many", i], i)));
  const { leader } = await kv.metrics();
  assert.ok(leader.leading);
  assert.equal(leader.epochs, 1);
  assert.equal(leader.batches.writes, 44);
  assert.equal(leader.batches.begun, leader.batches.durable);
  const batches = leader.batches.begun - begun.batches.begun;
  assert.ok(batches >= 4 && batches < 43, `${batches} batches`);
  assert.equal(leader.batches.discarded, 0);
  assert.equal(leader.batches.inFlight, 0);
  assert.deepEqual(leader.waiting, { writes: 0, bytes: 0 });
  assert.equal(leader.refused, 0);
  assert.ok(leader.depth >= 1);
  assert.deepEqual(await text(kv), {
    openkv_leader_leading: 1,
    openkv_leader_epoch: leader.epoch,
    openkv_leader_epochs_total: 1,
    openkv_leader_batches_begun_total: leader.batches.begun,
    openkv_leader_batches_durable_total: leader.batches.durable,
    openkv_leader_batch_writes_total: 44,
    openkv_leader_decisions_discarded_total: 0,
    openkv_leader_batches_in_flight: 0,
    openkv_leader_depth: leader.depth,
    openkv_leader_waiting_writes: 0,
    openkv_leader_waiting_bytes: 0,
    openkv_leader_refused_writes_total: 0,
  });

  // Nothing of this commit has happened, so it is decided again in the next epoch.
  let isCut = false;
  proxy.watch = ({ from, query }) => {
    if (isCut || from !== "client" || !query?.includes("UPDATE openkv.databases")) return undefined;
    isCut = true;
    return "drop";
  };
  await kv.set(["alone"], "again");
  const { leader: after } = await kv.metrics();
  assert.ok(isCut);
  assert.equal(after.batches.discarded, 1);
  assert.equal(after.epochs, 2);
  assert.equal(after.epoch, leader.epoch + 1);
  assert.equal(after.batches.begun, leader.batches.begun + 2);
  assert.equal(after.batches.durable, leader.batches.durable + 1);
});

test("a process that does not lead shows its lag while it watches", async (t) => {
  const url = (await sharedPostgres()).url();
  const direct = await openKv(url);
  t.after(() => direct.close());
  await direct.set(["a"], 1);
  const watch = direct.watch([["a"]]).getReader();
  t.after(() => watch.cancel());
  await watch.read();
  await until(async () => (await direct.metrics()).lagCommits === 0, "a lag of 0");
  assert.equal((await direct.metrics()).leader, undefined);
  assert.deepEqual(Object.keys(await text(direct)), ["openkv_lag_commits"]);
});
