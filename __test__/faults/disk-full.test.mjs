// A full disk: commits fail with a typed error and leave nothing, no acknowledged commit is lost,
// and once there is space the same handle continues.

import assert from "node:assert/strict";
import { test } from "node:test";

import { guard } from "../kit/time.mjs";
import { startChild } from "../processes/children.mjs";
import { openProbe } from "../processes/probe.mjs";
import { openKv } from "../processes/target.mjs";
import { limitedFiles, smallDisk } from "./child/small-disk.mjs";
import { HANG_MS, newDirectory } from "./child/start.mjs";

const FILL = new URL("child/fill.mjs", import.meta.url);

const windows = process.platform === "win32" && "there is neither mount nor ulimit";

for (const durability of ["full", "normal"]) {
  test(`the disk is full, durability ${durability}`, { skip: windows }, async (t) => {
    await fill(t, smallDisk(t), durability);
  });

  test(`files may not grow, durability ${durability}`, { skip: windows }, async (t) => {
    await fill(t, limitedFiles(newDirectory(t)), durability);
  });
}

async function fill(t, { how, path, ballast, command }, durability) {
  t.diagnostic(`by ${how}`);
  const child = startChild(FILL, { path, ballast, durability }, { command });
  t.after(() => child.kill());
  const line = await guard(child.line(), 2 * HANG_MS, "the disk is full and all is checked");
  assert.ok(line !== undefined, `the process ended: ${child.stderr}`);
  const { acknowledged, unknown, failures, faults, recovered, reopened } = JSON.parse(line);
  t.diagnostic(
    `${acknowledged.length} commits acknowledged, then failures: ${JSON.stringify(failures)}`,
  );
  assert.deepEqual(faults, []);
  assert.ok(acknowledged.length > 0, "some commits fitted");
  if (ballast) assert.deepEqual({ recovered, reopened }, { recovered: true, reopened: true });
  child.hangUp();
  const { code, signal } = await guard(child.ended, HANG_MS, "the process ends");
  assert.deepEqual({ code, signal, stderr: child.stderr }, { code: 0, signal: null, stderr: "" });

  // And once more from a process that never saw the disk full.
  const kv = await openKv(path);
  t.after(() => kv[Symbol.dispose]());
  const uncertain = new Set(unknown);
  const stamps = new Map(acknowledged);
  for await (const { key, versionstamp } of kv.list({ prefix: ["n"] })) {
    const known = stamps.get(key[1]);
    if (known === undefined)
      assert.ok(uncertain.has(key[1]), `${key[1]} was rejected, and is there`);
    else assert.equal(versionstamp, known);
    if (key[2] === "b") stamps.delete(key[1]);
  }
  assert.deepEqual([...stamps.keys()], [], "acknowledged, and lost");
  await kv.close();
  const probe = openProbe();
  assert.deepEqual(await probe.damage(path), []);
  probe.close();
}
