// Duty: a batch that takes longer to send than a hung process may hold its lock is committed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { sharedPostgres } from "../kit/postgres.mjs";
import { sleep } from "../kit/time.mjs";
import { startProxy } from "./proxy.mjs";

const VALUE_BYTES = 3 << 20;
/** Longer than an idle transaction may hold its lock, and shorter than a slow link takes for this. */
const SENDING_MS = 1500;

const isUpsert = ({ query }) => query?.startsWith("INSERT INTO openkv.entries") ?? false;

test("a large batch over a slow link is committed", async (t) => {
  const server = await sharedPostgres();
  const proxy = await startProxy(server);
  t.after(() => proxy.close());
  const url = server.url();
  const kv = await openKv(url.replace(`:${server.port}`, `:${proxy.port}`), { limits: "wide" });
  await kv.set(["warm"], 1);
  let held = 0;
  proxy.watch = (message) => {
    if (held > 0 || !isUpsert(message)) return undefined;
    held++;
    sleep(SENDING_MS).then(() => proxy.release());
    return "hold";
  };
  const { ok } = await kv.set(["large"], new Uint8Array(VALUE_BYTES));
  assert.equal(held, 1);
  assert.ok(ok);
  await kv.close();
});
