// Duty: the table of features in docs/contract.md is true and current: each feature is called on each place.
//
// The README said that every feature works on files and in memory, and all but getSync over a URL.
// backup and archive do not in memory; at and archive do not over a URL.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { features, written } from "../../scripts/features.mjs";
import { freshPaths, newFolder } from "../kit/folder.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { connect, start } from "../remote/mock.mjs";

const freshPath = freshPaths("features");
const history = "1h";
const accessToken = "the-token-of-these-tests";
const near = { replica: ":memory:", consistency: "eventual" };
/** How long a listener that works is left alone. */
const QUIET_MS = 300;

async function served(options) {
  const path = freshPath();
  // The history is turned on where the file is.
  await (await open(path, { history })).close();
  const { url } = await startServer({ path, accessToken });
  return await open(url, { accessToken, ...options });
}

async function onPostgres(more, options) {
  return await open((await sharedPostgres()).url({ more }), { history, ...options });
}

async function ready(opening) {
  const kv = await opening;
  await kv.replica.ready();
  return kv;
}

const places = {
  file: () => open(freshPath(), { history }),
  memory: () => open(":memory:", { history }),
  PostgreSQL: () => onPostgres(""),
  "PostgreSQL, led": () => onPostgres("&lead=test"),
  "PostgreSQL, replica": () => ready(onPostgres("", near)),
  "openkv's server": () => served({}),
  "openkv's server, replica": () => ready(served(near)),
  "another KV Connect server": async () => connect(await start()),
};

const index = { prefix: ["d"], fields: ["t"], name: "docs" };

const calls = {
  "`get`, `getMany`, `list`, `paginate`": async (kv) => {
    await kv.get(["a"]);
    await kv.getMany([["a"], ["b"]]);
    await kv.list({ prefix: [] }).toArray();
    await kv.paginate({ prefix: [] });
  },
  "`getSync`, `getManySync`": async (kv) => [kv.getSync(["a"]), kv.getManySync([["a"]])],
  "`count`": (kv) => kv.count({ prefix: [] }),
  "`where`, `keysOnly`": async (kv) => {
    await kv.list({ prefix: ["w"] }, { where: { a: 1 } }).toArray();
    await kv.list({ prefix: ["w"] }, { keysOnly: true }).toArray();
  },
  "`depth`, `withExpiry`": async (kv) => {
    await kv.list({ prefix: ["w"] }, { depth: 1 }).toArray();
    await kv.list({ prefix: ["w"] }, { withExpiry: true }).toArray();
  },
  "`set`, `delete`, `atomic`; `sum`, `min`, `max` of `KvU64`": (kv) =>
    kv.atomic().set(["a"], 1).sum(["n"], 1n).min(["n"], 1n).max(["n"], 1n).delete(["b"]).commit(),
  "`transaction`": (kv) => kv.transaction(async (tx) => tx.set(["a"], (await tx.get(["a"])).value)),
  "`append`, `prepend`, `touch`, `persist`, `uuidv7`": async (kv) => {
    await kv.atomic().append(["l"], [1]).prepend(["l"], [0]).commit();
    await kv.touch(["a"], { expireIn: 60_000 });
    await kv.persist(["a"]);
    await kv.set(["u", kv.uuidv7()], 1);
  },
  "`deleteMany`": (kv) => kv.deleteMany({ prefix: ["gone"] }),
  "`ttl`": (kv) => kv.ttl(["a"]),
  "`watch` of keys": async (kv) => {
    const reader = kv.watch([["a"]]).getReader();
    await reader.read();
    await reader.cancel();
  },
  "`watch` of a range": async (kv) => {
    const reader = kv.watch({ prefix: ["r"] }).getReader();
    const reading = reader.read();
    reading.catch(() => {});
    await kv.set(["r", 1], 1);
    await reading;
    await reader.cancel();
  },
  "`enqueue`": (kv) => kv.enqueue("x", { delay: 60_000 }),
  "`listenQueue`": (kv) =>
    kv
      .listenQueue(() => {}, { signal: AbortSignal.timeout(QUIET_MS) })
      .catch((error) => {
        if (error.code === "UNSUPPORTED") throw error;
      }),
  "`queue`: named queues, dead letters": async (kv) => {
    await kv.queue("jobs").enqueue(1);
    await (await kv.queue("jobs").receive()).ack();
    await kv.queue("jobs").dead.list();
  },
  "`lease`, `checkLease`": async (kv) => {
    const lease = await kv.lease(["lease"]);
    await kv.atomic().checkLease(lease).set(["a"], 1).commit();
    await lease.release();
  },
  "`limiter`": (kv) => kv.limiter(["limiter"], { limit: 5, per: "1h" }).take(),
  "`once`": (kv) => kv.once(["once"], () => 1),
  "`createIndex`, `listIndexes`, `dropIndex`": async (kv) => {
    await kv.createIndex({ ...index, prefix: ["other"], name: "other" });
    await kv.listIndexes();
    await kv.dropIndex("other");
  },
  "`explain`": (kv) => kv.explain({ prefix: ["d"] }),
  "`search`": async (kv) => {
    await kv.createIndex(index);
    // A replica has the index a little later.
    const finds = () =>
      kv.search(["d"], "word").then(
        () => true,
        (error) => (error instanceof TypeError ? false : Promise.reject(error)),
      );
    await until(finds, "the index is there");
  },
  "`at`": async (kv) => (await kv.at((await kv.set(["a"], 2)).versionstamp)).close(),
  "`history`": async (kv) => {
    for await (const { key } of kv.history(["a"])) assert.deepEqual(key, ["a"]);
  },
  "`archive`": async (kv) => (await kv.archive({ to: newFolder("archive") })).stop(),
  "`backup`": (kv) => kv.backup(join(newFolder("backup"), "copy.sqlite3")),
  "`check`": (kv) => kv.check(),
  "`vacuum`": (kv) => kv.vacuum(),
  "`checkpoint`": (kv) => kv.checkpoint(),
  "`stats`": (kv) => kv.stats(),
  "`metrics`": (kv) => kv.metrics(),
};

for (const [place, opening] of Object.entries(places)) {
  describe(`on ${place}`, () => {
    test("each feature works where the table says so", async () => {
      const kv = await opening();
      await kv.set(["a"], 1);
      const found = new Map();
      for (const [feature, call] of Object.entries(calls)) {
        try {
          await call(kv);
          found.set(feature, true);
        } catch (error) {
          assert.equal(error.code, "UNSUPPORTED", `${feature}: ${error.stack}`);
          found.set(feature, false);
        }
      }
      const told = [...features()].map(([feature, on]) => [feature, on.get(place)]);
      assert.deepEqual([...found], told);
    });
  });
}

test("the table is current", () => {
  const page = readFileSync(new URL("../../docs/contract.md", import.meta.url), "utf8");
  assert.ok(page === written(), "run npm run generate");
  const [on] = features().values();
  assert.deepEqual([...on.keys()], Object.keys(places));
});

test("over a URL of openkv's own server the error names the call and what to do, not KV Connect", async () => {
  const kv = await served({});
  for (const [call, name] of [
    [() => kv.at(new Date()), "kv.at"],
    [() => kv.archive({ to: newFolder("archive") }), "kv.archive"],
  ]) {
    await assert.rejects(call(), ({ code, message }) => {
      assert.equal(code, "UNSUPPORTED");
      assert.ok(message.startsWith(`${name}: not over a URL`), message);
      assert.match(message, /Call it where the database is opened/);
      assert.doesNotMatch(message, /KV Connect/);
      return true;
    });
  }
});
