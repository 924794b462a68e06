// Duty: servers in front of one PostgreSQL: they share databases and tokens, one of them leads each
// database, and another takes over.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { open } from "../kit/server.mjs";
import { freePort } from "../kit/port.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";
import { kill, spawnServer } from "../server/children.mjs";

const adminToken = "the-admin-token-of-all";
const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

const children = [];
after(() => Promise.all(children.filter(({ gone }) => !gone).map(kill)));

/** Servers in front of a PostgreSQL database of their own. */
async function cluster() {
  const postgres = await sharedPostgres();
  const database = await postgres.newDatabase();
  const engine = `postgres://postgres@127.0.0.1:${postgres.port}/${database}`;
  return { engine, postgres, database, sql: (text) => postgres.sql(text, { database }) };
}

async function server({ engine }, options) {
  const port = await freePort();
  const advertise = `http://127.0.0.1:${port}`;
  const own = { engine, advertise, listen: `127.0.0.1:${port}`, adminToken };
  const started = await spawnServer({ ...own, ...options });
  children.push(started);
  return started;
}

/** Ends it in order. */
async function close(server) {
  server.gone = true;
  const exited = once(server.child, "exit");
  server.child.stdin.end("close\n");
  await exited;
}

async function admin({ url }, method, path, body) {
  const answer = await fetch(`${url}/v1/admin/databases${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}` },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, text, ...(text.startsWith("{") && JSON.parse(text)) };
}

/** Creates a database at one server and waits until the others have it. */
async function create(name, ...servers) {
  const { token } = await admin(servers[0], "POST", "", { name });
  for (const { url } of servers) {
    await until(async () => (await metadata(url, name, token)).status === 200, `${name} at ${url}`);
  }
  return token;
}

