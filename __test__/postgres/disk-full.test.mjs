// Duty: the server's disk is full: commits are refused and leave nothing, what was acknowledged stays,
// and once there is room the same handle continues.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { newServerFolder } from "../kit/postgres/programs.mjs";

const DISK_MIB = 48;
/** Removing it makes room. */
const BALLAST_MIB = 8;
const VALUE_BYTES = 60_000;
const IN_FLIGHT = 4;

const skip =
  !mayMount() && "a small file system can be mounted only by root, outside of most containers";

function mayMount() {
  if (process.getuid?.() !== 0) return false;
  const folder = newServerFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" });
    execFileSync("umount", ["--lazy", folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder of the server's user that holds little. */
function smallDisk() {
  const disk = newServerFolder();
  const { uid, gid } = statSync(disk);
  const options = `size=${DISK_MIB}m,uid=${uid},gid=${gid}`;
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", disk]);
  const tables = join(disk, "tables");
  mkdirSync(tables);
  chownSync(tables, uid, gid);
  const ballast = join(disk, "ballast");
  writeFileSync(ballast, Buffer.alloc(BALLAST_MIB << 20));
  const unmount = () => {
    execFileSync("umount", ["--lazy", disk]);
    rmSync(disk, { recursive: true, force: true });
  };
  return { tables, makeRoom: () => rmSync(ballast), unmount };
}

test("a full disk refuses commits and loses none", { skip }, async (t) => {
  const { tables, makeRoom, unmount } = smallDisk();
  const server = await startPostgres();
  t.after(() => {
    server.close();
    unmount();
  });
  // The server keeps its log of commits on another disk; without room for that it would stop.
  await server.sql(`CREATE TABLESPACE small LOCATION '${tables}'`);
  await server.sql("CREATE DATABASE small TABLESPACE small");
  const kv = await openKv(server.url({ database: "small", kv: "shop" }));
  const acknowledged = new Map();
  const refused = [];
  let count = 0;
  const fill = async () => {
    while (refused.length === 0) {
      const n = count++;
      const bytes = new Uint8Array(randomBytes(VALUE_BYTES));
      const commit = kv.atomic().set(["n", n], bytes).sum(["total"], 1n).commit();
      const { versionstamp, error } = await commit.catch((error) => ({ error }));
      if (error === undefined) acknowledged.set(n, versionstamp);
      else refused.push([n, error]);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, fill));
  for (const [, error] of refused) {
    assert.equal(error.code, "UNAVAILABLE", `${error}`);
    assert.match(error.message, /53100/);
  }
  makeRoom();
  await kv.set(["after"], 1);
  assert.equal((await kv.get(["after"])).value, 1);
  for (const [n, versionstamp] of acknowledged) {
    assert.equal((await kv.get(["n", n])).versionstamp, versionstamp);
  }
  for (const [n] of refused) assert.equal((await kv.get(["n", n])).versionstamp, null);
  assert.ok(acknowledged.size > 0);
  assert.equal((await kv.get(["total"])).value.value, BigInt(acknowledged.size));
  await kv.close();
});
