// A full disk once locked a database up: the log took the whole disk before it was ever moved into the
// file, so it could not be moved any more, and every deletion was refused too. Nobody could make room.
// The log now leaves the file room to take it, and a reserve stays for deletions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { guard } from "../kit/time.mjs";
import { openKv } from "../processes/target.mjs";
import { smallDisk } from "./child/small-disk.mjs";
import { HANG_MS } from "./child/start.mjs";

/** More than fits. */
const VALUES_MAX = 2000;
const VALUE = "x".repeat(9000);
const DELETED = 50;

for (const durability of ["full", "normal"]) {
  test(`deletions make room on a full disk, durability ${durability}`, async (t) => {
    const { how, path } = smallDisk(t, { diskKib: 6144, ballastKib: 1 });
    if (how !== "a small tmpfs") return t.skip("no file system can be mounted");
    const kv = await openKv(path, { durability });
    t.after(() => kv[Symbol.dispose]());
    const set = fill(kv, "a", VALUES_MAX);
    const { count, error } = await guard(set, 4 * HANG_MS, "the disk is full");
    assert.ok(count > 200 && count < VALUES_MAX, `${count} values fitted`);
    assert.equal(error.code, "UNAVAILABLE");
    assert.match(error.message, /wants about \d+ bytes, \d+ are free.*the log holds \d+/);

    // Beside writes for which there is no room, too.
    const mixed = await Promise.allSettled([
      kv.set(["b", 0], VALUE.repeat(7)),
      ...Array.from({ length: DELETED }, (_, n) => kv.delete(["a", n])),
    ]);
    assert.deepEqual(
      mixed.map(({ status }) => status),
      ["rejected", ...Array(DELETED).fill("fulfilled")],
    );
    const again = await fill(kv, "b", VALUES_MAX);
    assert.ok(again.count >= DELETED / 2, `${again.count} values found the room`);
    assert.equal(await kv.count({ prefix: [] }), count - DELETED + again.count);

    const all = count + again.count;
    for (const name of ["a", "b"]) for (let n = 0; n < all; n++) await kv.delete([name, n]);
    assert.equal(await kv.count({ prefix: [] }), 0);
    await kv.close();
  });
}

for (const [kind, index] of [
  ["a value index", { type: "value", prefix: ["a"], on: "text" }],
  ["a full-text index", { prefix: ["a"], fields: ["text"] }],
]) {
  test(`${kind} that is built on a full disk leaves the room for deletions`, async (t) => {
    const { how, path } = smallDisk(t, { diskKib: 6144, ballastKib: 1 });
    if (how !== "a small tmpfs") return t.skip("no file system can be mounted");
    const kv = await openKv(path);
    t.after(() => kv[Symbol.dispose]());
    const text = (count) => Array.from({ length: 150 }, (_, n) => `w${count}x${n}`).join(" ");
    const filled = fill(kv, "a", VALUES_MAX, (count) => ({ text: text(count) }));
    const { count } = await guard(filled, 4 * HANG_MS, "the disk is full");
    const built = await kv.createIndex(index);
    for (let n = 0; n < count; n++) await kv.delete(["a", n]);
    await built.ready();
    await kv.set(["a", "again"], { text: "found again" });
    const found = kind.includes("text")
      ? (await kv.search(["a"], "again")).entries
      : await kv.list({ prefix: ["a"] }, { where: { text: "found again" } }).toArray();
    assert.equal(found.length, 1);
    await kv.close();
  });
}

async function fill(kv, name, max, valueOf = () => VALUE) {
  for (let count = 0; count < max; count++) {
    try {
      await kv.set([name, count], valueOf(count));
    } catch (error) {
      return { count, error };
    }
  }
  return { count: max };
}
