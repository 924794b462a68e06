// Duty: a replica has the value indexes of what it follows, and reads by them.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { KvUniqueError, openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { linkTo } from "./link.mjs";

const accessToken = "an-access-token";
const fresh = freshPaths("replica-value-indexes");
const USERS = { prefix: ["users"] };
const CITIES = ["Oslo", "London", "Paris"];
const byCity = { type: "value", ...USERS, name: "byCity", on: ["city", "age"] };
const byMail = { type: "value", ...USERS, name: "byMail", on: "mail", unique: true };

/** Meets one user. */
const BY_MAIL = { mail: "1@example.com" };

const user = (n) => ({ city: CITIES[n % 3], age: (n * 7) % 40, mail: `${n}@example.com` });

async function fill(kv, count = 60) {
  const batch = kv.atomic();
  for (let n = 0; n < count; n++) batch.set(["users", n], user(n));
  await batch.commit();
}

/** A server with users, a link to it, and a handle on the server itself. */
async function started() {
  const server = await startServer({ path: fresh(), accessToken });
  const link = await linkTo(server.url);
  const kv = await open(server.url, { accessToken });
  await fill(kv);
  return { server, link, kv };
}

async function follow(url, options) {
  const kv = await open(url, {
    accessToken,
    timeout: 60_000,
    replica: ":memory:",
    consistency: "eventual",
    ...options,
  });
  await kv.replica.ready();
  return kv;
}

const create = async (kv, ...indexes) => {
  for (const index of indexes) await (await kv.createIndex(index)).ready();
};

/** Waits until the replica reads an index; null: none. With `orderBy` the server might answer in its place. */
const reads = (near, options, index) =>
  until(
    async () => ((await near.explain(USERS, options)).branches[0]?.index ?? null) === index,
    `the index ${index}`,
  );

const listed = (kv, options) => kv.list(USERS, options).toArray();

const LISTS = [
  { where: { city: "London" } },
  { where: { city: { $in: ["Oslo", "Paris"] }, age: { $gte: 10 } }, reverse: true },
  { where: { mail: "7@example.com" } },
  { where: { city: "Oslo" }, orderBy: "age" },
  { where: { city: "Oslo" }, orderBy: { age: "desc" }, limit: 3 },
  { orderBy: { city: "asc", age: "asc" }, batchSize: 7 },
  { orderBy: "mail", reverse: true },
  { orderBy: "age", sort: true },
];

/** The replica lists what the followed database does. */
async function agrees(near, kv) {
  for (const options of LISTS) {
    const strong = { ...options, consistency: "strong" };
    assert.deepEqual(
      await listed(near, options),
      await listed(kv, strong),
      JSON.stringify(options),
    );
    const { where } = options;
    if (where === undefined) continue;
    assert.equal(await near.count(USERS, { where }), await kv.count(USERS, { where }));
  }
}

test("a replica gets the value indexes of its server, keeps them, and drops them", async () => {
  const { link, kv } = await started();
  const near = await follow(link.url);
  await create(kv, byCity, byMail);
  // Until the replica has them, the server lists in their order.
  assert.equal((await listed(near, { orderBy: "mail" })).length, 60);
  await reads(near, { where: { city: "London" } }, "byCity");
  await reads(near, { where: BY_MAIL }, "byMail");
  await agrees(near, kv);
  await kv.deleteMany(USERS, { where: { city: "Oslo", age: { $lt: 20 } } });
  await kv.atomic().set(["users", 7], user(8)).set(["users", 8], user(7)).commit();
  const { versionstamp } = await kv.set(["users", "new"], { ...user(1), mail: "new" });
  await near.replica.reached(versionstamp);
  await agrees(near, kv);
  // Entries of before the replica, which it was sent in a copy.
  const other = await follow(link.url);
  await reads(other, { where: BY_MAIL }, "byMail");
  await link.refuse();
  assert.equal((await listed(near, { orderBy: "mail", limit: 2 })).length, 2);
  const found = await near.explain(USERS, { where: { mail: "new" } });
  assert.deepEqual([found.method, found.visited, found.returned], ["index", 1, 1]);
  const page = await near.paginate(USERS, { orderBy: "mail", limit: 5 });
  assert.equal(page.entries.length, 5);
  await link.accept();
  await kv.dropIndex("byCity");
  await reads(near, { where: { city: "London" } }, null);
});

