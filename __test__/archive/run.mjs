// Duty: archives on a real S3-compatible server, moto, directly and behind a proxy that answers 503, slowly,
// cut off, or lets a request happen twice; and with credentials that may not write.
//
//   node __test__/archive/run.mjs

import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { openKv } from "../../index.mjs";
import { contents, openkv } from "../cli/running.mjs";
import { newFolder } from "../kit/folder.mjs";
import { createBucket, environment, SECRET, startMoto, startProxy } from "../kit/s3.mjs";

const PATIENCE_MS = 60_000;
const folder = newFolder("archive-s3");

const moto = await startMoto();
try {
  await createBucket(moto.port);
  await archivesAndRestores("plain", moto.port);
  const proxy = await startProxy(moto.port);
  await archivesAndRestores("faults", proxy.port, proxy);
  assert.ok(proxy.faults() > 4, `only ${proxy.faults()} faults`);
  await refusesCredentials(proxy);
  proxy.close();
  console.log("archives on S3: all is well");
} finally {
  moto.child.kill();
}

/** Archives in this process and restores by the command; a proxy fails meanwhile. */
async function archivesAndRestores(name, port, proxy) {
  const env = environment(port);
  Object.assign(process.env, env);
  const target = `s3://bucket/${name}`;
  const file = join(folder, `${name}.sqlite3`);
  const kv = await openKv(file, { durability: "normal" });
  await kv.set(["large"], "x".repeat(60_000));
  const archive = await kv.archive({ to: target, snapshotEvery: "700ms" });
  proxy?.fail(true);
  const states = [];
  for (let n = 0; n < 30; n++) {
    const { versionstamp } = await kv.set(["n", n % 7], n);
    states.push({ versionstamp, entries: JSON.stringify(await all(kv)) });
    await new Promise((done) => setTimeout(done, 150));
  }
  const last = states.at(-1).versionstamp;
  const end = Date.now() + PATIENCE_MS;
  while (!((archive.status().versionstamp ?? "") >= last)) {
    assert.ok(Date.now() < end, JSON.stringify(archive.status()));
    await new Promise((done) => setTimeout(done, 100));
  }
  proxy?.fail(false);
  await archive.stop();
  assert.equal(archive.status().error, null);
  await kv.close();
  for (const at of [29, 17, 24]) {
    const restored = join(folder, `${name}-${at}.sqlite3`);
    const { versionstamp, entries } = states[at];
    const outcome = await openkv("restore", target, restored, "--at", versionstamp, { env });
    // A snapshot can be later than the first commits.
    if (at === 17 && /before the oldest/.test(outcome.err)) continue;
    assert.equal(outcome.code, 0, outcome.err);
    assert.equal(JSON.stringify(await contents(restored)), entries);
  }
  const verified = await openkv("archive", "verify", target, "--json", { env });
  assert.equal(verified.code, 0, verified.err + verified.out);
  console.log(`${name}: ${verified.out.trim()}`);
}

async function all(kv) {
  const entries = [];
  for await (const { key, value } of kv.list({ prefix: [] })) entries.push([key, value]);
  return entries;
}

async function refusesCredentials(proxy) {
  proxy.deny(true);
  const file = join(folder, "denied.sqlite3");
  await (await openKv(file)).close();
  const env = environment(proxy.port);
  const outcome = await openkv("archive", "run", file, "s3://bucket/denied", { env });
  assert.equal(outcome.code, 1);
  assert.match(outcome.err, /refuses the credentials: check that/);
  assert.ok(!outcome.err.includes(SECRET) && !outcome.err.includes("Signature"), outcome.err);
  proxy.deny(false);
}
