// Duty: reads while others commit, or have locked the tables.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

const TRANSACTIONS = 60;
const LOCKED = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

let server;

before(async () => {
  server = await startPostgres();
});
after(() => server.close());

test("a list in an order beside an own write is of one state, whoever commits meanwhile", async () => {
  const url = server.url({ kv: "ordered" });
  const [kv, other] = await Promise.all([openKv(url), openKv(url)]);
  await (await kv.createIndex({ type: "value", prefix: ["t"], on: "n" })).ready();
  for (let n = 0; n < 5; n++) await kv.set(["t", n], { n });
  let ended = false;
  const commits = async () => {
    for (let n = 0; !ended; n++) await other.set(["unrelated"], n);
  };
  const committed = commits();
  for (let n = 0; n < TRANSACTIONS; n++) {
    const { value } = await kv.transaction(async (tx) => {
      tx.set(["t", 3], { n: -n });
      return await tx.list({ prefix: ["t"] }, { orderBy: "n", limit: 1 }).toArray();
    });
    assert.deepEqual(value[0].key, ["t", n === 0 ? 0 : 3]);
  }
  ended = true;
  await committed;
  await Promise.all([kv.close(), other.close()]);
});

test("reads of one range with different limits are of one state, whoever commits meanwhile", async () => {
  const proxy = await startProxy(server);
  const url = server.url({ kv: "limits" });
  const kv = await openKv(url.replace(`:${server.port}`, `:${proxy.port}`));
  const other = await openKv(url);
  for (let n = 0; n < 5; n++) await kv.set(["t", n], n);
  // A second trip of the reads comes after another commit.
  let committed;
  proxy.watch = ({ query }) => {
    if (!query?.startsWith("BEGIN ISOLATION LEVEL REPEATABLE READ")) return undefined;
    committed ??= other.set(["unrelated"], 1).finally(() => proxy.release());
    return "hold";
  };
  const prefix = ["t"];
  const counts = await Promise.all(
    [1, 3, 5].map(async (limit) => {
      const [pages, listed] = await Promise.all([
        kv.paginate({ prefix }, { limit }),
        kv.list({ prefix }, { limit, reverse: true }).toArray(),
      ]);
      return [pages.entries.length, listed.length];
    }),
  );
  await committed;
  assert.deepEqual(
    counts,
    [1, 3, 5].map((limit) => [limit, limit]),
  );
  await Promise.all([kv.close(), other.close()]);
  await proxy.close();
});

test("a read waits for a locked table as long as busyTimeout says", async () => {
  // Handles of one database share its connections, and those wait as the first one asks.
  const patient = await openKv(server.url({ kv: "patient" }));
  const hasty = await openKv(server.url({ kv: "hasty" }), { busyTimeout: 300 });
  await patient.set(["a"], 1);
  const lock = "BEGIN; LOCK TABLE openkv.entries IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)";
  const locked = server.sql(lock).catch(() => {});
  await until(async () => (await server.sql(`SELECT count(*) ${LOCKED}`)).trim() === "1");
  const ended = [];
  const waits = (name, read) => read.finally(() => ended.push(name)).catch((error) => error);
  const got = waits("patient", patient.get(["a"]));
  const [one, counted, listed] = await Promise.all([
    waits("get", hasty.get(["a"])),
    waits("count", hasty.count({ prefix: [] })),
    waits("list", hasty.list({ prefix: [] }).toArray()),
  ]);
  for (const error of [one, counted, listed]) assert.equal(error.code, "UNAVAILABLE", `${error}`);
  assert.ok(!ended.includes("patient"), `${ended}`);
  await server.sql(`SELECT pg_terminate_backend(pid) ${LOCKED}`);
  await locked;
  assert.equal((await got).value, 1);
  assert.equal((await hasty.get(["a"])).value, null);
  await Promise.all([patient.close(), hasty.close()]);
});
