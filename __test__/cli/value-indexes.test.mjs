// Duty: after an import, a copy, an expiry and a restore a value index has what a scan finds, on files and on
// PostgreSQL.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { until } from "../kit/time.mjs";
import { folderOfTests, openkv } from "./running.mjs";

const path = folderOfTests();
const RANGE = { prefix: ["t"] };
const INDEX = { type: "value", prefix: ["t"], on: ["n", "id"], name: "n" };
const TARGETS = {
  "a file": async (name) => path(name),
  PostgreSQL: async () => (await sharedPostgres()).url(),
};

/** Writes so many entries, with values from `from` on. */
async function fill(kv, count, from = 0) {
  const all = kv.atomic();
  for (let id = 0; id < count; id++) all.set(["t", id], { id, n: (from + id) % 7 });
  return await all.commit();
}

/** Answers how many entries the index and a scan both find. */
async function agrees(kv) {
  // Without where and orderBy no index is read.
  const all = await kv.list(RANGE).toArray();
  const places = all.map(({ value }) => value).sort((a, b) => a.n - b.n || a.id - b.id);
  const listed = await kv.list(RANGE, { orderBy: { n: "asc", id: "asc" } }).toArray();
  assert.deepEqual(
    listed.map(({ value }) => value),
    places,
  );
  for (let n = 0; n < 7; n++) {
    const found = await kv.list(RANGE, { where: { n } }).toArray();
    assert.deepEqual(
      found,
      all.filter(({ value }) => value.n === n),
    );
  }
  return all.length;
}

for (const [name, target] of Object.entries(TARGETS)) {
  test(`an import, a copy and an expiry change the index of ${name}`, async () => {
    const from = path(`from ${name}.db`);
    const source = await openKv(from);
    await fill(source, 50, 3);
    await source.close();
    const file = path(`${name}.ndjson`);
    assert.equal((await openkv("-d", from, "export", file)).code, 0);
    const [imported, copied] = [await target("imported.db"), await target("copied.db")];
    for (const [url, args] of [
      [imported, ["-d", imported, "import", file]],
      [copied, ["copy", from, copied, "--force"]],
    ]) {
      const kv = await openKv(url);
      await (await kv.createIndex(INDEX)).ready();
      // The others are overwritten.
      await fill(kv, 9);
      const { code, err } = await openkv(...args);
      assert.equal(code, 0, err);
      assert.equal(await agrees(kv), 50);
      await kv.set(["t", 3], { id: 3, n: 5 }, { expireIn: 1 });
      await until(async () => (await kv.get(["t", 3])).value === null, "the entry expires");
      assert.equal(await agrees(kv), 49);
      await kv.close();
    }
  });

  test(`a restore of ${name} has the index`, async () => {
    const [url, archive] = [await target("archived.db"), path(`archive of ${name}`)];
    const kv = await openKv(url);
    await (await kv.createIndex(INDEX)).ready();
    await fill(kv, 40);
    const archived = await kv.archive({ to: archive, snapshotEvery: "1h" });
    await until(() => archived.status().snapshot !== null, "the first snapshot");
    // Behind the snapshot, so that the restore repeats the log.
    await fill(kv, 30, 2);
    await kv.delete(["t", 1]);
    const { versionstamp } = await kv.set(["t", 99], { id: 99, n: 1 });
    await until(() => archived.status().versionstamp >= versionstamp, "the last commit");
    await kv.close();
    const file = path(`restored from ${name}.db`);
    const { code, err } = await openkv("restore", archive, file);
    assert.equal(code, 0, err);
    const restored = await openKv(file);
    assert.deepEqual(
      (await restored.listIndexes()).map(({ name }) => name),
      ["n"],
    );
    await (await restored.createIndex(INDEX)).ready();
    assert.equal(await agrees(restored), 40);
    await restored.close();
  });
}

test("what a unique index refuses is named, and nothing else is left out", async () => {
  const unique = async (name) => {
    const file = path(name);
    const kv = await openKv(file);
    await (await kv.createIndex({ type: "value", prefix: ["u"], on: "m", unique: true })).ready();
    await kv.set(["u", 1], { m: "ada" });
    await kv.close();
    return file;
  };
  const refused = /unique index '\["u"\] by m' has the value of \["u",2\] for \["u",1\] already/;
  const from = path("not unique.db");
  const source = await openKv(from);
  for (const [id, m] of ["", "", "ada", "bob", "eve"].entries()) {
    if (m !== "") await source.set(["u", id], { m });
  }
  await source.close();
  const lines = path("not unique.ndjson");
  assert.equal((await openkv("-d", from, "export", lines)).code, 0);
  for (const flags of [[], ["--skip-existing"]]) {
    const db = await unique(`imported ${flags.length}.db`);
    const { code, err } = await openkv("-d", db, "import", lines, ...flags);
    assert.equal(code, 1);
    assert.match(err, refused);
    assert.match(err, /line 1: /);
    assert.match(err, /imported 2 entries .*0 skipped, 1 failed/);
    const kv = await openKv(db);
    assert.equal(await kv.count({ prefix: ["u"] }), 3);
    await kv.close();
  }
  for (const flag of ["--skip-existing", "--if-newer", "--force"]) {
    const { code, err } = await openkv("copy", from, await unique(`copied ${flag}.db`), flag);
    assert.equal(code, 1);
    assert.match(err, refused);
  }
  const db = await unique("written.db");
  for (const args of [
    ["set", "--if-absent", '["u",2]', '{m:"ada"}'],
    ["atomic", '{check:["u",2],versionstamp:null}', '{set:["u",2],value:{m:"ada"}}'],
    ["atomic", '{set:["u",2],value:{m:"ada"}}'],
  ]) {
    const { code, out, err } = await openkv("-d", db, "--json", ...args);
    assert.equal(code, 1);
    assert.match(err, refused);
    if (args[0] !== "atomic") continue;
    const { ok, violations } = JSON.parse(out);
    assert.equal(ok, false);
    assert.deepEqual(violations[0].key, ["u", 2]);
  }
});
