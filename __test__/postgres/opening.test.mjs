// Duty: servers, rights and tables with which a database cannot be opened, or only for reading. What
// is refused stays untouched.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { startPostgres } from "../kit/postgres.mjs";

/** What the database holds: tables with their columns, and the number of rows of each. */
const CONTENTS = `
  SELECT table_schema, table_name, string_agg(column_name, ',' ORDER BY ordinal_position),
    (xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM %I.%I', table_schema,
      table_name), false, true, '')))[1]
  FROM information_schema.columns
  WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
  GROUP BY table_schema, table_name ORDER BY 1, 2`;

let server;

before(async () => {
  server = await startPostgres({ standby: true });
  await server.sql("CREATE ROLE reader LOGIN");
});
after(() => server.close());

async function assertRefused(url, code, words, options) {
  await assert.rejects(openKv(url, options), (error) => {
    assert.equal(error.code, code, `${error}`);
    assert.match(error.message, words);
    return true;
  });
}

test("a standby is DENIED, but opens for reading", async () => {
  const url = server.url({ kv: "shop" });
  const kv = await openKv(url);
  await kv.set(["a"], 1);
  const there = server.standby.url({ kv: "shop" });
  await assertRefused(there, "DENIED", /standby/);
  const reading = await openKv(there, { readonly: true });
  assert.equal((await reading.get(["a"])).value, 1);
  await assert.rejects(reading.set(["a"], 2), { code: "DENIED" });
  await reading.close();
  await kv.close();
});

test("tables of another program in the schema are CORRUPT", async () => {
  const database = await server.newDatabase();
  const sql = (text) => server.sql(text, { database });
  await sql(
    "CREATE SCHEMA openkv; CREATE TABLE openkv.entries (id int); INSERT INTO openkv.entries VALUES (1)",
  );
  const contents = await sql(CONTENTS);
  await assertRefused(server.url({ database }), "CORRUPT", /schema "openkv"/);
  assert.equal(await sql(CONTENTS), contents);
});

test("tables of a newer version are UNSUPPORTED", async () => {
  const database = await server.newDatabase();
  const sql = (text) => server.sql(text, { database });
  const kv = await openKv(server.url({ database }));
  await kv.set(["a"], 1);
  await kv.close();
  await sql("UPDATE openkv.format SET version = version + 1");
  const contents = await sql(CONTENTS);
  await assertRefused(server.url({ database }), "UNSUPPORTED", /newer/);
  assert.equal(await sql(CONTENTS), contents);
});

test("without the right to create tables it is DENIED", async () => {
  const database = await server.newDatabase();
  await assertRefused(server.url({ database, user: "reader" }), "DENIED", /right/);
  assert.equal(await server.sql(CONTENTS, { database }), "");
});

test("a PostgreSQL database that is not there is UNAVAILABLE", async () => {
  await assertRefused(server.url({ database: "nowhere" }), "UNAVAILABLE", /nowhere/);
});

test("a server that is not there is UNAVAILABLE", async () => {
  const gone = await startPostgres();
  const url = gone.url();
  gone.close();
  await assertRefused(url, "UNAVAILABLE", /PostgreSQL/);
});

test("with fsync off and without a standby it opens", async () => {
  const plain = await startPostgres({ settings: { fsync: "off" } });
  const kv = await openKv(plain.url());
  await kv.set(["a"], 1);
  assert.equal((await kv.get(["a"])).value, 1);
  await kv.close();
  plain.close();
});
