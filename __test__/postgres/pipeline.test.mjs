// Duty: batches of a leader that follow each other on its connection, of kinds that it sends for the first
// time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { guard, HANG_MS, sleep } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

/** Writes whose statements differ. */
const KINDS = [
  (kv, n) => kv.set(["set", n], n),
  (kv, n) => kv.atomic().sum(["sum", n], 1n).commit(),
  (kv, n) => kv.set(["expires", n], n, { expireIn: 60_000 }),
  (kv, n) => kv.enqueue(n, { delay: 60_000 }),
  (kv, n) => kv.delete(["set", n]),
  (kv, n) =>
    kv
      .atomic()
      .check({ key: ["none", n], versionstamp: null })
      .set(["c", n], n)
      .commit(),
];
const ROUNDS = 8;
const DATABASES = 2;

// The proxy passes on each message by itself, so the answers to a batch arrive in pieces.
test("a new kind of statement is prepared while answers to others are under way", async (t) => {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const open = () =>
    openKv(server.url({ more: "&lead=one" }).replace(`:${server.port}`, `:${proxy.port}`));
  const work = async (_, shift) => {
    const kv = await open();
    t.after(() => kv.close());
    const pending = [];
    for (let n = 0; n < ROUNDS * KINDS.length; n += 1) {
      pending.push(KINDS[(n + shift) % KINDS.length](kv, n));
      await sleep(1);
    }
    for (const done of await Promise.all(pending)) assert.ok(done?.ok ?? true);
    // A connection that waits for itself is closed by the server, and the leader begins another epoch.
    assert.equal((await kv.metrics()).leader.epochs, 1);
  };
  await guard(Promise.all(Array.from({ length: DATABASES }, work)), HANG_MS, "every write ends");
});
