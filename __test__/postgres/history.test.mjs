// Duty: the history of databases on PostgreSQL that several processes write: complete whoever writes, also when
// they are killed, after a failover, and on the command line.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { before, test } from "node:test";
import { openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { endsWithTests, killed } from "../kit/living.mjs";
import { sharedPostgres, startPostgres } from "../kit/postgres.mjs";
import { argumentsFor } from "../kit/program.mjs";
import { open } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";
import { all } from "../replica/entries.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";
const ENTRY = new URL("../../index.mjs", import.meta.url).href;

/** Writes to a few keys until it is killed: sets, deletions, expiries, many at once. */
const WRITER = `
  import { openKv } from ${JSON.stringify(ENTRY)};
  const [url, name] = process.argv.slice(-2);
  const kv = await openKv(url, { durability: "normal" });
  console.log("ready");
  for (let n = 0; ; n++) {
    const writes = Array.from({ length: 6 }, (_, at) => {
      const key = ["k", (n * 5 + at * 3) % 12];
      const operation = kv.atomic();
      if ((n + at) % 5 === 0) operation.delete(key);
      else operation.set(key, { name, n, at }, at === 4 ? { expireIn: 40 } : undefined);
      return operation.sum(["sum"], 1n).commit().catch(() => null);
    });
    await Promise.all(writes);
    if (n % 20 === 19) await kv.deleteMany({ prefix: ["k"] }).catch(() => null);
  }
`;

/** The writers of a round are killed after some more commits than these. */
const COMMITS_MIN = 20;

let server;
before(async () => {
  server = await sharedPostgres();
});

/** Starts a writer; resolves once it is ready, to its process. */
async function startWriter(url, name) {
  const args = [...argumentsFor(WRITER), url, name];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((ready) => endsWithTests(child).stdout.once("data", ready));
  return child;
}

/** The versions of an entry, the newest first. */
async function versionsOf(kv, key) {
  const versions = [];
  for await (const version of kv.history(key)) versions.push(version);
  return versions;
}

/** The versions of all keys are the moments, and no commit is missing. */
async function assertComplete(kv, begun) {
  const versions = new Map();
  const keys = [["sum"], ...Array.from({ length: 12 }, (_, n) => ["k", n])];
  for (const key of keys) {
    for (const version of await versionsOf(kv, key)) {
      const at = versions.get(version.versionstamp) ?? [];
      versions.set(version.versionstamp, [...at, version]);
    }
  }
  const stamps = [...versions.keys()].sort().filter((stamp) => stamp > begun);
  assert.ok(stamps.length > 50, `${stamps.length} commits`);
  const sums = (await versionsOf(kv, ["sum"])).toReversed();
  // Each commit of a writer adds one: a commit that is missing leaves a step of two.
  sums.forEach(({ value }, n) => assert.equal(value.value, BigInt(n + 1)));
  const step = Math.max(1, Math.floor(stamps.length / 40));
  for (let n = 0; n < stamps.length; n += step) {
    const stamp = stamps[n];
    const then = await kv.at(stamp);
    const found = await all(then);
    for (const key of keys) {
      const entry = await then.get(key);
      const listed = found.find((one) => JSON.stringify(one.key) === JSON.stringify(key));
      assert.deepEqual(listed?.value ?? null, entry.value, `${key} at ${stamp}`);
    }
    for (const { key, type, value, expireAt, committedAt } of versions.get(stamp)) {
      if (expireAt !== undefined && expireAt <= committedAt) continue;
      const entry = await then.get(key);
      assert.deepEqual(entry.value, type === "delete" ? null : value, `${key} at ${stamp}`);
    }
    await then.close();
  }
}

for (const [mode, more] of Object.entries({ directly: "", "and lead in turns": "&lead=" })) {
  test(`processes that write ${mode} and are killed leave a history without gaps`, async () => {
    const url = server.url();
    const kv = await open(url, { history: "7d" });
    const begun = (await kv.set(["begun"], 1)).versionstamp;
    for (let round = 0; round < 3; round++) {
      const names = more === "" ? ["one", "two"] : [`leader-${round}`];
      const children = await Promise.all(
        names.map((name) => startWriter(more === "" ? url : `${url}${more}${name}`, name)),
      );
      // Commits are numbered in the first 8 bytes of their versionstamps.
      const commits = async () => Number.parseInt((await kv.stats()).versionstamp.slice(0, 16), 16);
      const from = await commits();
      await until(async () => (await commits()) > from + COMMITS_MIN, "some commits");
      await new Promise((resolve) => setTimeout(resolve, 400 + 150 * round));
      await Promise.all(children.map(killed));
    }
    await assertComplete(kv, begun);
    await kv.close();
  });
}

test("a history is turned on beside a leader, and off", async () => {
  const url = server.url();
  const leader = await open(`${url}&lead=history`);
  await leader.set(["a"], 0);
  const other = await open(url, { history: "1h" });
  const stamps = [];
  for (let n = 1; n <= 20; n++) stamps.push((await leader.set(["a"], n)).versionstamp);
  for (const [n, stamp] of stamps.entries()) {
    const then = await leader.at(stamp);
    assert.equal((await then.get(["a"])).value, n + 1);
    await then.close();
  }
  assert.equal((await versionsOf(other, ["a"])).length, 21);
  const off = await open(`${url}&application_name=off`, { history: false });
  await leader.set(["a"], 21);
  await assert.rejects(off.at(stamps[3]), { code: "UNSUPPORTED", message: /keeps no history/ });
  // It begins anew: nothing of before is a moment of it.
  const again = await open(`${url}&application_name=again`, { history: "1h" });
  await assert.rejects(again.at(stamps[3]), RangeError);
  const { versionstamp } = await leader.set(["a"], 22);
  await leader.set(["a"], 23);
  assert.equal((await (await again.at(versionstamp)).get(["a"])).value, 22);
});

test("the present is a moment of the past, however long the last trip took", async () => {
  const kv = await open(server.url(), { history: "7d" });
  for (let n = 0; n < 50; n++) {
    await kv.set(["a"], n);
    const then = await kv.at(new Date());
    assert.equal((await then.get(["a"])).value, n);
    await then.close();
  }
});

test("the command line reads moments of a database on PostgreSQL", async () => {
  const url = server.url();
  const kv = await open(url, { history: "7d" });
  const first = await kv.atomic().set(["a", 1], "one").set(["a", 2], "two").commit();
  const second = await kv.atomic().set(["a", 1], "uno").delete(["a", 2]).commit();
  await kv.set(["b"], 3);
  const run = async (...args) => {
    const { code, out, err } = await openkv("--db", url, ...args);
    assert.equal(code, 0, err);
    return out;
  };
  assert.match(await run("get", "a", "1", "--at", first.versionstamp), /one/);
  assert.match(await run("list", "--at", second.versionstamp), /uno/);
  assert.equal((await run("count", "--at", first.versionstamp)).trim(), "2");
  assert.match(await run("history", "a", "2"), /two/);
  const diff = await run("diff", "--from", first.versionstamp, "--to", second.versionstamp);
  assert.match(diff, /uno/);
  assert.doesNotMatch(diff, /"b"/);
  assert.match(await run("diff", "--from", second.versionstamp), /"b"/);
});

test("a user who may only read reads moments, on a standby too", { skip }, async (t) => {
  const own = await startPostgres({ standby: true });
  t.after(() => own.close());
  const kv = await open(own.url({ kv: "shop" }), { history: "7d" });
  const { versionstamp } = await kv.set(["a"], 1);
  await kv.set(["a"], 2);
  await own.standbyCatchesUp();
  const reading = await openKv(own.standby.url({ kv: "shop" }), { readonly: true });
  assert.equal((await reading.get(["a"])).value, 2);
  const then = await reading.at(versionstamp);
  assert.equal((await then.get(["a"])).value, 1);
  assert.equal((await versionsOf(reading, ["a"])).length, 2);
  await then.close();
  await reading.close();
  const url = own.url({ kv: "shop", also: [own.standby] });
  await kv.close();
  const writing = await open(url, { busyTimeout: 2000 });
  own.kill();
  await own.standby.promote();
  await until(() => writing.set(["a"], 3).catch(() => null), "the standby is written to");
  // A failover leaves the history as it was.
  const after = await writing.at(versionstamp);
  assert.equal((await after.get(["a"])).value, 1);
  assert.equal((await versionsOf(writing, ["a"]))[0].value, 3);
});

test("a process of an older version cannot write beside the history and the log of messages", async () => {
  const database = await server.newDatabase();
  const url = server.url({ database, kv: "shop" });
  await (await openKv(url)).close();
  // The statements with which versions before this one lock the row of a database.
  for (const column of ["replicates", "keeps"]) {
    const older = `SELECT version, ${column} FROM openkv.databases FOR UPDATE`;
    await assert.rejects(server.sql(older, { database }), new RegExp(column));
  }
});
