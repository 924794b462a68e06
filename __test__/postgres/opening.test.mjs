// Duty: servers, rights and tables with which a database cannot be opened, or only for reading. What
// is refused stays untouched.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import process from "node:process";
import { after, before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { openkv, outcomeOf } from "../cli/running.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { argumentsFor } from "../kit/program.mjs";

const ENTRY = new URL("../../index.mjs", import.meta.url).href;

/** What the database holds: tables with their columns, and the number of rows of each. */
const CONTENTS = `
  SELECT table_schema, table_name, string_agg(column_name, ',' ORDER BY ordinal_position),
    (xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM %I.%I', table_schema,
      table_name), false, true, '')))[1]
  FROM information_schema.columns
  WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
  GROUP BY table_schema, table_name ORDER BY 1, 2`;
const INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'openkv' ORDER BY 1";

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
  await server.standbyCatchesUp();
  await assertRefused(there, "DENIED", /standby/);
  const reading = await openKv(there, { readonly: true });
  assert.equal((await reading.get(["a"])).value, 1);
  await assert.rejects(reading.set(["a"], 2), { code: "DENIED" });
  await reading.close();
  await kv.close();
});

test("a longer key than PostgreSQL's indexes take is refused when the database is opened", async () => {
  const url = server.url({ kv: "long keys" });
  const kv = await openKv(url, { limits: { keyBytesMax: 2600 }, history: "1d" });
  // A byte 0 is two bytes of a key, and a key that can be compressed takes less room.
  const key = [randomBytes(2597).map((byte) => byte || 1)];
  await kv.set(key, 1, { expireIn: "1h" });
  await kv.set(key, 2);
  const kept = [];
  for await (const version of kv.history(key)) kept.push(version);
  assert.equal(kept.length, 2);
  await kv.close();
  const wider = openKv(url, { limits: { keyBytesMax: 2601 } });
  await assert.rejects(wider, { code: "INVALID", message: /at most 2600 .*received 2601/ });
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

/** What makes tables those of an older format. */
const TO_FORMAT_5 =
  "ALTER TABLE openkv.replication DROP COLUMN removed; " +
  "ALTER TABLE openkv.segments DROP COLUMN removes; " +
  "ALTER TABLE openkv.databases ADD COLUMN logs bool NOT NULL DEFAULT false, " +
  "ADD COLUMN feed_complete int8 NOT NULL DEFAULT 0, ADD COLUMN feed_removed int8 NOT NULL DEFAULT 0, " +
  "ADD COLUMN feed_set_rows int8 NOT NULL DEFAULT 0, ADD COLUMN feed_set_bytes int8 NOT NULL DEFAULT 0, " +
  "ADD COLUMN feed_removal_rows int8 NOT NULL DEFAULT 0, " +
  "ADD COLUMN feed_removal_bytes int8 NOT NULL DEFAULT 0; " +
  "CREATE TABLE openkv.changes (db int8 NOT NULL, version int8 NOT NULL, seq int4 NOT NULL, " +
  "at_ms int8 NOT NULL, k bytea NOT NULL, encoding int2, v bytea, expires_ms int8, " +
  "PRIMARY KEY (db, version, seq)); " +
  "DROP TABLE openkv.value_indexes, openkv.value_entries; " +
  "ALTER TABLE openkv.databases DROP COLUMN indexes; " +
  "ALTER TABLE openkv.databases RENAME COLUMN log_bits TO log_parts; " +
  "DROP INDEX openkv.messages_locked; " +
  "CREATE INDEX messages_locked ON openkv.messages (db, queue, locked, lock_end_ms, id)";
const TO_FORMAT_4 =
  `${TO_FORMAT_5}; ` +
  "ALTER TABLE openkv.databases ADD COLUMN keeps int2 NOT NULL DEFAULT 0; " +
  "UPDATE openkv.databases SET keeps = (log_parts & 1) + (log_parts & 2) / 2; " +
  "ALTER TABLE openkv.databases DROP COLUMN log_parts";
const TO_FORMAT_3 =
  `${TO_FORMAT_4}; ` +
  "DROP TABLE openkv.past; ALTER TABLE openkv.replication DROP COLUMN history_ms, " +
  "DROP COLUMN history_version, DROP COLUMN history_at_ms; " +
  "ALTER TABLE openkv.databases ADD COLUMN replicates bool NOT NULL DEFAULT false; " +
  "UPDATE openkv.databases SET replicates = keeps > 0; " +
  "ALTER TABLE openkv.databases DROP COLUMN keeps";
const TO_FORMAT_2 =
  `${TO_FORMAT_3}; DROP TABLE openkv.replication, openkv.segments, openkv.indexes; ` +
  "ALTER TABLE openkv.databases DROP COLUMN replicates";
const OLDER_FORMATS = {
  1: `${TO_FORMAT_2}; ALTER TABLE openkv.log DROP COLUMN writes`,
  2: TO_FORMAT_2,
  3: TO_FORMAT_3,
  4: TO_FORMAT_4,
  5: TO_FORMAT_5,
};

for (const [format, change] of Object.entries(OLDER_FORMATS)) {
  test(`tables of the format ${format} are changed by their owner, and by nobody else`, () =>
    changesTables(format, change));
}

async function changesTables(format, change) {
  const database = await server.newDatabase();
  const sql = (text) => server.sql(text, { database });
  const url = (user) => server.url({ database, user, kv: "shop" });
  await (await openKv(url())).close();
  const contents = await sql(CONTENTS);
  const indexes = await sql(INDEXES);
  await sql(`${change}; UPDATE openkv.format SET version = ${format}`);
  await sql("GRANT USAGE ON SCHEMA openkv TO reader");
  await sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openkv TO reader");
  const older = await sql(CONTENTS);
  await assertRefused(url("reader"), "DENIED", /older format/);
  await assertRefused(url(), "UNSUPPORTED", /older format/, { readonly: true });
  assert.equal(await sql(CONTENTS), older);
  const both = await Promise.all([openKv(url()), openKv(url())]);
  assert.equal((await both[0].set(["a"], 1)).ok, true);
  await Promise.all(both.map((kv) => kv.close()));
  const columns = (text) => text.split("\n").map((line) => line.slice(0, line.lastIndexOf("|")));
  assert.deepEqual(columns(await sql(CONTENTS)), columns(contents));
  assert.equal(await sql(INDEXES), indexes);
  const reading = await openKv(url("reader"), { readonly: true });
  assert.equal((await reading.get(["a"])).value, 1);
  await reading.close();
}

test("a log and a history of the format 4 go on", async () => {
  const database = await server.newDatabase();
  const sql = (text) => server.sql(text, { database });
  const url = (kv) => server.url({ database, kv });
  const options = { logged: { log: true }, past: { history: "1h" }, plain: {} };
  const moments = {};
  for (const [name, option] of Object.entries(options)) {
    const kv = await openKv(url(name), option);
    moments[name] = (await kv.set(["a"], 1)).versionstamp;
    await kv.set(["a"], 2);
    await kv.close();
  }
  // A log counts 64 bytes for each segment since the format 6.
  const counted = (bytes) =>
    `SELECT (sum(octet_length(changes) + ${bytes}))::int8 FROM openkv.segments AS s WHERE s.db = r.db`;
  await sql(`UPDATE openkv.replication AS r SET bytes = (${counted(0)})`);
  await sql(`${TO_FORMAT_4}; UPDATE openkv.format SET version = 4`);
  const past = await openKv(url("past"));
  const then = await past.at(moments.past);
  assert.equal((await then.get(["a"])).value, 1);
  await then.close();
  await past.close();
  assert.equal(
    await sql("SELECT convert_from(name, 'UTF8'), log_bits FROM openkv.databases ORDER BY 1"),
    "logged|1\npast|3\nplain|0",
  );
  const differs = `bytes IS DISTINCT FROM (${counted(64)})`;
  assert.equal(await sql(`SELECT count(*) FROM openkv.replication AS r WHERE ${differs}`), "0");
});

test("a feed of the format 5 goes on behind the last deletion, and has a gap before it", async () => {
  const database = await server.newDatabase();
  const sql = (text) => server.sql(text, { database });
  const url = (kv) => server.url({ database, kv });
  const places = {};
  for (const [name, option] of Object.entries({ fed: {}, logged: { log: true }, none: {} })) {
    const kv = await openKv(url(name), option);
    const { versionstamp: first } = await kv.set(["a"], 1);
    await kv.delete(["a"]);
    const { versionstamp: behind } = await kv.set(["b"], 2);
    const { versionstamp: last } = await kv.set(["b"], 3);
    places[name] = { first, behind, last };
    await kv.close();
  }
  const fed = "convert_from(name, 'UTF8') <> 'none'";
  await sql(
    `${TO_FORMAT_5}; UPDATE openkv.databases SET logs = ${fed}; UPDATE openkv.format SET version = 5`,
  );
  for (const name of ["fed", "logged"]) {
    const kv = await openKv(url(name));
    const { first, behind, last } = places[name];
    const next = (since) => readOnce(kv.watch({ prefix: [] }, { since }));
    if (name === "fed") {
      await assert.rejects(next(first), { code: "FEED_GAP" });
    } else {
      // Its log has what feeds would have.
      assert.deepEqual(
        (await next(first)).changes.map(({ type }) => type),
        ["delete", "set", "set"],
      );
    }
    const { changes } = await next(behind);
    assert.deepEqual(
      changes.map(({ key, value }) => [key, value]),
      [[["b"], 3]],
    );
    const waiting = next(last);
    const { versionstamp } = await kv.set(["b"], 4);
    assert.equal((await waiting).versionstamp, versionstamp);
    await kv.close();
  }
  assert.equal(
    await sql("SELECT convert_from(name, 'UTF8'), log_bits FROM openkv.databases ORDER BY 1"),
    "fed|1\nlogged|1\nnone|0",
  );
});

/** The first batch of a stream, which then ends. */
async function readOnce(stream) {
  const reader = stream.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return value;
}

test("without the right to create tables it is DENIED", async () => {
  const database = await server.newDatabase();
  await assertRefused(
    server.url({ database, user: "reader" }),
    "DENIED",
    /right.*openkv cluster schema/,
  );
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

test("a name that is not there is not created for reading, and the error has those that are", async () => {
  const database = await server.newDatabase();
  const url = (kv) => server.url({ database, kv });
  await assertRefused(url("shop"), "UNAVAILABLE", /no openkv database/, { readonly: true });
  assert.equal(await server.sql(CONTENTS, { database }), "");
  await (await openKv(url("shop"))).close();
  const contents = await server.sql(CONTENTS, { database });
  await assertRefused(url("shpo"), "UNAVAILABLE", /"shpo".*: shop$/, { readonly: true });
  for (const args of [
    ["list"],
    ["get", "a"],
    ["delete", "a"],
    ["export", "-"],
    ["copy", url("shpo"), ":memory:"],
  ]) {
    const { code, err } = await openkv(...args, { env: { OPENKV_URL: url("shpo") } });
    assert.equal(code, 1, args[0]);
    assert.match(err, /"shpo".*: shop$/m);
  }
  assert.equal(await server.sql(CONTENTS, { database }), contents);
});

test("a user without the right to create tables uses those of an administrator", async () => {
  const database = await server.newDatabase();
  const { code, out } = await openkv("cluster", "schema");
  assert.equal(code, 0);
  await server.sql(out, { database });
  await server.sql("CREATE ROLE customer LOGIN");
  const rights = [...out.matchAll(/^-- (GRANT .*)…;$/gm)].map(([, grant]) => `${grant} customer;`);
  await server.sql(rights.join(" "), { database });
  const kv = await openKv(server.url({ database, user: "customer" }));
  await kv.atomic().set(["a"], 1, { expireIn: 60_000 }).sum(["n"], 1n).commit();
  await kv.queue("jobs").enqueue("work");
  assert.equal(await (await kv.queue("jobs").receive()).ack(), true);
  await kv.delete(["a"]);
  assert.equal((await kv.get(["n"])).value.value, 1n);
  await kv.close();
});

test("settings with which a crash loses commits are warned of", async () => {
  const warnings = (where) => {
    const program = `import { openKv } from "${ENTRY}";
      const kv = await openKv(${JSON.stringify(where.url())});
      await kv.set(["a"], 1);
      await kv.close();`;
    const env = { ...process.env, OPENKV_LOG: "warn" };
    return outcomeOf(spawn(process.execPath, argumentsFor(program), { env }));
  };
  const plain = await startPostgres({ settings: { fsync: "off" } });
  const { code, err } = await warnings(plain);
  plain.close();
  assert.equal(code, 0, err);
  assert.match(err, /WARN.*fsync = off/);
  assert.match(err, /WARN.*no synchronous standby/);
  const safe = await startPostgres({ settings: { fsync: "on" }, standby: true });
  const told = await warnings(safe);
  safe.close();
  assert.deepEqual([told.code, told.err], [0, ""]);
});
