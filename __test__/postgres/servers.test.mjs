// Duty: servers in front of one PostgreSQL: they share databases and tokens, one of them leads each
// database, and another takes over.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { clusterTests, open } from "../kit/cluster-suite.mjs";
import { admin, Cluster, createAt } from "../kit/cluster.mjs";
import { until } from "../kit/time.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

const clusters = [];
after(() => Promise.all(clusters.map((cluster) => cluster.close())));

async function newCluster() {
  const cluster = await Cluster.create();
  clusters.push(cluster);
  return cluster;
}

/** Two servers with a database `shop`. */
async function pair(options) {
  const cluster = await newCluster();
  const [one, two] = [await cluster.start(options), await cluster.start(options)];
  return { cluster, one, two, accessToken: await createAt([one, two], "shop") };
}

clusterTests({ pair });

test("a leader that stops beyond its lease follows the next one", { skip }, async () => {
  const { one, two, accessToken } = await pair();
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

test("a dropped database leaves nothing, and its name is free", async () => {
  const { cluster, one, two, accessToken } = await pair();
  const kv = await open(`${two.url}/shop`, { accessToken });
  await kv.set(["a"], "x".repeat(1000));
  await kv.enqueue("message", { delay: 60_000 });
  assert.equal((await admin(one, "DELETE", "/shop")).status, 204);
  const rows = ["entries", "log", "messages"].map((table) => `SELECT 1 FROM openkv.${table}`);
  assert.equal(await cluster.sql(rows.join(" UNION ALL ")), "");
  await assert.rejects(kv.set(["a"], 1), { code: "DENIED" });
  const again = await createAt([two, one], "shop");
  const fresh = await open(`${one.url}/shop`, { accessToken: again });
  assert.equal((await fresh.get(["a"])).value, null);
});

test("what a server of an engine cannot have is refused by name", async () => {
  const cluster = await newCluster();
  const one = await cluster.start();
  const refused = await admin(one, "POST", "", { name: "shop", quotas: { bytes: 1 } });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /quotas\.bytes/);
  assert.equal((await admin(one, "GET", "/shop")).status, 404);
});
