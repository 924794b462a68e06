// Duty: a primary with a synchronous standby: one of them dies or hangs under load.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openKv } from "../../index.mjs";
import { startPostgres } from "../kit/postgres.mjs";
import { sleep, until } from "../kit/time.mjs";
import { startLoad } from "./load.mjs";

const skip = process.platform === "win32" && "Windows cannot stop and continue processes";

const COMMITS = 300;

/** Many times as long as a commit takes. */
const FROZEN_MS = 700;

test("nothing is answered while the standby hangs", { skip }, async (t) => {
  const server = await startPostgres({ standby: true, settings: { fsync: "on" } });
  t.after(() => server.close());
  const url = server.url();
  const load = await startLoad(url);
  await load.progress(COMMITS);
  server.standby.freeze();
  // What was under way then may be answered yet; without a standby that counts the load would go on.
  const isStill = async () => {
    const before = load.acknowledged.size;
    await sleep(FROZEN_MS);
    return load.acknowledged.size === before;
  };
  await until(isStill, "nothing is answered");
  server.standby.thaw();
  await load.progress(COMMITS);
  await load.stop();
  await load.check(url);
});

const waitsForStandby = (server) =>
  server.sql("SELECT max(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");

test("a commit whose process was ended waits for the standby all the same", { skip }, async (t) => {
  const server = await startPostgres({ standby: true, settings: { fsync: "on" } });
  t.after(() => server.close());
  const kv = await openKv(server.url({ kv: "shop" }));
  await kv.set(["a"], 1);
  server.standby.freeze();
  let answered = false;
  const written = kv.set(["a"], 2).finally(() => {
    answered = true;
  });
  await until(async () => (await waitsForStandby(server)) !== "", "the commit waits");
  const first = await waitsForStandby(server);
  // Visible from now on, though the standby does not have it.
  await server.sql(`SELECT pg_terminate_backend(${first})`);
  const another = async () => !["", first].includes(await waitsForStandby(server));
  await until(another, "another commit waits");
  assert.equal(answered, false);
  server.standby.thaw();
  const { versionstamp } = await written;
  assert.deepEqual(await kv.get(["a"]), { key: ["a"], value: 2, versionstamp });
  await kv.close();
});

const WRITERS = {
  "direct writers": { more: "", load: {} },
  "a leader": { more: "&lead=one", load: { processes: 1, inFlight: 32 } },
};

for (const [name, { more, load: options }] of Object.entries(WRITERS)) {
  test(`the standby takes over with all that was acknowledged to ${name}`, async (t) => {
    const server = await startPostgres({ standby: true, settings: { fsync: "on" } });
    t.after(() => server.close());
    const load = await startLoad(server.url({ kv: "shop", also: [server.standby], more }), options);
    await load.progress(COMMITS);
    server.kill();
    await server.standby.promote();
    await load.progress(COMMITS);
    await load.stop();
    await load.check(server.standby.url({ kv: "shop" }));
  });
}
