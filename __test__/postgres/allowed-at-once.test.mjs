// Duty: what one server of a PostgreSQL allows holds at the others at once: tokens, databases, quotas.
//
// The servers look for changes of their common catalog every 500 ms. For that long another server refused a token
// that was just created, with 401 and the advice to check it, and so a database that was just created, and a
// request within a quota that was just raised.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openKv } from "../../index.mjs";
import { admin, Cluster, createAt, metadata } from "../kit/cluster.mjs";
import { until } from "../kit/time.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";
const ROUNDS = 8;

let cluster;
after(() => cluster?.close());

async function pair() {
  cluster ??= await Cluster.create();
  return [await cluster.start(), await cluster.start()];
}

const status = async (url, path, token, options) => {
  const headers = { authorization: `Bearer ${token}`, ...options?.headers };
  return (await fetch(url + path, { ...options, headers })).status;
};

test("a token, a database and a quota of one server hold at the other at once", {
  skip,
}, async (t) => {
  const [one, two] = await pair();
  await createAt([one, two], "shop");

  await t.test("tokens: metadata, the HTTP API, the data path, the admin API", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const make = async (rights) => (await admin(one, "POST", "/shop/tokens", { rights })).token;
      assert.equal((await metadata(two, "shop", await make("read"))).status, 200);
      assert.equal(await status(two.url, "/shop/api/keys", await make("read")), 200);
      const { token, databaseId } = await metadata(one, "shop", await make("read"));
      const headers = {
        "x-denokv-version": "3",
        "x-denokv-database-id": databaseId,
        "content-type": "application/x-protobuf",
      };
      const body = new Uint8Array(0);
      const read = { method: "POST", headers, body };
      assert.equal(await status(two.url, "/v2/snapshot_read", token, read), 200);
      assert.equal(await status(two.url, "/v1/admin/databases/shop", await make("admin")), 200);
    }
  });

  await t.test("databases: their tokens, and the admin's view of them", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const name = `new-${round}`;
      const { token } = await admin(one, "POST", "", { name });
      assert.equal((await metadata(two, name, token)).status, 200);
      assert.equal((await admin(one, "POST", "", { name: `${name}-b` })).status, 201);
      assert.equal((await admin(two, "GET", `/${name}-b`)).status, 200);
      assert.equal((await admin(one, "POST", "", { name: `${name}-c` })).status, 201);
      assert.match((await admin(two, "GET", "")).text, new RegExp(`"${name}-c"`));
    }
  });

  await t.test("quotas", async () => {
    const { token } = await admin(one, "POST", "", { name: "poor" });
    const read = () => status(two.url, "/poor/api/keys", token);
    for (let round = 0; round < ROUNDS; round++) {
      await admin(one, "PUT", "/poor/quotas", { operationsPerSecond: 1 });
      await until(async () => (await read()) === 429, "it is over its quota");
      await admin(one, "PUT", "/poor/quotas", { operationsPerSecond: 1000 });
      assert.equal(await read(), 200);
    }
  });

  await t.test("a handle is opened with a new token", async () => {
    const { token } = await admin(one, "POST", "/shop/tokens", { rights: "write" });
    const kv = await openKv(`${two.url}/shop`, { accessToken: token });
    assert.equal((await kv.set(["a"], 1)).ok, true);
    await kv.close();
  });

  await t.test("wrong tokens are refused, however many, while new ones hold", async () => {
    const wrong = Array.from({ length: 300 }, (_, n) => metadata(two, "shop", `wrong-token-${n}`));
    const { token } = await admin(one, "POST", "/shop/tokens", { rights: "read" });
    assert.equal((await metadata(two, "shop", token)).status, 200);
    const statuses = await Promise.all(wrong);
    assert.ok(statuses.every(({ status }) => status === 401));
  });

  await t.test("a revoked token is refused within the interval of the servers", async () => {
    const made = await admin(one, "POST", "/shop/tokens", { rights: "read" });
    assert.equal((await metadata(two, "shop", made.token)).status, 200);
    assert.equal((await admin(one, "DELETE", `/shop/tokens/${made.id}`)).status, 204);
    const refused = async () => (await metadata(two, "shop", made.token)).status === 401;
    await until(refused, "the other server has revoked it");
  });
});
