// Duty: read servers of a whole folder, in processes of their own: which databases they follow and when, whose
// tokens they take, what becomes of a dropped database, and what a dead primary leaves.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { openKv, serve } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { freshPaths } from "../kit/folder.mjs";
import { freePort } from "../kit/port.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { kill, spawnServer } from "../server/children.mjs";
import { all } from "./entries.mjs";

const adminToken = "an-admin-token";
const fresh = freshPaths("read-folder");
const eventual = { consistency: "eventual" };
const bearer = (token) => ({ authorization: `Bearer ${token}` });
const children = new Set();

after(() => children.forEach(({ child }) => child.kill("SIGKILL")));

async function spawn(options) {
  const server = await spawnServer(options);
  children.add(server);
  return server;
}

/** A server of a folder in a process of its own, which can be killed and started again. */
async function started() {
  const options = { path: `${fresh()}/`, listen: `127.0.0.1:${await freePort()}`, adminToken };
  let server = await spawn(options);
  const admin = async (method, path, body) => {
    const answer = await fetch(`${server.url}/v1/admin/databases${path}`, {
      method,
      headers: bearer(adminToken),
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, text);
    return text && JSON.parse(text);
  };
  return {
    url: server.url,
    admin,
    kill: () => kill(server),
    start: async () => (server = await spawn(options)),
    /** Creates a database with one entry; answers its admin token. */
    async create(name) {
      const { token } = await admin("POST", "", { name });
      const kv = await open(`${server.url}/${name}`, { accessToken: token });
      await kv.set(["name"], name);
      return { token, kv };
    },
  };
}

const near = (of, options) => ({
  path: `${fresh()}/`,
  listen: "127.0.0.1:0",
  replicaOf: of.url,
  replicaToken: adminToken,
  ...options,
});

const get = (server, path, token) => fetch(server.url + path, { headers: bearer(token) });

/** Waits until a read server has the value. */
const has = (server, name, key, value, token) =>
  until(async () => {
    const answer = await get(server, `/${name}/api/keys/${key}`, token);
    return answer.ok && (await answer.json()).value === value;
  }, `${value} of ${name}`);

test("each database of the primary is read under its name, once it was asked for", async () => {
  const primary = await started();
  const [shop, blog] = [await primary.create("shop"), await primary.create("blog")];
  const options = near(primary);
  const server = await spawn(options);
  assert.deepEqual(readdirSync(options.path), ["openkv-server.lock"]);
  await has(server, "shop", "name", "shop", shop.token);
  const files = () => readdirSync(options.path).filter((file) => file.endsWith(".sqlite3"));
  assert.match(files().join(), /^shop\.[0-9a-f-]{36}\.sqlite3$/);
  const client = await open(`${server.url}/blog`, { accessToken: blog.token });
  assert.equal((await client.set(["written"], 1)).ok, true);
  await has(server, "blog", "written", 1, blog.token);
  assert.deepEqual(await all(client, eventual), await all(blog.kv));
  assert.equal(files().length, 2);
  // A replica follows the read server.
  const replica = await open(`${server.url}/shop`, {
    accessToken: shop.token,
    replica: ":memory:",
  });
  await replica.replica.ready();
  await replica.replica.reached((await replica.set(["through"], 1)).versionstamp);
  // A database that is made later is found too.
  const later = await primary.create("later");
  await has(server, "later", "name", "later", later.token);
  const write = await fetch(`${server.url}/shop/api/keys/a`, {
    method: "PUT",
    headers: { ...bearer(shop.token), "content-type": "application/json" },
    body: "1",
  });
  assert.equal(write.status, 421);
  assert.equal((await write.json()).leader, `${primary.url}/shop`);
  const refused = await get(server, "/v1/admin/databases", adminToken);
  assert.equal(refused.status, 421);
  assert.ok((await refused.text()).includes(primary.url));
});

test("tokens are checked at the primary, and no replica is opened for a wrong one", async () => {
  const primary = await started();
  const [shop, blog] = [await primary.create("shop"), await primary.create("blog")];
  const options = near(primary);
  const server = await spawn(options);
  for (const [name, token] of [
    ["shop", "a-wrong-token"],
    ["shop", blog.token],
    ["shop", "okd_no-token-of-the-data-path"],
    ["none", shop.token],
    ["v2", shop.token],
    ["..%2f", shop.token],
  ]) {
    assert.equal(
      (await get(server, `/${name}/api/keys/name`, token)).status,
      401,
      `${name} ${token}`,
    );
  }
  await assert.rejects(open(`${server.url}/shop`, { accessToken: blog.token }), { code: "DENIED" });
  assert.deepEqual(readdirSync(options.path), ["openkv-server.lock"]);
  const reader = (await primary.admin("POST", "/shop/tokens", { rights: "read" })).token;
  await has(server, "shop", "name", "shop", reader);
  // The admin token of the primary has the rights of an admin's of each database.
  await has(server, "shop", "name", "shop", adminToken);
});

test("a killed primary leaves what was copied, also for one that it had not opened since", async () => {
  const primary = await started();
  const [shop, blog] = [await primary.create("shop"), await primary.create("blog")];
  const options = near(primary);
  const server = await spawn(options);
  for (const [name, { token }] of [
    ["shop", shop],
    ["blog", blog],
  ])
    await has(server, name, "name", name, token);
  const client = await open(`${server.url}/shop`, { accessToken: shop.token, timeout: 2000 });
  await client.get(["name"], eventual);
  await primary.kill();
  assert.equal((await client.get(["name"], eventual)).value, "shop");
  assert.equal((await get(server, "/blog/api/keys/name", blog.token)).status, 200);
  await assert.rejects(client.set(["name"], "no"), { code: "UNAVAILABLE" });
  assert.equal((await get(server, "/shop/api/keys/name", "another-token")).status, 503);
  await kill(server);
  await assert.rejects(serve({ ...options }), { code: "UNAVAILABLE" });
  // Nothing was removed, and each file is a replica that can be promoted.
  const files = readdirSync(options.path).filter((file) => file.endsWith(".sqlite3"));
  assert.equal(files.length, 2);
  const file = join(
    options.path,
    files.find((file) => file.startsWith("shop.")),
  );
  assert.equal((await openkv("promote", file)).code, 0);
  const own = await openKv(file);
  assert.equal((await own.get(["name"])).value, "shop");
  await own.close();
  // The other one goes on where it was.
  await primary.start();
  const again = await spawn(options);
  await has(again, "blog", "name", "blog", blog.token);
  const { replica } = await (await get(again, "/blog/api/metrics", blog.token)).json();
  assert.equal(replica.copies, 0);
  // A file that has become a database of its own is no replica: nothing is changed.
  const promoted = await get(again, "/shop/api/keys/name", shop.token);
  assert.equal(promoted.status, 503);
  const kept = await openKv(file);
  assert.equal((await kept.get(["name"])).value, "shop");
  await kept.close();
});

test("a dropped database is refused, and its replica removed; others stay", async () => {
  const primary = await started();
  const [shop, blog] = [await primary.create("shop"), await primary.create("blog")];
  const options = near(primary);
  const server = await spawn(options);
  for (const [name, { token }] of [
    ["shop", shop],
    ["blog", blog],
  ])
    await has(server, name, "name", name, token);
  const files = () => readdirSync(options.path).filter((file) => file.includes(".sqlite3"));
  const watch = await get(server, "/shop/api/watch/prefix?prefix=name", shop.token);
  assert.equal(watch.status, 200);
  await primary.admin("DELETE", "/shop");
  const isRemoved = () => files().every((file) => file.startsWith("blog."));
  await until(isRemoved, () => `the removal; there are ${files()}`);
  for await (const _ of watch.body);
  assert.equal((await get(server, "/shop/api/keys/name", shop.token)).status, 401);
  assert.equal((await get(server, "/blog/api/keys/name", blog.token)).status, 200);
  // One that is dropped while no read server runs is removed by the next, which has never opened it. Another
  // one of its name is another database.
  await kill(server);
  await primary.admin("DELETE", "/blog");
  const other = await primary.create("blog");
  await other.kv.set(["other"], true);
  const [before] = files();
  const again = await spawn(options);
  await until(
    () => !files().includes(before),
    () => `the removal of ${before}; there are ${files()}`,
  );
  await has(again, "blog", "other", true, other.token);
});

test("an empty server in the place of the primary removes nothing", async () => {
  const primary = await started();
  const shop = await primary.create("shop");
  const options = near(primary);
  const server = await spawn(options);
  await has(server, "shop", "name", "shop", shop.token);
  await kill(server);
  await primary.kill();
  const empty = await started();
  const again = await spawn({ ...options, replicaOf: empty.url });
  assert.equal((await get(again, "/shop/api/keys/name", shop.token)).status, 401);
  assert.equal(readdirSync(options.path).filter((file) => file.endsWith(".sqlite3")).length, 1);
});

test("an advertised read server follows all databases, and each names it", async () => {
  const primary = await started();
  const names = Array.from({ length: 20 }, (_, n) => `db-${n}`);
  const databases = new Map();
  for (const name of names) databases.set(name, await primary.create(name));
  const listen = `127.0.0.1:${await freePort()}`;
  const advertise = `http://${listen}`;
  await spawn(near(primary, { listen, advertise, region: "eu-1" }));
  const endpoints = async (name) => {
    const answer = await fetch(`${primary.url}/${name}`, {
      method: "POST",
      headers: bearer(databases.get(name).token),
      body: JSON.stringify({ supportedVersions: [2, 3] }),
    });
    return (await answer.json()).endpoints;
  };
  for (const name of names) {
    const [, named] = await until(async () => {
      const told = await endpoints(name);
      return told.length === 2 && told;
    }, `the endpoint of ${name}`);
    assert.deepEqual(named, { url: `${advertise}/${name}/v2`, consistency: "eventual" });
  }
  const clients = [];
  for (const name of names) {
    const client = await open(`${primary.url}/${name}`, {
      accessToken: databases.get(name).token,
      timeout: 2000,
    });
    await client.get(["name"], eventual);
    clients.push(client);
  }
  await primary.kill();
  for (const [n, client] of clients.entries()) {
    assert.equal((await client.get(["name"], eventual)).value, names[n]);
  }
});

test("what does not fit together is refused with what to do", async () => {
  const primary = await started();
  const { token } = await primary.create("shop");
  const file = await startServer({ path: fresh(), accessToken: adminToken });
  const folder = near(primary);
  for (const [options, expected] of [
    [
      { ...folder, replicaToken: token },
      { code: "DENIED", message: /admin token of the server/ },
    ],
    [{ ...folder, replicaOf: file.url }, { message: /a file as path/ }],
    [{ ...folder, replicaOf: `${primary.url}/shop` }, { message: /a file as path/ }],
    [{ ...folder, path: fresh() }, { message: /a folder as path/ }],
    [{ ...folder, replicaOf: "http://127.0.0.1:1" }, { code: "UNAVAILABLE" }],
  ]) {
    await assert.rejects(serve(options), expected);
  }
  const own = `${fresh()}/`;
  mkdirSync(own);
  const served = await startServer({ path: own, adminToken });
  await assert.rejects(serve({ ...folder, path: own }), { code: "UNAVAILABLE" });
  await fetch(`${served.url}/v1/admin/databases`, {
    method: "POST",
    headers: bearer(adminToken),
    body: JSON.stringify({ name: "own" }),
  });
  await served.close();
  await assert.rejects(serve({ ...folder, path: own }), {
    code: "DENIED",
    message: /databases of its own/,
  });
});
