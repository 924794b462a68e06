// The disk of one of many pooled files is full: its commits fail by name, those of the others go on, and once there is
// room it goes on too, also if it was parked meanwhile.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { guard } from "../kit/time.mjs";
import { openKv } from "../processes/target.mjs";
import { smallDisk } from "./child/small-disk.mjs";
import { HANG_MS, newDirectory } from "./child/start.mjs";

const FILES = 1000;
const MAX_OPEN = 8;
/** More than fits. */
const VALUES_MAX = 2000;
const VALUE = "x".repeat(9000);
const FULL = { code: "UNAVAILABLE", message: /full.*wants about \d+ bytes, \d+ are free/ };

test("the disk of one of a thousand files is full", async (t) => {
  const { how, path, ballast } = smallDisk(t);
  if (how !== "a small tmpfs") return t.skip("no file system can be mounted");
  const folder = newDirectory(t);
  const opened = [];
  t.after(() => opened.forEach((kv) => kv[Symbol.dispose]()));
  const open = async (at) => {
    const kv = await openKv(at, { maxOpen: MAX_OPEN });
    opened.push(kv);
    return kv;
  };
  const full = await open(path);
  const others = [];
  for (let n = 0; n < FILES - 1; n++) others.push(await open(join(folder, `${n}.sqlite3`)));
  const counts = others.map(() => 0);
  let turn = 0;
  /** Commits to so many others, one after the other, which parks the file. */
  const useOthers = async (count) => {
    for (let n = 0; n < count; n++, turn++) {
      const at = turn % others.length;
      await others[at].set(["n"], ++counts[at]);
    }
  };
  /** All that was acknowledged is there, and nothing else. */
  const check = async (count, when) => {
    assert.equal(await full.count({ prefix: ["a"] }), count, when);
    assert.equal((await full.get(["a", count - 1])).value, VALUE, when);
  };

  let count = 0;
  /** Sets values until one does not fit. */
  const fill = async () => {
    for (; count < VALUES_MAX; count++) {
      try {
        await full.set(["a", count], VALUE);
      } catch (error) {
        return error;
      }
      if (count % 50 === 0) await useOthers(2 * MAX_OPEN);
    }
  };
  for (let again = 0; again < 3; again++) {
    // Parking has moved the log, which may make room for some more.
    const error = await guard(fill(), 4 * HANG_MS, "the disk is full");
    assert.ok(count > 50, `${count} values fitted`);
    assert.equal(error.code, FULL.code);
    assert.match(error.message, FULL.message);
    await check(count, "on the full disk");
    const commits = [full.set(["a", count], VALUE), useOthers(2 * MAX_OPEN)];
    const [refused, went] = await Promise.allSettled(commits);
    assert.deepEqual([refused.status, went.status], ["rejected", "fulfilled"]);
    assert.equal(refused.reason.code, FULL.code);
    await check(count, "after it was parked");
    await useOthers(2 * MAX_OPEN);
  }

  rmSync(ballast);
  await full.set(["a", count], VALUE);
  await check(++count, "after room was made");
  await useOthers(2 * MAX_OPEN);
  await full.set(["a", count], VALUE);
  await check(++count, "and after it was parked");
  for (const [n, kv] of others.entries())
    assert.equal((await kv.get(["n"])).value ?? 0, counts[n], `file ${n}`);
});
