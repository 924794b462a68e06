// Duty: an expired lock is extended, once, for a consumer that other processes kept from renewing it,
// and for no other. The distance to the server once counted as the work of others: far from its
// server, a process extended the locks of dead consumers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { HANG_MS, sleep, until } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

/** Each way. A trip takes longer than a wait for the row has to, to be one for other processes. */
const FAR_MS = 60;
const LOCK_MS = 2_000;

const isClaim = ({ query }) => query?.includes("SET locked = true") ?? false;
const isExtension = ({ query }) => query?.includes("in_grace = true") ?? false;

/** A database with one message, whose consumer is gone, and what another process executes there. */
async function abandoned(t) {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const executed = [];
  proxy.watch = (message) => void executed.push(message);
  const url = server.url();
  const dying = await openKv(url);
  await dying.queue("jobs").enqueue("work", { backoffSchedule: [0] });
  const other = await openKv(url.replace(`:${server.port}`, `:${proxy.port}`));
  await other.set(["warm"], 1);
  const taken = await dying.queue("jobs").receive({ lockDuration: LOCK_MS });
  assert.equal(taken.attempts, 1);
  await dying.close();
  return { server, proxy, url, other, executed };
}

test("far from the server, the message of a dead consumer is delivered again", async (t) => {
  const { proxy, other, executed } = await abandoned(t);
  proxy.delayMs = FAR_MS;
  const again = await other.queue("jobs").receive({ wait: HANG_MS });
  assert.equal(again.attempts, 2);
  await again.ack();
  // A server that was busy for a moment may have caused one.
  assert.ok(executed.filter(isExtension).length < executed.filter(isClaim).length);
  proxy.delayMs = 0;
  await other.close();
});

test("an expired lock is extended once after others kept the database", async (t) => {
  const { server, url, other, executed } = await abandoned(t);
  const name = new URL(url).searchParams.get("kv");
  const kept = assert.rejects(
    server.sql(`WITH d AS MATERIALIZED
      (SELECT ${HANG_MS / 1000} AS s FROM openkv.databases WHERE name = '${name}' FOR UPDATE)
      SELECT pg_sleep(s) FROM d`),
  );
  const keeper = `FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%${name}%'`;
  const count = async (from) => Number(await server.sql(`SELECT count(*) ${from}`));
  await until(() => count(keeper), "the database is kept");
  const receiving = other.queue("jobs").receive({ wait: HANG_MS });
  const waiting = `FROM pg_stat_activity, (SELECT pid ${keeper}) AS keeper (by)
    WHERE keeper.by = ANY (pg_blocking_pids(pid))`;
  await until(() => count(waiting), "the consumer waits");
  await sleep(1.25 * LOCK_MS);
  await server.sql(`SELECT pg_cancel_backend(pid) ${keeper}`);
  await kept;
  const again = await receiving;
  assert.equal(again.attempts, 2, "the extension ends too");
  await again.ack();
  assert.ok(executed.some(isExtension));
  await other.close();
});