test("a list goes on at the server where the replica has ended it, and the reverse", async () => {
  const { link, kv } = await started();
  await create(kv, byCity, byMail);
  const near = await follow(link.url);
  await reads(near, { where: BY_MAIL }, "byMail");
  await reads(near, { where: { city: "Oslo" } }, "byCity");
  for (const options of [{ orderBy: "mail" }, { where: { city: "Oslo" }, orderBy: "age" }]) {
    const whole = await listed(kv, options);
    const pages = [];
    let cursor;
    for (const consistency of ["eventual", "strong", "eventual", "strong"]) {
      const page = near.list(USERS, { ...options, consistency, limit: 4, cursor });
      pages.push(...(await page.toArray()));
      cursor = page.cursor;
    }
    assert.deepEqual(pages, whole.slice(0, 16));
  }
});

test("a name may change from a value index to a full-text index, and back", async () => {
  const { link, kv } = await started();
  const near = await follow(link.url);
  const name = "one";
  await create(kv, { ...byCity, name });
  await reads(near, { where: { city: "London" } }, name);
  await kv.dropIndex(name);
  await create(kv, { name, ...USERS, fields: ["city"] });
  const searches = async () => (await near.search(["users"], "London").catch(() => null)) !== null;
  await until(searches, "the full-text index");
  await reads(near, { where: { city: "London" } }, null);
  await kv.dropIndex(name);
  await create(kv, { ...byCity, name });
  await reads(near, { where: { city: "London" } }, name);
  assert.equal((await near.replica.status()).error, null);
});

test("a promoted replica has the unique indexes, and checks them again", async () => {
  const { link, kv } = await started();
  await create(kv, byMail);
  const replica = fresh();
  const near = await follow(link.url, { replica });
  await reads(near, { where: BY_MAIL }, "byMail");
  near.close();
  assert.equal((await openkv("promote", replica)).code, 0);
  const own = await openKv(replica);
  await reads(own, { where: { mail: "1@example.com" } }, "byMail");
  await assert.rejects(own.set(["users", "x"], user(1)), KvUniqueError);
  own.close();
});

test("a read server lists by value indexes", async () => {
  const { server, kv } = await started();
  await create(kv, byMail);
  const reader = await startServer({
    path: fresh(),
    replicaOf: server.url,
    replicaToken: accessToken,
  });
  const ask = async (path, body) => {
    const answer = await fetch(`${reader.url}/api/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return answer.ok ? await answer.json() : null;
  };
  const ordered = { prefix: ["users"], orderBy: { mail: "desc" }, limit: 2 };
  await until(async () => (await ask("keys/explain", ordered))?.method === "index", "the index");
  const { entries } = await ask("keys/list", ordered);
  const first = (await listed(kv, { orderBy: { mail: "desc" }, limit: 2 })).map(
    ({ value }) => value,
  );
  assert.deepEqual(
    entries.map(({ value }) => value),
    first,
  );
});

test("a replica of a database on PostgreSQL has its value indexes", async () => {
  const url = (await sharedPostgres()).url();
  const kv = await open(url);
  await fill(kv);
  const near = await follow(url, { accessToken: undefined, timeout: undefined });
  await create(near, byCity, byMail);
  await reads(near, { where: { city: "London" } }, "byCity");
  await reads(near, { where: BY_MAIL }, "byMail");
  await agrees(near, kv);
  const { versionstamp } = await kv.set(["users", randomUUID()], { ...user(2), mail: "new" });
  await near.replica.reached(versionstamp);
  await agrees(near, kv);
});
