// Duty: one process that leads more busy databases than its connections can hold leaders for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { guard, HANG_MS, sleep } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

/** Each takes up to two of the eight connections of the process. */
const DATABASES = 12;
const CONNECTIONS_MAX = 8;
/** So far that a leader has several batches in flight at any time. */
const DELAY_MS = 2;
/** Commits of each database: each of the callers makes its share, one after the other. */
const CALLERS = 8;
const COMMITS = 40;

const COUNT = (name) => `SELECT count(*) FROM pg_stat_activity WHERE application_name = '${name}'`;

test("twelve busy databases of one leader all go on", async (t) => {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  proxy.delayMs = DELAY_MS;
  const name = `many${process.pid}`;
  const url = () =>
    server
      .url({ more: `&lead=one&application_name=${name}` })
      .replace(`:${server.port}`, `:${proxy.port}`);
  const handles = await Promise.all(Array.from({ length: DATABASES }, () => openKv(url())));
  t.after(() => Promise.all(handles.map((kv) => kv.close())));
  let goesOn = true;
  let done = 0;
  // Every database is busy until the last one has made its commits.
  const work = async (kv) => {
    let made = 0;
    const call = async (_, caller) => {
      while (goesOn) {
        // Not in step with each other, so that a leader is seldom without a batch in flight.
        await sleep(caller);
        await kv.atomic().sum(["n"], 1n).commit();
        if (++made === COMMITS && ++done === DATABASES) goesOn = false;
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    assert.equal((await kv.get(["n"])).value.value, BigInt(made));
  };
  const all = Promise.all(handles.map(work));
  const counts = [];
  const looking = (async () => {
    while (goesOn) counts.push(Number(await server.sql(COUNT(name))));
  })();
  try {
    await guard(all, HANG_MS, "every database makes its commits");
  } finally {
    goesOn = false;
    await looking;
  }
  // The server sees the end of a connection later than the process, which may have the next one then.
  const usual = counts.sort((a, b) => a - b)[counts.length >> 1];
  assert.ok(usual > 0 && usual <= CONNECTIONS_MAX, `${counts} connections`);
});
