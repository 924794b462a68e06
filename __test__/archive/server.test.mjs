// Duty: archives of a server by the option archive of serve, their metrics, and what is refused.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "../../index.mjs";
import { parse } from "../api/exposition.mjs";
import { contents, folderOfTests, openkv } from "../cli/running.mjs";
import { open, startServer } from "../kit/server.mjs";
import { until } from "../kit/time.mjs";

const inFolder = folderOfTests();
const accessToken = "a-token-of-the-archive-tests";
const adminToken = "an-admin-token-of-the-archive-tests";

async function restored(target, name) {
  const outcome = await openkv("restore", target, inFolder(name));
  assert.equal(outcome.code, 0, outcome.err);
  return contents(inFolder(name));
}

test("a served file is archived until the server is closed", async () => {
  const [path, to] = [inFolder("served.sqlite3"), inFolder("served-archive")];
  const archive = { to, snapshotEvery: "1h", retention: 86_400_000 };
  const server = await serve({ path, listen: "127.0.0.1:0", accessToken, archive });
  const kv = await open(server.url, { accessToken });
  for (let n = 0; n < 20; n++) await kv.set(["n", n], n);
  const { archives } = await kv.metrics();
  assert.equal(archives.length, 1);
  assert.equal(archives[0].to, "", "a client is not told the target");
  const text = await kv.metrics({ format: "prometheus" });
  assert.doesNotMatch(text, /served-archive/);
  assert.ok(parse(text).get("openkv_archive_state").samples.length >= 5);
  await kv.close();
  await server.close();
  assert.equal((await restored(to, "served-restored")).length, 20);
});

test("each database of a folder is archived below the target, with a series for each", async () => {
  const [path, to] = [inFolder("many/"), inFolder("many-archives")];
  const server = await startServer({ path, adminToken, archive: { to } });
  const admin = async (method, at, body) => {
    const answer = await fetch(`${server.url}/v1/admin/databases${at}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, text, body: text === "" ? undefined : JSON.parse(text) };
  };
  for (const name of ["shop", "mail"]) {
    const { token } = (await admin("POST", "", { name })).body;
    const kv = await open(`${server.url}/${name}`, { accessToken: token });
    await kv.set(["of"], name);
  }
  for (const name of ["shop", "mail"]) {
    await until(async () => (await admin("GET", `/${name}/archive`)).body.state === "running");
  }
  const metrics = await fetch(`${server.url}/metrics`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const { samples } = parse(await metrics.text()).get("openkv_archive_lag_seconds");
  assert.deepEqual(
    samples.map(({ labels }) => labels),
    [{ database: "mail" }, { database: "shop" }],
  );
  for (const { value } of samples) assert.ok(value < 20, `${value} s`);
  await server.close();
  for (const name of ["shop", "mail"]) {
    assert.deepEqual(await restored(join(to, name), `${name}-restored`), [[["of"], name]]);
  }
});

test("kv.metrics has the archivers of a handle, with what they have done", async () => {
  const kv = await open(inFolder("counted.sqlite3"));
  assert.equal((await kv.metrics()).archives, undefined);
  const [first, second] = [inFolder("first-archive"), inFolder("second-archive")];
  const archive = await kv.archive({ to: first });
  const other = await kv.archive({ to: second });
  const { versionstamp } = await kv.set(["a"], 1);
  const [of] = await until(async () => {
    const { archives } = await kv.metrics();
    const done = archives.every((one) => one.versionstamp >= versionstamp && one.snapshots === 1);
    return done && archives;
  });
  assert.equal(of.to, first);
  assert.equal(of.state, "running");
  assert.ok(of.lagMs < 20_000 && of.objects >= 1 && of.bytes > 100, JSON.stringify(of));
  assert.deepEqual([of.failures, of.gaps, of.pruned], [0, 0, 0]);
  assert.ok(Math.abs(of.snapshotMs - Date.now()) < 60_000);
  const families = parse(await kv.metrics({ format: "prometheus" }));
  const valueOf = (name, to, state) =>
    families
      .get(`openkv_archive_${name}`)
      .samples.find(({ labels }) => labels.to === to && labels.state === state)?.value;
  assert.equal(valueOf("state", second, "running"), 1);
  assert.equal(valueOf("state", second, "failing"), 0);
  assert.equal(valueOf("snapshots_total", first), 1);
  assert.ok(valueOf("objects_total", second) >= 1);
  assert.ok(valueOf("snapshot_timestamp_seconds", first) > 1.7e9);
  const { failures, snapshots, lagMs } = archive.status();
  assert.deepEqual([failures, snapshots, typeof lagMs], [0, 1, "number"]);
  await archive.stop();
  assert.deepEqual(
    (await kv.metrics()).archives.map(({ to }) => to),
    [second],
  );
  await other.stop();
  assert.equal((await kv.metrics()).archives, undefined);
});

test("an archive option that cannot be used is refused by its name", async () => {
  const base = { path: inFolder("refused.sqlite3"), listen: "127.0.0.1:0", accessToken };
  const target = inFolder("refused-archive");
  const cases = [
    [{ archive: {} }, /archive\.to must be a folder or a URL: received undefined/],
    [{ archive: { to: 7 } }, /archive\.to must be a string/],
    [{ archive: "x" }, /archive must be an object of to, snapshotEvery, retention/],
    [{ archive: { to: target, where: 1 } }, /where/],
    [{ archive: { to: target, retention: "soon" } }, /archive\.retention must be a duration/],
    [{ archive: { to: target, snapshotEvery: 0 } }, /archive\.snapshotEvery must be a duration/],
    [{ archive: { to: "ftp://host/x" } }, /is no place for an archive/],
    // A folder of this name was made, and the archive was there.
    [
      { archive: { to: "s3:/bucket/x" } },
      /target of an archive begins with s3: and is no URL: .*s3:\/\//,
    ],
    [{ archive: { to: "s3://me:secret-1@bucket/x" } }, /credentials in the environment/],
    [{ archive: { to: target }, readonly: true }, /leave out readonly/],
  ];
  for (const [options, message] of cases) {
    await assert.rejects(serve({ ...base, ...options }), (error) => {
      assert.ok(error instanceof TypeError, error);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /secret-1/);
      return true;
    });
  }
  assert.equal(existsSync(target), false);
});
