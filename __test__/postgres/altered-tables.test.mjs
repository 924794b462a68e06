// Duty: a column that somebody has given another type is CORRUPT, whatever reads or writes it, and
// what is refused has no effect. The driver panics on such a column; and it sends the other statements
// of a transaction without the one whose arguments have other types.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";

/** Columns, each with a type that most operators of SQL take in its place. */
const ALTERED = [
  ["databases", "version", "numeric"],
  ["databases", "clock_ms", "numeric"],
  ["databases", "log_bits", "text"],
  ["databases", "indexes", "text"],
  ["entries", "db", "numeric"],
  ["entries", "version", "numeric"],
  ["entries", "encoding", "int4"],
  ["entries", "v", "text"],
  ["expiries", "db", "numeric"],
  ["log", "previous", "numeric"],
  ["log", "keys", "text"],
  ["log", "writes", "text"],
  ["replication", "removed", "numeric"],
  ["segments", "first", "numeric"],
  ["segments", "removes", "text"],
  ["messages", "attempts", "numeric"],
  ["messages", "due_ms", "numeric"],
  ["messages", "v", "text"],
  ["dead", "first_ms", "numeric"],
];

const CONTENT = [...new Set(ALTERED.map(([table]) => table))]
  .map((table) => `SELECT string_agg(t::text, ',' ORDER BY t::text) FROM openkv.${table} AS t`)
  .join(" UNION ALL ");

const CALLS = [
  (kv) => kv.getMany([["a"], ["n"]]),
  (kv) => kv.list({ prefix: [] }).next(),
  (kv) => kv.queue("jobs").stats(),
  (kv) => kv.queue("jobs").dead.list(),
  (kv) => changed(kv, { since: "00000000000000000001" }),
  (kv) => kv.set(["a"], 2, { expireIn: "1h" }),
  (kv) => kv.atomic().sum(["n"], 1n).commit(),
  (kv) =>
    kv
      .atomic()
      .check({ key: ["none"], versionstamp: null })
      .delete(["a"])
      .commit(),
  (kv) => kv.queue("jobs").enqueue("more", { deduplicationKey: "same" }),
  (kv) => kv.queue("jobs").receive(),
];

let server;
let template;

before(async () => {
  server = await sharedPostgres();
  template = await server.newDatabase();
  const kv = await openKv(server.url({ database: template, kv: "shop" }));
  await kv.set(["a"], 1, { expireIn: "1h" });
  await kv.atomic().sum(["n"], 1n).commit();
  // From now on changes are logged.
  await Promise.all([changed(kv), kv.set(["b"], 1)]);
  await kv.queue("jobs").enqueue("dies", { backoffSchedule: [] });
  await (await kv.queue("jobs").receive()).nack();
  await kv.queue("jobs").enqueue("waits");
  await kv.close();
});
after(() => server.sql(`DROP DATABASE ${template} WITH (FORCE)`));

async function changed(kv, options) {
  const reader = kv.watch({ prefix: [] }, options).getReader();
  await reader.read();
  await reader.cancel();
}

for (const [table, column, type] of ALTERED) {
  test(`the column ${column} of ${table} is of the type ${type}`, async () => {
    const database = `${template}_${table}_${column}`;
    await server.sql(`CREATE DATABASE ${database} TEMPLATE ${template}`);
    const alter = `ALTER ${column} TYPE ${type} USING ${column}::${type}`;
    await server.sql(`ALTER TABLE openkv.${table} ${alter}`, { database });
    const content = () => server.sql(CONTENT, { database });
    const kv = await openKv(server.url({ database, kv: "shop" }));
    let refused = 0;
    let known = await content();
    for (const call of CALLS) {
      const error = await call(kv).then(
        () => undefined,
        (error) => error,
      );
      if (error === undefined) {
        known = await content();
      } else {
        assert.equal(error.code, "CORRUPT", `${call}: ${error}`);
        assert.equal(await content(), known, `${call}`);
        refused++;
      }
    }
    assert.notEqual(refused, 0, "the column counts");
    await kv.close();
    await server.sql(`DROP DATABASE ${database} WITH (FORCE)`);
  });
}
