// Duty: moments of the past, read by `kv.at` and restored from an archive, against a model that repeats the commits.
//
//   node __test__/archive/moments.mjs [--versions 1000] [--restores 1000] [--seed text]
//
// A database with a history and an archiver gets random commits: sets, deletions, two keys at once, sums and
// entries that expire much later. Then random versions are looked at.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { KvU64, openKv } from "../../index.mjs";
import { openkv } from "../cli/running.mjs";
import { newFolder } from "../kit/folder.mjs";

const COMMITS = 1500;
const KEYS = 60;
/** So that no restore begins with the first snapshot only. */
const SNAPSHOT_EVERY_MS = 500;
const HOUR_MS = 3_600_000;
const PATIENCE_MS = 60_000;

/** Numbers from a seed, below a bound. */
function randomOf(seed) {
  let count = 0;
  return (bound) => {
    const hash = createHash("sha256").update(`${seed}/${count++}`).digest();
    return hash.readUInt32LE(0) % bound;
  };
}

/** Looks at so many versions; fails with what was wrong. Returns how many were looked at in which way. */
export async function compare({ versions, restores, seed }, tell = () => {}) {
  const below = randomOf(seed);
  const folder = newFolder("archive-moments");
  const [file, target] = [join(folder, "kv.sqlite3"), join(folder, "archive")];
  const kv = await openKv(file, { durability: "normal", history: "1d" });
  const archive = await kv.archive({ to: target, snapshotEvery: SNAPSHOT_EVERY_MS });
  const states = [];
  const model = new Map();
  for (let n = 0; n < COMMITS; n++) {
    const { versionstamp } = await change(kv, model, below, n);
    states.push([versionstamp, textOf([...model.values()])]);
  }
  for (const end = Date.now() + PATIENCE_MS; archive.status().versionstamp < states.at(-1)[0]; ) {
    assert.ok(Date.now() < end, `not archived: ${JSON.stringify(archive.status())}`);
    await pause(20);
  }
  for (let done = 0; done < versions; done++) {
    const [versionstamp, expected] = states[below(states.length)];
    const view = await kv.at(versionstamp);
    assert.equal(await entriesOf(view), expected, `kv.at ${versionstamp}`);
    view.close();
  }
  await kv.close();
  for (let done = 0; done < restores; done++) {
    const [versionstamp, expected] = states[below(states.length)];
    const restored = join(folder, "restored.sqlite3");
    const { code, err } = await openkv("restore", target, restored, "--at", versionstamp);
    assert.equal(code, 0, err);
    const found = await openKv(restored);
    assert.equal(await entriesOf(found), expected, `restore --at ${versionstamp}`);
    await found.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(restored + end, { force: true });
    if ((done + 1) % 100 === 0) tell(`${done + 1} restores`);
  }
  rmSync(folder, { recursive: true, force: true });
  return { versions, restores };
}

/** One random commit, also on the model. */
async function change(kv, model, below, n) {
  const at = below(KEYS);
  const key = ["k", at];
  const keep = (versionstamp, value) => model.set(at, { key, value, versionstamp });
  switch (below(8)) {
    case 0: {
      model.delete(at);
      return kv.atomic().delete(key).commit();
    }
    case 1: {
      const value = new KvU64(BigInt(n));
      const result = await kv.atomic().set(key, value).sum(key, 1n).commit();
      keep(result.versionstamp, new KvU64(BigInt(n + 1)));
      return result;
    }
    case 2: {
      const result = await kv.set(key, n, { expireIn: HOUR_MS + n });
      keep(result.versionstamp, n);
      return result;
    }
    case 3: {
      const other = (at + 1) % KEYS;
      const value = "large ".repeat(below(2000));
      const result = await kv.atomic().set(key, value).delete(["k", other]).commit();
      model.delete(other);
      keep(result.versionstamp, value);
      return result;
    }
    default: {
      const value = { n, list: [at, "x".repeat(below(50))] };
      const result = await kv.set(key, value);
      keep(result.versionstamp, value);
      return result;
    }
  }
}

async function entriesOf(kv) {
  const found = [];
  for await (const { key, value, versionstamp } of kv.list({ prefix: [] })) {
    found.push({ key, value, versionstamp });
  }
  return textOf(found);
}

function textOf(entries) {
  const inOrder = entries.toSorted((a, b) => a.key[1] - b.key[1]);
  const plain = (_name, value) => (value instanceof KvU64 ? `u64 ${value.value}` : value);
  return JSON.stringify(inOrder, plain);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      versions: { type: "string", default: "1000" },
      restores: { type: "string", default: "1000" },
      seed: { type: "string", default: String(Date.now()) },
    },
  });
  console.log(`seed ${values.seed}`);
  const [versions, restores] = [Number(values.versions), Number(values.restores)];
  const done = await compare({ versions, restores, seed: values.seed }, console.log);
  console.log(`${done.versions} versions by kv.at and ${done.restores} restores are as they were`);
}
