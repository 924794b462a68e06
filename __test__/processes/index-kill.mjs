// Processes that write under value indexes, and such that build one, are killed with SIGKILL at any moment: after each
// kill the indexes have what a scan has, entry for entry, and no unique value is there twice.
//
//   node __test__/processes/index-kill.mjs [--commits 100000] [--builds 1000] [--seed text]
//
// --builds: kills of a process whose index was still being built.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { newFolder } from "../kit/folder.mjs";
import { guard, sleep } from "../kit/time.mjs";
import { startChild } from "./children.mjs";
import { Random } from "./crash/random.mjs";
import { INDEXES, PREFIX } from "./index-kill/indexes.mjs";
import { openProbe } from "./probe.mjs";
import { openKv } from "./target.mjs";

const WRITER = new URL("./index-kill/writer.mjs", import.meta.url);
const BUILDER = new URL("./index-kill/builder.mjs", import.meta.url);
const WRITERS = 3;
const WRITER_LIFE_MS_MAX = 600;
const BUILDER_LIFE_MS_MAX = 50;
const HANG_MS = 60_000;
/** More than the longest expiry of an entry. */
const EXPIRED_MS = 60;
/** Some ten steps of building. */
const BUILT_ENTRIES = 5_000;
/** So many kills of a builder between two looks at a complete index. */
const BUILDS_BETWEEN = 10;
const RANGE = { prefix: PREFIX };

/** Kills writers again and again until they have made so many commits; answers what has happened. */
export async function killWriters(path, commits, seed) {
  const random = new Random(seed);
  const probe = openProbe();
  let done = 0;
  let kills = 0;
  let entries = 0;
  while (done < commits) {
    const children = Array.from({ length: WRITERS }, (_, at) =>
      startChild(WRITER, { path, seed: `${seed}/${kills}/${at}` }),
    );
    const lines = children.map(async (child) => {
      assert.equal(await child.line(), "R", `${child.stderr} ${seed}`);
    });
    await guard(Promise.all(lines), HANG_MS, "the writers commit");
    await sleep(random.between(0, WRITER_LIFE_MS_MAX));
    await killAll(children, seed);
    kills += WRITERS;
    const kv = await openKv(path);
    for (const index of Object.values(INDEXES)) await (await kv.createIndex(index)).ready();
    // What expires has expired: none does between the scan and the look at its index.
    await sleep(EXPIRED_MS);
    entries = (await verify(kv, Object.keys(INDEXES), seed)).length;
    assert.deepEqual(await kv.check(), { ok: true, findings: [] }, seed);
    // Commits are numbered in the first 8 bytes of their versionstamps.
    const { versionstamp } = await kv.set(["end of a round"], kills);
    done = Number.parseInt(versionstamp.slice(0, 16), 16);
    await kv.close();
    await count(probe, path, "t", seed);
  }
  probe.close();
  return { commits: done, kills, entries };
}

/** Kills a process that builds an index so many times before it is complete; answers what has happened. */
export async function killBuilders(path, builds, seed) {
  const random = new Random(seed);
  const kv = await openKv(path);
  for (let id = 0; id < BUILT_ENTRIES; id += 500) {
    const operation = kv.atomic();
    for (let n = id; n < id + 500; n++) operation.set([...PREFIX, n], { id: n, n, u: n });
    await operation.commit();
  }
  await kv.close();
  const probe = openProbe();
  let building = 0;
  let kills = 0;
  let complete = 0;
  for (; building < builds; kills++) {
    const child = startChild(BUILDER, { path, seed: `${seed}/${kills}`, entries: BUILT_ENTRIES });
    const state = await guard(child.line(), HANG_MS, "the builder opens the file");
    if (state === "building") building++;
    else assert.match(String(state), /^(none|ready)$/, `${child.stderr} ${seed}`);
    assert.equal(await guard(child.line(), HANG_MS, "it builds"), "builds", child.stderr);
    await sleep(random.between(0, BUILDER_LIFE_MS_MAX));
    await killAll([child], seed);
    if (kills % BUILDS_BETWEEN > 0) continue;
    const kv = await openKv(path);
    await (await kv.createIndex(INDEXES.unique)).ready();
    await verify(kv, ["unique"], seed);
    assert.deepEqual(await kv.check(), { ok: true, findings: [] }, seed);
    await kv.close();
    await count(probe, path, "t", seed);
    complete++;
  }
  probe.close();
  assert.ok(complete > 0);
  return { kills, building, complete };
}

async function killAll(children, seed) {
  for (const child of children) child.kill();
  for (const child of children) {
    const { signal } = await child.ended;
    assert.deepEqual([signal, child.stderr], ["SIGKILL", ""], seed);
  }
}

/** Compares lists that use the indexes with a scan; answers its entries. */
export async function verify(kv, names, seed) {
  const ids = async (options) => {
    const list = await kv.list(RANGE, options).toArray();
    return list.map(({ value }) => value.id);
  };
  // Without where and orderBy no index is read.
  const all = (await kv.list(RANGE).toArray()).map(({ value }) => value);
  const idsOf = (values) => values.map(({ id }) => id);
  if (names.includes("unique")) {
    assert.equal(new Set(all.map(({ u }) => u)).size, all.length, seed);
    const sorted = all.toSorted((a, b) => a.u - b.u);
    assert.deepEqual(await ids({ orderBy: "u" }), idsOf(sorted), seed);
    for (const { id, u } of all.slice(0, 100)) {
      assert.deepEqual(await ids({ where: { u } }), [id], seed);
    }
  }
  if (names.includes("ordered")) {
    const sorted = all.toSorted((a, b) => a.n - b.n || a.id - b.id);
    assert.deepEqual(await ids({ orderBy: { n: "asc", id: "asc" } }), idsOf(sorted), seed);
    const between = all.filter(({ n }) => n >= 3 && n <= 6);
    assert.deepEqual(await ids({ where: { n: { $between: [3, 6] } } }), idsOf(between), seed);
  }
  if (names.includes("multi")) {
    for (let tag = 0; tag < 10; tag++) {
      const tagged = all.filter(({ tags }) => tags.includes(tag));
      assert.deepEqual(await ids({ where: { tags: { $contains: tag } } }), idsOf(tagged), seed);
    }
  }
  return all;
}

/** An index of one value has as many rows as there are entries: lists do not show those of entries that are gone. */
async function count(probe, path, part, seed) {
  const prefix = Buffer.concat([Buffer.of(2), Buffer.from(part), Buffer.of(0)]).toString("hex");
  const rows = `SELECT count(*) FROM kv WHERE k > x'${prefix}' AND k < x'${prefix}ff'`;
  const [[entries]] = await probe.run(path, rows);
  const single = "SELECT id FROM openkv_index WHERE tokenizer = 'value' AND name <> 'tags'";
  for (const [id] of await probe.run(path, single)) {
    const [[found]] = await probe.run(path, `SELECT count(*) FROM openkv_value_${id}`);
    assert.equal(found, entries, `rows of index ${id}, ${seed}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      commits: { type: "string", default: "100000" },
      builds: { type: "string", default: "1000" },
      seed: { type: "string", default: String(Date.now()) },
    },
  });
  const folder = newFolder("index-kill");
  const { seed } = values;
  console.log(`seed ${seed}`);
  console.log(await killWriters(join(folder, "writers.sqlite3"), Number(values.commits), seed));
  console.log(await killBuilders(join(folder, "builders.sqlite3"), Number(values.builds), seed));
  console.log("the indexes have what the entries have");
}