async function metadata(url, name, token) {
  const answer = await fetch(`${url}/${name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ supportedVersions: [2, 3] }),
  });
  return { status: answer.status, ...(answer.ok && (await answer.json())) };
}

const endpointsOf = async (...of) =>
  (await metadata(...of)).endpoints.map(({ url, consistency }) => `${consistency} ${url}`);

test("servers share databases and tokens, and one leads", async () => {
  const place = await cluster();
  const [one, two] = [await server(place), await server(place)];
  const accessToken = await create("shop", one, two);
  const atTwo = await open(`${two.url}/shop`, { accessToken });
  await atTwo.set(["a"], 1);
  // Each names the same leader, and itself for reads that may be older.
  const told = await Promise.all(
    [one, two].map(({ url }) => endpointsOf(url, "shop", accessToken)),
  );
  const leads = told.findIndex((endpoints) => endpoints.length === 1);
  assert.deepEqual(told[leads], ["strong ./v2"]);
  const expected = [`strong ${[one, two][leads].url}/v2`, "eventual ./v2"];
  assert.deepEqual(told[1 - leads], expected);
  const atOne = await open(`${one.url}/shop`, { accessToken });
  assert.equal((await atOne.get(["a"])).value, 1);
  await Promise.all(Array.from({ length: 50 }, () => atOne.atomic().sum(["n"], 1n).commit()));
  assert.equal((await atTwo.get(["n"])).value.value, 50n);
  const second = await admin(two, "POST", "/shop/tokens", { rights: "read" });
  const reads = async ({ url }) => (await metadata(url, "shop", second.token)).status;
  await until(async () => (await reads(one)) === 200, "the other server knows the token");
  assert.equal((await admin(two, "DELETE", `/shop/tokens/${second.id}`)).status, 204);
  await until(async () => (await reads(one)) === 401, "the other server has revoked it");
});

test("clients that know another leader are sent to the present one", async () => {
  const place = await cluster();
  const [one, two] = [await server(place), await server(place)];
  const accessToken = await create("shop", one, two);
  // Both get their metadata while nobody leads.
  const [atOne, atTwo] = [
    await open(`${one.url}/shop`, { accessToken }),
    await open(`${two.url}/shop`, { accessToken }),
  ];
  await atOne.set(["first"], 1);
  await atTwo.set(["second"], 2);
  const taken = [];
  const listening = atTwo.listenQueue((message) => taken.push(message));
  await atOne.enqueue("hello");
  await until(() => taken.length === 1, "the message is there");
  await close(one);
  // It has handed over, so that nobody waits for its lease.
  await atTwo.set(["third"], 3);
  assert.deepEqual(await endpointsOf(two.url, "shop", accessToken), ["strong ./v2"]);
  atTwo.close();
  await listening;
});

test("another server leads when the leader was killed", async () => {
  const place = await cluster();
  const [one, two] = [await server(place), await server(place)];
  const accessToken = await create("shop", one, two);
  const before = await open(`${one.url}/shop`, { accessToken });
  await before.set(["a"], 1);
  one.gone = true;
  await kill(one);
  const later = async () => {
    const kv = await open(`${two.url}/shop`, { accessToken });
    return (await kv.set(["b"], 2)).ok;
  };
  await until(() => later().catch(() => false), "the other server takes writes");
  const kv = await open(`${two.url}/shop`, { accessToken });
  assert.deepEqual(
    (await kv.getMany([["a"], ["b"]])).map(({ value }) => value),
    [1, 2],
  );
});

test("a leader that stops beyond its lease follows the next one", { skip }, async () => {
  const place = await cluster();
  const [one, two] = [await server(place), await server(place)];
  const accessToken = await create("shop", one, two);
  const atOne = await open(`${one.url}/shop`, { accessToken });
  await atOne.set(["n"], 1n);
  one.child.kill("SIGSTOP");
  const takesOver = async () => {
    const kv = await open(`${two.url}/shop`, { accessToken, timeout: 1000 });
    return (await kv.set(["n"], 2n)).ok;
  };
  await until(() => takesOver().catch(() => false), "the other server takes writes");
  one.child.kill("SIGCONT");
  const check = await atOne.get(["n"]);
  assert.equal(check.value, 2n);
  assert.equal((await atOne.atomic().check(check).set(["n"], 3n).commit()).ok, true);
  const kv = await open(`${two.url}/shop`, { accessToken });
  assert.equal((await kv.get(["n"])).value, 3n);
});

test("changes at several servers at once are all kept", async () => {
  const place = await cluster();
  const servers = [await server(place), await server(place)];
  const names = Array.from({ length: 12 }, (_, i) => `db${i}`);
  const made = names.map((name, i) => admin(servers[i % 2], "POST", "", { name }));
  assert.ok((await Promise.all(made)).every(({ status }) => status === 201));
  const again = await admin(servers[1], "POST", "", { name: "db0" });
  assert.equal(again.status, 409);
  for (const one of servers) {
    const listed = JSON.parse((await admin(one, "GET", "")).text).map(({ name }) => name);
    assert.deepEqual(listed.sort(), [...names].sort());
  }
});

test("a dropped database leaves nothing, and its name is free", async () => {
  const place = await cluster();
  const [one, two] = [await server(place), await server(place)];
  const accessToken = await create("shop", one, two);
  const kv = await open(`${two.url}/shop`, { accessToken });
  await kv.set(["a"], "x".repeat(1000));
  await kv.enqueue("message", { delay: 60_000 });
  assert.equal((await admin(one, "DELETE", "/shop")).status, 204);
  const rows = ["entries", "log", "messages"].map((table) => `SELECT 1 FROM openkv.${table}`);
  assert.equal(await place.sql(rows.join(" UNION ALL ")), "");
  await assert.rejects(kv.set(["a"], 1), { code: "DENIED" });
  const again = await create("shop", two, one);
  const fresh = await open(`${one.url}/shop`, { accessToken: again });
  assert.equal((await fresh.get(["a"])).value, null);
});

test("what a server of an engine cannot have is refused by name", async () => {
  const place = await cluster();
  const one = await server(place);
  const refused = await admin(one, "POST", "", { name: "shop", quotas: { bytes: 1 } });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /quotas\.bytes/);
  assert.equal((await admin(one, "GET", "/shop")).status, 404);
});
